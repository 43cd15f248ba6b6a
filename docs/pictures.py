"""A hook of MkDocs: pictures of the page's screens, where `examples/page/run.sh` has taken them.

They are not committed. `<!-- picture: NAME -->` in a page becomes the screen of that name, light or dark as the reader
has it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

TAKEN = Path("page", "pictures")
PLACE = "pictures"
MARK = re.compile(r"<!-- picture: (?P<name>[a-z-]+) -->")
SCHEMES = ("light", "dark")


def on_files(files: Files, config: Any) -> Files:
    """Takes the pictures along as if they lay in docs/."""
    for path in sorted(Path(config.config_file_path).parent.joinpath(TAKEN).glob("*-wide-*.png")):
        files.append(File.generated(config, f"{PLACE}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Puts a picture where one is named, and nothing where it was not taken."""
    up = "../" * page.file.src_uri.count("/")

    def shown(found: re.Match[str]) -> str:
        names = {scheme: f"{found['name']}-wide-{scheme}.png" for scheme in SCHEMES}
        if any(files.get_file_from_path(f"{PLACE}/{name}") is None for name in names.values()):
            return ""
        what = found["name"].replace("-", " ")
        return "\n".join(f"![The screen: {what}]({up}{PLACE}/{name}#only-{scheme})" for scheme, name in names.items())

    return MARK.sub(shown, markdown)

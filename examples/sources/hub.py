"""A stand-in for a dataset hub on this machine, with three datasets of real rows: `python hub.py DIRECTORY`.

It writes `DIRECTORY/mine.py`, three sources pinned to the commit that it serves, and `DIRECTORY/hub.url`, and serves
until it is ended.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from click import echo

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]
from demo import FILES, FURTHER_FILES, fetched  # noqa: E402

from hub_stand_in import REPOSITORY, serving  # noqa: E402

TIMES = 60
"""How often the instructions stand in the dataset, each time with a number before them: enough to be killed in."""

SOURCES = '''"""Three pinned datasets of three shapes."""

from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource

HUB = "hf://datasets/{repository}@{commit}"


def instructions():
    """Instructions and outputs."""
    return PinnedSource(Pin(HUB, ("instructions/*.jsonl",)), tokens=2e6, licence="apache-2.0", convert=chat_of)


def chat_of(record):
    """One exchange; a record without an output is left out on purpose."""
    if not record.get("output"):
        raise Filtered("the record has no output")
    asked = "\\n\\n".join(part for part in (record["instruction"], record.get("input")) if part)
    messages = [{{"role": "user", "content": asked}}, {{"role": "assistant", "content": record["output"]}}]
    return {{"id": record["key"], "messages": messages}}


def tool_calls():
    """ShareGPT turns with calls and results; definitions as JSON text."""
    return PinnedSource(Pin(HUB, ("tool-calls/*.json",)), dialect="sharegpt", tokens=3e5, licence="apache-2.0")


def conversations():
    """Turns in OpenAI's form, some of which do not train."""
    return PinnedSource(Pin(HUB, ("conversations/*.jsonl",)), tokens=1e5, licence="apache-2.0")
'''


def numbered(rows: list[dict[str, str]]) -> bytes:
    """The rows `TIMES` times as JSON lines, the instruction of each copy under its number."""
    lines = []
    for copy in range(TIMES):
        for number, row in enumerate(rows):
            changed = {**row, "key": f"{copy}-{number}", "instruction": f"({copy}) {row['instruction']}"}
            lines.append(json.dumps(changed, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def main() -> None:
    """Serve until the process is ended."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    found = {path.name: path.read_bytes() for path in fetched(folder / "rows", (*FURTHER_FILES, *FILES))}
    for name, content in found.items():
        echo(f"   {name} ({len(content):,} bytes)")
    files = {}
    for name, content in found.items():
        if name in FURTHER_FILES:
            files["instructions/part-0.jsonl"] = numbered(json.loads(content))
        else:
            files[f"{'tool-calls' if name.endswith('.json') else 'conversations'}/{name}"] = content
    with serving() as hub:
        commit = hub.commit(files)
        (folder / "mine.py").write_text(SOURCES.format(repository=REPOSITORY, commit=commit))
        (folder / "hub.url").write_text(hub.url)
        threading.Event().wait()


if __name__ == "__main__":
    main()

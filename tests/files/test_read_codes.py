import re
from pathlib import Path

import turnmill.files
from turnmill.codes import CODES

SOURCES = "".join(path.read_text() for path in Path(turnmill.files.__path__[0]).glob("*.py"))


def test_every_code_that_reading_gives_is_listed() -> None:
    given = set(re.findall(r'(?:Rejected|BrokenStream)\(\s*"([a-z0-9-]+)"', SOURCES))
    assert given == {code for code, entry in CODES.items() if entry.stage == "read"}

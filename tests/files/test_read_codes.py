import re
from pathlib import Path

import turnmill.files
from turnmill.codes import CODES

FILES = Path(turnmill.files.__path__[0])
SOURCES = "".join(path.read_text() for path in FILES.glob("*.py"))
DIALECTS = "".join(path.read_text() for path in (FILES.parent / "dialects").glob("*.py"))
"""Which gather the rows of a session as it is read."""


def test_every_code_that_reading_gives_is_listed() -> None:
    given = set(re.findall(r'(?:Rejected|BrokenStream)\(\s*"([a-z0-9-]+)"', SOURCES))
    given |= set(re.findall(r'Rejected\("(session-[a-z-]+)"', DIALECTS))
    assert given == {code for code, entry in CODES.items() if entry.stage == "read"}

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "torch", "transformers", "pyarrow", "pydantic", "starlette", "rich", "tokenizers", "yaml", "gguf"}

HELP = "from turnmill.cli.app import run; run(['--help'])"
PUBLIC = "import turnmill"
SHAPES = "import turnmill.conversation, turnmill.rendered, turnmill.options, turnmill.errors, turnmill.codes"


@pytest.mark.parametrize("program", [PUBLIC, HELP, SHAPES])
def test_light_imports_stay_light(program: str) -> None:
    report = f"{program}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stderr.split()) == set()

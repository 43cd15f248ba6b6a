"""The bars of CONTRIBUTING.md that no linter checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

import turnmill

SOURCE = Path(turnmill.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

MAX_FILE_LINES, USUAL_FILE_LINES = 500, 350
MAX_FUNCTION_LINES, USUAL_FUNCTION_LINES, MEDIAN_FUNCTION_LINES = 80, 50, 12
VAGUE_NAMES = re.compile(r"utils?|helpers?|managers?|processors?|common|misc|.*_v\d+|maybe_.*")


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and length in lines of each function."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield f"{path.name}:{node.name}", node.end_lineno - node.lineno + 1


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=lambda path: path.name)
def test_no_file_is_long(path: Path) -> None:
    assert lines(path) <= MAX_FILE_LINES


def test_nine_files_of_ten_are_short() -> None:
    long = [path.name for path in MODULES if lines(path) > USUAL_FILE_LINES]
    assert len(long) <= 0.1 * len(MODULES), long


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_function_is_long(path: Path) -> None:
    assert [name for name, length in functions(path) if length > MAX_FUNCTION_LINES] == []


def test_functions_are_short() -> None:
    lengths = [length for path in MODULES for _, length in functions(path)]
    assert median(lengths) <= MEDIAN_FUNCTION_LINES
    assert quantiles(lengths, n=20)[-1] <= USUAL_FUNCTION_LINES


def test_tests_are_short() -> None:
    lengths = [length for path in TESTS for name, length in functions(path) if ":test_" in name]
    assert median(lengths) <= MEDIAN_FUNCTION_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_bytes()))


def test_names_say_what_is_in_them() -> None:
    vague = [str(path.relative_to(SOURCE)) for path in MODULES if VAGUE_NAMES.fullmatch(path.stem)]
    called = [name for path in MODULES for name, _ in functions(path) if VAGUE_NAMES.fullmatch(name.partition(":")[2])]
    assert vague + called == []


def test_type_ignores_give_code_and_reason() -> None:
    bare = [
        f"{path.name}: {line.strip()}"
        for path in MODULES
        for line in path.read_text("utf-8").splitlines()
        if "# type: ignore" in line and not re.search(r"# type: ignore\[[\w, -]+\]  # \w+", line)
    ]
    assert bare == []


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()

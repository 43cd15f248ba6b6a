import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.rendering.tracked import Tracked, concatenated, joined, runs_of, sliced, tracked

TEXT = st.text(alphabet="ab \n<x>ßİé-", max_size=12)

OPERATIONS = {
    "strip": lambda text: text.strip(),
    "strip chars": lambda text: text.strip("ab"),
    "lstrip": lambda text: text.lstrip(),
    "rstrip": lambda text: text.rstrip("\n"),
    "removeprefix": lambda text: text.removeprefix("a"),
    "removesuffix": lambda text: text.removesuffix("b"),
    "split": lambda text: text.split(),
    "split at most once": lambda text: text.split(None, 1),
    "split at": lambda text: text.split("<x>"),
    "rsplit": lambda text: text.rsplit(None, 1),
    "rsplit at": lambda text: text.rsplit("-", 1),
    "splitlines": lambda text: text.splitlines(),
    "splitlines kept": lambda text: text.splitlines(keepends=True),
    "partition": lambda text: text.partition("<"),
    "rpartition": lambda text: text.rpartition("-"),
    "replace": lambda text: text.replace("<x>", "long word"),
    "replace away": lambda text: text.replace("a", ""),
    "replace once": lambda text: text.replace("b", "aa", 1),
    "replace nothing": lambda text: text.replace("", "-"),
    "upper": lambda text: text.upper(),
    "lower": lambda text: text.lower(),
    "title": lambda text: text.title(),
    "capitalize": lambda text: text.capitalize(),
    "casefold": lambda text: text.casefold(),
    "swapcase": lambda text: text.swapcase(),
    "slice": lambda text: text[1:4],
    "slice backwards": lambda text: text[::-1],
    "slice from behind": lambda text: text[-3:-1],
    "times": lambda text: text * 3,
    "join": lambda text: text.join(["a", "b", "c"]),
    "characters": lambda text: list(text),
    "plus": lambda text: text + "z",
    "added to": lambda text: "z" + text,
}


def mixed(first: str, second: str) -> Tracked:
    return concatenated([tracked(first, 1), tracked(second, 2)])


def covers(text: str) -> bool:
    return sum(length for length, _ in runs_of(text)) == len(text)


@pytest.mark.parametrize("name", OPERATIONS)
@given(first=TEXT, second=TEXT)
def test_an_operation_gives_the_plain_text_with_covering_runs(name, first, second):
    got, want = OPERATIONS[name](mixed(first, second)), OPERATIONS[name](first + second)
    assert got == want
    assert all(covers(part) for part in ([got] if isinstance(got, str) else got))


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (mixed("  ab", "cd ").strip(), ((2, 1), (2, 2))),
        (mixed("abc", "def")[2:4], ((1, 1), (1, 2))),
        (mixed("a<x>", "b").replace("<x>", "yyyy"), ((5, 1), (1, 2))),
        (mixed("ab", "cd").split("b")[1], ((2, 2),)),
        (mixed("ab", "cd") + "lit", ((2, 1), (2, 2), (3, 0))),
        ("lit" + mixed("ab", "cd"), ((3, 0), (2, 1), (2, 2))),
        (tracked("-", 9).join([tracked("a", 1), tracked("b", 2)]), ((1, 1), (1, 9), (1, 2))),
        (mixed("ab", "cd")[::-1], ((2, 2), (2, 1))),
    ],
)
def test_origins_follow_the_characters(text, runs):
    assert text.runs == runs


def test_str_keeps_the_origins():
    text = tracked("ab", 3)
    assert str(text) is text


def test_a_wrong_operand_reads_as_it_would_on_a_plain_string():
    with pytest.raises(TypeError, match=r"can only concatenate str|unsupported operand"):
        tracked("a", 1) + 1


@given(
    parts=st.lists(st.tuples(TEXT, st.integers(0, 3)), max_size=5), start=st.integers(0, 20), length=st.integers(0, 20)
)
def test_a_slice_of_joined_runs_is_the_runs_of_the_slice(parts, start, length):
    text = concatenated([tracked(text, origin) for text, origin in parts])
    whole = [origin for count, origin in joined([text.runs]) for _ in range(count)]
    start, stop = min(start, len(text)), min(start + length, len(text))
    assert [origin for count, origin in sliced(text.runs, start, stop) for _ in range(count)] == whole[start:stop]

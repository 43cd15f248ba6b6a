import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnmill.files.documents import split_array, split_concatenated
from turnmill.files.record import Piece

texts = st.text(st.sampled_from('ab"\\{}[],:\n é\u2028'), max_size=6)
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
documents = st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3)
indents = st.sampled_from([None, 0, 2])


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


@given(st.lists(values, max_size=5), indents, st.booleans(), st.integers(1, 50))
@settings(deadline=None)
def test_elements_of_an_array_are_found_wherever_chunks_end(elements, indent, ascii, size) -> None:
    content = json.dumps(elements, indent=indent, ensure_ascii=ascii).encode()
    pieces = list(split_array(cut(content, size), limit=10**6))
    assert [json.loads(piece.raw) for piece in pieces] == elements
    assert [piece.line for piece in pieces] == list(range(1, len(elements) + 1))
    assert not any(piece.fault for piece in pieces)


@given(st.lists(documents, max_size=5), indents, st.sampled_from(["", "\n", "\r\n\n", " "]), st.integers(1, 50))
@settings(deadline=None)
def test_values_one_after_another_are_found_wherever_chunks_end(elements, indent, between, size) -> None:
    written = [json.dumps(element, indent=indent) for element in elements]
    content = between.join(written).encode()
    pieces = list(split_concatenated(cut(content, size), limit=10**6))
    assert [piece.raw.decode() for piece in pieces] == written
    assert [content[piece.offset :].startswith(piece.raw) for piece in pieces] == [True] * len(pieces)
    assert [piece.line for piece in pieces] == [content[: piece.offset].count(b"\n") + 1 for piece in pieces]


@given(st.binary(max_size=60), st.integers(1, 20))
@example(b"\0" * 31, 1)
@settings(deadline=None)
def test_no_bytes_break_the_splitters(content: bytes, size: int) -> None:
    for split in (split_array, split_concatenated):
        found = [told(piece) for piece in split(cut(b"[" + content, size), limit=30)]
        assert found == [told(piece) for piece in split([b"[" + content], limit=30)]


def told(piece: Piece) -> tuple[object, ...]:
    return piece.line, piece.offset, piece.raw, piece.fault and piece.fault.code, piece.fatal


@given(st.lists(documents, min_size=1, max_size=3), st.integers(1, 20), st.data())
@settings(deadline=None)
def test_an_array_cut_anywhere_ends_in_one_fatal_fault(elements, size, data) -> None:
    content = json.dumps(elements).encode()
    short = content[: data.draw(st.integers(1, len(content) - 1))]
    *good, broken = split_array(cut(short, size), limit=10**6)
    assert [json.loads(piece.raw) for piece in good] == elements[: len(good)]
    assert (broken.fault.code, broken.fatal) == ("broken-array", True)

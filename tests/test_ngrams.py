from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill import ngrams
from turnmill.ngrams import NGramHasher, shared_words, words

TEXTS = st.lists(st.text(st.sampled_from("ab c.\n漢字éÉ"), max_size=30), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world!", ["hello", "world"]),
        ("  What's   2+2? ", ["what's", "2+2"]),
        ("-5 < 3% #4", ["-5", "<", "3%", "#4"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("Cafe\u0301 CAFÉ", ["café", "café"]),
        ("… ... !", []),
        ("", []),
        ("我喜欢 PyTorch。", ["我", "喜", "欢", "pytorch"]),
        ("東京2020に", ["東", "京", "2020", "に"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("한국어 문장", ["한국어", "문장"]),
    ],
)
def test_words_are_what_people_would_count(text, expected):
    assert words(text) == expected


def said(text: str, n: int) -> set[tuple[str, ...]]:
    """The n-grams of a text, the plain way."""
    found = words(text)
    return {tuple(found[at : at + n]) for at in range(max(1, len(found) - n + 1))} if found else set()


@given(TEXTS, st.integers(1, 4))
def test_equal_ngrams_and_only_those_have_equal_hashes(texts, n):
    found = NGramHasher(n)(texts)
    parts = [set(found.hashes[start:end].tolist()) for start, end in zip(found.starts, found.starts[1:], strict=False)]
    assert found.words.tolist() == [len(words(text)) for text in texts]
    for one, hashes in zip(texts, parts, strict=True):
        for other, others in zip(texts, parts, strict=True):
            assert len(hashes & others) == len(said(one, n) & said(other, n))


@given(TEXTS, TEXTS)
def test_what_was_hashed_before_changes_nothing(before, texts):
    hasher = NGramHasher(2)
    hasher(before)
    assert hasher(texts).hashes.tolist() == NGramHasher(2)(texts).hashes.tolist()


def test_hashes_are_the_same_on_every_machine_and_in_every_version():
    assert NGramHasher(2)(["One two", "one  TWO!", "three"]).hashes.tolist() == [
        4803126708957271356, 4803126708957271356, 6964924669394775939,
    ]  # fmt: skip


def test_a_short_text_is_no_beginning_of_a_longer_one():
    found = NGramHasher(3)(["one two", "one two three", "one two three four"])
    assert np.diff(found.starts).tolist() == [1, 1, 2]
    assert len(set(found.hashes.tolist())) == 3


def test_words_that_are_forgotten_are_hashed_anew(monkeypatch):
    monkeypatch.setattr(ngrams, "KNOWN_TOKENS", 3)
    hasher = NGramHasher(1)
    first = hasher(["a b c d e"]).hashes.tolist()
    assert hasher(["f g"]).hashes.size == 2
    assert hasher(["a b c d e"]).hashes.tolist() == first


def test_an_ngram_can_be_shown():
    assert shared_words("So: name the Capital, please!", 1, 3) == "name the capital"


def test_no_texts_have_no_ngrams():
    assert NGramHasher(3)([]).starts.tolist() == [0]

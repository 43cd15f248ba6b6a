from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats import chat
from planted import ngrams_of
from turnmill.decontaminate import Indexing, Item, Overlap, item_of

WORDS = [f"w{number}" for number in range(60)]
QUESTION = " ".join(WORDS[:20])
SYSTEM = {"role": "system", "content": "Be kind."}
TEXTS = st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join)


def hits(items: list[Item | str], *rows: list[str], ngram: int = 13):
    indexing = Indexing(ngram)
    indexing.add([item if isinstance(item, Item) else Item((item,), item) for item in items])
    return Overlap(indexing.index(), ngram).hits(rows)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([QUESTION], " ".join(WORDS[:13])),
        ([f"So, tell me: {QUESTION.upper()}?"], " ".join(WORDS[:13])),
        (["Hi.", " ".join(WORDS[4:17])], " ".join(WORDS[4:17])),
        ([" ".join(WORDS[4:16])], None),  # 12 words
        ([" ".join(WORDS[:12]), " ".join(WORDS[12:20])], None),  # no text alone shares 13
        ([" ".join(reversed(WORDS))], None),
        (["", "…"], None),
        ([], None),
    ],
)
def test_thirteen_shared_words_are_a_hit(texts, words):
    (hit,) = hits([QUESTION], texts)
    assert (hit and hit.words) == (words and words[:80])


def test_a_hit_names_the_item_the_text_and_how_much_is_shared():
    other = " ".join(WORDS[30:50])
    (first, second) = hits([other, QUESTION], ["x"], ["Hm.", QUESTION])
    assert first is None
    assert (second.item, second.text, second.shared, second.is_whole) == (1, 1, 8, False)
    fault = second.fault("bench.jsonl:7", 3)
    assert (fault.code, fault.at) == ("evaluation-overlap", 3)
    assert fault.message.startswith("shares with bench.jsonl:7: 'w0 w1 w2 ")
    assert fault.message.endswith("and 7 more n-grams")


@pytest.mark.parametrize(
    ("said", "is_hit"),
    [
        ("name the capital of norway", True),
        ("  Name the CAPITAL of Norway!  ", True),
        ("Name the capital of Sweden.", False),
        ("Please name the capital of Norway.", False),
        ("capital of Norway", False),
    ],
)
def test_a_short_item_takes_rows_that_say_just_that(said, is_hit):
    (hit,) = hits([Item(("Name the capital of Norway.", "Oslo"), "Name the capital of Norway.")], [said, "Oslo."])
    assert (hit is not None) is is_hit
    if hit:
        assert hit.fault("e:1", None).message == "says what e:1 asks: 'name the capital of norway'"
        assert hit.fault("e:1", None).code == "evaluation-item"


@pytest.mark.parametrize("row", ["Oslo", "Yes"])
def test_short_answers_and_items_of_a_word_or_two_take_no_row(row):
    assert hits(
        [Item(("Which town is it that they mean?", "Oslo"), "Which town is it that they mean?"), "Yes"], [row]
    ) == [None]


def test_items_that_say_too_little_are_counted():
    indexing = Indexing(13)
    indexing.add([Item(("Yes",), "Yes"), Item(("one two three",), "one two three"), Item(("",), ""), Item((), "")])
    assert indexing.index().skipped == 3


def test_an_item_of_which_only_the_answer_is_long_is_found_by_both():
    item = Item(("Which one is it then?", QUESTION), "Which one is it then?")
    assert [hit.is_whole for hit in hits([item], ["which one is it then"], [f"{QUESTION} indeed"])] == [True, False]


def test_the_first_of_several_items_is_named():
    assert hits([QUESTION, QUESTION], [QUESTION])[0].item == 0


@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(st.lists(TEXTS, max_size=3), max_size=4))
def test_hits_are_just_the_rows_that_share_an_ngram(items, rows):
    n = 4
    long_items = [item for item in items if len(item.split()) >= n]
    short_items = [item.split() for item in items if 3 <= len(item.split()) < n]
    shared = {ngram for item in long_items for ngram in ngrams_of(item, n)}
    for row, hit in zip(rows, hits(list(items), *rows, ngram=n), strict=True):
        overlaps = any(shared & {gram for gram in ngrams_of(text, n) if len(gram) == n} for text in row)
        assert (hit is not None) == (overlaps or any(text.split() in short_items for text in row))


@pytest.mark.parametrize(
    ("record", "dialect", "texts", "prompt"),
    [
        (chat("Why?", "So."), "openai", ("Why?", "So."), "Why?"),
        ({"messages": [SYSTEM, *chat("Why?")["messages"]]}, "openai", ("Why?",), "Why?"),
        ({"question": "Why?", "answer": "So."}, "prompt-response", ("Why?", "So."), "Why?"),
        ({"question": "Why?", "choices": ["A b", "C"], "answer": 1}, "prompt-response", ("Why?", "A b", "C"), "Why?"),
        ({"task": 3, "prompt": "f()", "tests": {"all": ["f() == 1"]}}, None, ("f()", "f() == 1"), "f() == 1"),
        ({"system": "Be kind.", "input": "Why?"}, None, ("Why?",), "Why?"),
        ({"messages": 3}, "openai", (), ""),
        ({"number": 1}, None, (), ""),
    ],
)  # fmt: skip
def test_what_an_item_says(record, dialect, texts, prompt):
    item = item_of(record, dialect)
    assert sorted(item.texts) == sorted(texts)
    assert item.prompt == prompt


def test_deep_records_are_no_trouble():
    record: dict = {"text": "deep"}
    for _ in range(5000):
        record = {"more": record}
    assert item_of(record, None).texts == ("deep",)


def test_a_giant_text_and_a_giant_word_are_no_trouble():
    book = " ".join(f"p{number}" for number in range(100_000))
    found = hits([QUESTION], [book, "x" * 1_000_000, f"{book} {QUESTION}"], ["漢" * 200_000])
    assert [hit and (hit.text, hit.shared) for hit in found] == [(2, 8), None]

import pytest

from turnmill.report.census import SourceCensus, census, percentiles, row_counts

CHAT = SourceCensus(
    "chat",
    {
        "rows/read": 12, "rows/accepted": 7, "rows/eval": 1, "rows/rejected": 2, "rows/duplicate": 2,
        "codes/blank-text": 1, "codes/invalid-json": 1, "codes/duplicate": 2, "repair/merge-turns": 3,
        "read/parts-joined": 3, "tokenize/start-cut": 0,
        "train/examples": 7, "train/turns": 9, "train/tokens/user": 70, "train/tokens/answer": 30,
        "train/trained/answer": 30, "eval/examples": 1, "eval/turns": 1, "eval/tokens/answer": 5,
        "eval/trained/answer": 5,
    },
    [4, 2, 1, 3, 7, 6, 5],
    [{"source": "chat", "row": row, "id": "x", "trained": ["hi"]} for row in range(9)],
)  # fmt: skip
TOOLS = SourceCensus("tools", {"rows/read": 1, "rows/stalled": 1, "codes/stalled-tool-call": 1}, [])


def test_counts_of_a_source():
    chat = census([CHAT])["per_source"]["chat"]
    assert chat["rows"]["read"] == 12
    assert chat["rows"]["duplicates"] == 2
    assert list(chat["codes"].items()) == [("duplicate", 2), ("blank-text", 1), ("invalid-json", 1)]
    assert chat["repairs"] == {"merge-turns": 3}
    assert chat["counts"] == {"read/parts-joined": 3}
    assert chat["tokens"] == {"total": 100, "user": 70, "answer": 30}
    assert chat["trained_tokens"] == {"total": 30, "answer": 30}
    assert chat["trained_share"] == 0.3
    assert (chat["examples"], chat["turns"], chat["lengths"]["max"], len(chat["samples"])) == (7, 9, 7, 3)
    assert chat["eval"]["trained_tokens"] == {"total": 5, "answer": 5}


def test_sources_sum():
    whole = census([CHAT, TOOLS])
    assert list(whole["per_source"]) == ["chat", "tools"]
    assert whole["rows"] == {
        "read": 13, "accepted": 7, "rejected": 2, "stalled": 1, "filtered": 0, "duplicates": 2, "contaminated": 0,
        "eval": 1, "unselected": 0,
    }  # fmt: skip
    assert whole["tokens"]["total"] == 100
    assert whole["lengths"]["50"] == 4
    assert whole["per_source"]["tools"]["lengths"] == {}
    assert whole["per_source"]["tools"]["trained_share"] == 0.0


def test_characters_have_a_name_of_their_own():
    source = SourceCensus("a", {"train/characters/answer": 8, "train/trained/answer": 8}, [8])
    whole = census([source], unit="characters")
    assert whole["unit"] == "characters"
    assert whole["characters"] == whole["trained_characters"] == {"total": 8, "answer": 8}
    assert "tokens" not in whole


@pytest.mark.parametrize("counters", [{"rows/read": 3, "rows/accepted": 2}, {"rows/accepted": 1}])
def test_rows_that_do_not_sum_are_refused(counters):
    with pytest.raises(ValueError, match=r"chat: \d rows were read, but \d are accounted for"):
        row_counts("chat", counters)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([9], [9] * 8),
        (list(range(100, 0, -1)), [1, 5, 25, 50, 75, 95, 99, 100]),
        ([10, 20], [10, 10, 10, 10, 20, 20, 20, 20]),
    ],
)
def test_percentiles_are_nearest_ranks(lengths, expected):
    assert list(percentiles(lengths).values()) == expected


def test_examples_are_counted_by_their_turns():
    counters = {"train/examples": 3, "train/examples-of-turns/1": 2, "train/examples-of-turns/3": 1}
    assert census([SourceCensus("chat", counters, [])])["turn_bins"] == [[1, 2], [2, 0], [3, 1]]

"""Evaluation data against training rows: `turnmill decontaminate`, and the step of `turnmill prepare`."""

from __future__ import annotations

import gzip
import json

import pytest

from chats import chat, numbered

ITEM = "A farmer has seventeen sheep and buys nine more before she sells four of them; how many sheep are left?"
WORDS = "a farmer has seventeen sheep and buys nine more before she sells four"
ROWS = [*numbered(30), [f"Please solve this. {ITEM}", "22."], ["name the capital of  norway", "Oslo."]]
SHORT = "Name the capital of Norway."


@pytest.fixture
def rows(chats):
    return chats("rows.jsonl", *ROWS)


def line(**columns) -> str:
    return json.dumps(columns) + "\n"


FILES = {
    "bench.jsonl": line(question=SHORT, answer="Oslo") + line(question=ITEM, answer="22"),
    "bench.json": json.dumps([{"prompt": SHORT}, {"prompt": ITEM, "canonical_solution": "x", "test": "y"}]),
    "chat.jsonl": json.dumps(chat(SHORT, "Oslo")) + "\n" + json.dumps(chat("Hi", "Hello", ITEM)) + "\n",
    "sharegpt.jsonl": "".join(
        line(conversations=[{"from": "human", "value": text}, {"from": "gpt", "value": "?"}]) for text in (SHORT, ITEM)
    ),
    "alpaca.jsonl": line(instruction=SHORT, input="", output="") + line(instruction="Solve.", input=ITEM, output=""),
    "choices.jsonl": line(stem=SHORT, options=["a", "b"]) + line(stem="?", passages=[{"text": ITEM}], label=2),
    "lines.txt": f"{SHORT}\n\n{ITEM}\n",
    "list.txt": f"[1] {SHORT}\n{{ {ITEM}\n",
    "packed.jsonl.gz": gzip.compress("".join(line(question=one, answer="") for one in (SHORT, ITEM)).encode(), mtime=0),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_items_are_found_whatever_the_file_looks_like(turnmill, rows, write, name):
    found = turnmill("decontaminate", rows, "--against", write(name, FILES[name]), "--json").json
    overlap = next(one for one in found["found"] if one["row"] == 30)
    assert overlap["code"] == "evaluation-overlap"
    assert overlap["evaluation_file"] == name
    assert overlap["words"] == WORDS
    if name != "list.txt":  # there the short item has a number before it
        assert [one["code"] for one in found["found"]] == ["evaluation-overlap", "evaluation-item"]
    assert found["per_file"] == {name: len(found["found"])}


def test_the_command_names_row_item_and_words(turnmill, rows, write):
    answer = turnmill("decontaminate", rows, "--against", write("bench.jsonl", FILES["bench.jsonl"]))
    assert answer.code == 0
    assert f"rows.jsonl:31  row 30  evaluation-overlap: shares with bench.jsonl:2: '{WORDS}'" in answer.out
    assert "row 31  evaluation-item: says what bench.jsonl:1 asks: 'name the capital of norway'" in answer.out
    assert "bench.jsonl      2" in answer.out
    assert answer.next_step.startswith("turnmill prepare ")


def test_rows_and_words_are_counted_per_source(turnmill, chats, write):
    bench = write("bench.jsonl", FILES["bench.jsonl"])
    data = [chats("a.jsonl", *ROWS), chats("b.jsonl", *numbered(5, 100))]
    found = turnmill("decontaminate", *data, "--against", bench, "--json").json
    assert found["per_source"]["a"] == {
        "read": 32, "compared": 32, "contaminated": 2, "words": 30 * 8 + 30, "contaminated_words": 30,
    }  # fmt: skip
    assert found["per_source"]["b"]["contaminated"] == 0


def test_prepare_lets_the_same_rows_go(prepare, rows, write):
    published = prepare(rows, "--against", write("bench.jsonl", FILES["bench.jsonl"]), "--split.fraction", "0.2")
    left = published.table("quarantine")
    assert [(row["row"], row["class"], row["code"], row["at"]) for row in left] == [
        (30, "contaminated", "evaluation-overlap", 0), (31, "contaminated", "evaluation-item", 0),
    ]  # fmt: skip
    assert published.report["rows"]["contaminated"] == 2
    counts = published.report["per_source"]["rows"]["counts"]
    assert counts["decontaminate/by/bench.jsonl"] == 2
    assert counts["decontaminate/words"] == 30
    assert published.manifest["evaluation"][0]["name"] == "bench.jsonl"
    asked = [
        row["messages"][0]["content"][0]["text"] for side in ("train", "eval") for row in published.conversations(side)
    ]
    assert len(asked) == 30


def test_a_contaminated_duplicate_is_counted_once(prepare, chats, write):
    rows = chats("rows.jsonl", *numbered(3), [ITEM, "22"], [ITEM, "22"])
    counts = prepare(rows, "--against", write("e.txt", ITEM)).report["rows"]
    assert (counts["accepted"], counts["duplicates"], counts["contaminated"]) == (3, 1, 1)


def test_a_row_that_a_filter_lets_go_is_no_contaminated_one(prepare, chats, write):
    rows = chats("rows.jsonl", *numbered(3), [ITEM, "I'm sorry, but I can't help with that."])
    counts = prepare(rows, "--against", write("e.txt", ITEM), "--filter.use", "[refusals]").report["rows"]
    assert (counts["filtered"], counts["contaminated"]) == (1, 0)


def test_another_evaluation_file_is_another_run(prepare, rows, write, tmp_path):
    bench, steps = write("bench.txt", f"{ITEM}\n"), tmp_path / ".out.steps"
    prepare(rows, "--against", bench)
    before = set(steps.iterdir())
    prepare(rows, "--against", bench)
    assert set(steps.iterdir()) == before
    bench.write_text(f"{ITEM}\n{SHORT}\n")
    assert prepare(rows, "--against", bench).report["rows"]["contaminated"] == 2
    made = {path.name.partition("-")[0] for path in set(steps.iterdir()) - before}
    assert made == {"evaluation", "decontaminate", "split", "tokenize", "pack"}


def test_where_an_evaluation_file_lies_is_no_part_of_the_recipe(prepare, rows, write):
    one = prepare(rows, "--against", write("here/bench.txt", ITEM))
    assert prepare(rows, "--against", write("there/bench.txt", ITEM), output="again").sha256 == one.sha256


def test_fewer_words_find_more(turnmill, rows, write):
    bench = write("bench.txt", "seventeen sheep and buys nine more\nis one plus one really two\n")
    found = turnmill("decontaminate", rows, "--against", bench, "--decontaminate.ngram", "5", "--json").json
    assert [one["row"] for one in found["found"]] == [30]


BROKEN = [
    ("bench.jsonl", b"", "bench.jsonl is empty: it has no bytes"),
    ("bench.jsonl", b"\n \n", "bench.jsonl is empty: it holds no record"),
    ("bench.jsonl", b'{"question": "a b c d"}\n{"question": \n', "evaluation item bench.jsonl:2 cannot be read"),
    ("bench.jsonl", b"[1, 2", "evaluation item bench.jsonl:1 cannot be read"),
    ("bench.csv", b"question,answer\nwhat is it then,that\n", "or text, an item a line, in a .txt file"),
    ("bench.txt", b"what is it then\n\xff\xfe broken\n", "evaluation item bench.txt:2 cannot be read: it is not UTF-8"),
    ("bench.txt", b"Yes\nNo\n", "no evaluation item says three words or more"),
    ("bench.jsonl.gz", gzip.compress(b'{"question": "a b c d"}\n' * 50, mtime=0)[:-9], "cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "message"), BROKEN, ids=[message for *_, message in BROKEN])
@pytest.mark.parametrize("verb", ["decontaminate", "prepare"])
def test_evaluation_data_that_cannot_be_read_end_the_run(turnmill, rows, write, tmp_path, verb, name, content, message):
    flags = ["--model", "smollm2", "--output", tmp_path / "out"] if verb == "prepare" else []
    answer = turnmill(verb, rows, "--against", write(name, content), *flags)
    assert answer.code == 2
    assert message in answer.err
    assert not (tmp_path / "out").exists()


def test_evaluation_data_that_are_not_there_end_the_run(turnmill, rows, tmp_path):
    answer = turnmill("decontaminate", rows, "--against", tmp_path / "nothing.jsonl")
    assert answer.code == 2
    assert "no such file or directory" in answer.err


def test_without_evaluation_data_there_is_nothing_to_compare(turnmill, rows):
    answer = turnmill("decontaminate", rows)
    assert (answer.code, answer.next_step.endswith("--against FILE")) == (2, True)


def test_evaluation_data_inside_the_output_are_not_replaced(turnmill, prepare, rows):
    output = prepare(rows).folder
    (output / "bench.txt").write_text(ITEM)
    flags = ["--model", "smollm2", "--output", output, "--against", output / "bench.txt"]
    answer = turnmill("prepare", rows, *flags)
    assert answer.code == 2
    assert "lies inside the output" in answer.err


def test_items_that_are_too_short_are_named(turnmill, rows, write):
    answer = turnmill("decontaminate", rows, "--against", write("bench.txt", f"Yes\n{ITEM}\n"))
    assert "1 of 2 evaluation items have too few words to be compared" in answer.err


def test_several_files_by_a_pattern(turnmill, rows, write, tmp_path):
    write("bench/a.txt", SHORT)
    write("bench/b.txt", ITEM)
    found = turnmill("decontaminate", rows, "--against", tmp_path / "bench/*.txt", "--json").json
    assert found["per_file"] == {"a.txt": 1, "b.txt": 1}


def test_a_row_in_another_script_is_compared_by_character(turnmill, chats, write):
    item = "小明有十七只羊他又买了九只羊请问现在一共有多少只"
    rows = chats("rows.jsonl", *numbered(2), [f"请回答：{item}？", "二十六"])
    found = turnmill("decontaminate", rows, "--against", write("e.txt", item), "--json").json
    assert [one["row"] for one in found["found"]] == [2]


def test_a_contaminated_row_can_be_shown(turnmill, prepare, rows, write):
    output = prepare(rows, "--against", write("bench.txt", ITEM)).folder
    answer = turnmill("quarantine", "show", output, "--code", "evaluation-overlap")
    assert answer.code == 0
    assert "farmer" in answer.out


def test_what_an_earlier_run_held_out_is_evaluation_data(turnmill, prepare, chats):
    rows = chats("rows.jsonl", *numbered(100))
    held_out = prepare(rows, "--split.fraction", "0.2").folder / "conversations" / "eval" / "*.parquet"
    found = turnmill("decontaminate", rows, "--against", held_out, "--json").json
    assert 5 < len(found["found"]) < 50
    assert len(found["found"]) == found["per_source"]["rows"]["contaminated"]


def test_a_run_of_which_nothing_is_left_says_why(turnmill, chats, write, tmp_path):
    rows, bench = chats("rows.jsonl", [ITEM, "22"]), write("bench.txt", ITEM)
    answer = turnmill("prepare", rows, "--model", "smollm2", "--against", bench, "--output", tmp_path / "out")
    assert answer.code == 3
    assert "every row was held out, filtered, contaminated or a duplicate" in answer.err


def test_the_census_of_raw_data_counts_them_as_prepare_does(prepare, turnmill, chats, write):
    rows = chats("rows.jsonl", *ROWS, ROWS[-2], ["", ""])
    flags = ["--decontaminate.against", write("bench.jsonl", FILES["bench.jsonl"]), "--health.max_rejected", "1"]
    made = prepare(rows, *flags).report
    counted = turnmill("census", rows, "--model", "smollm2", *flags, "--json")
    assert "not counted" not in counted.err
    assert made["rows"]["contaminated"] == 2
    for name in ("rows", "codes", "tokens", "trained_tokens"):
        assert counted.json[name] == made[name], name
    by = {key: count for key, count in counted.json["per_source"]["rows"]["counts"].items() if key.startswith("decont")}
    assert by == {key: made["per_source"]["rows"]["counts"][key] for key in by} != {}

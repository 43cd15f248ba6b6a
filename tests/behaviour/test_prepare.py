"""`turnmill prepare` on real files: what is published, read back without turnmill."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from published import IGNORE, Published, documents, hashes, labels_of, trained_texts
from turnmill.files.inventory import verify

ANSWER = ["output", "rows", "codes", "repairs", "examples", "packs", "tokens", "trained_tokens", "fill", "per_source"]
SIDES = ["train", "eval"]


def sums(rows: dict[str, int]) -> bool:
    return rows["read"] == sum(count for name, count in rows.items() if name != "read")


def test_the_answer_has_the_keys_that_programs_read(turnmill, examples_config, tmp_path):
    answer = turnmill("prepare", examples_config, "--output", tmp_path / "out", "--json")
    assert list(answer.json) == ANSWER
    assert set(answer.json["per_source"]) == {"assistant", "tools", "instructions", "faulty"}
    assert answer.next_step == f"turnmill explain {tmp_path / 'out'} 0"


def test_rows_are_counted_once_and_sum(prepared_examples):
    report = prepared_examples.report
    assert sums(report["rows"])
    for source in report["per_source"].values():
        assert sums(source["rows"])
    for name, count in report["rows"].items():
        assert count == sum(source["rows"][name] for source in report["per_source"].values())
    assert report["rows"]["rejected"] == sum(report["codes"].values())


def test_counts_are_those_of_the_stored_rows(prepared_examples):
    rows = prepared_examples.report["rows"]
    assert rows["accepted"] == len(prepared_examples.conversations())
    assert rows["eval"] == len(prepared_examples.conversations("eval")) > 0
    assert rows["rejected"] == len(prepared_examples.table("quarantine"))
    assert rows["duplicates"] == len(prepared_examples.table("duplicates"))


def test_out_is_laid_out_as_documented(prepared_examples):
    places = {str(Path(name).parent) for name in prepared_examples.sha256}
    sides = {f"{side}/{part}" for side in SIDES for part in ("examples", "plans", "packed")}
    assert places == {".", "quarantine", "duplicates", *sides, *(f"conversations/{side}" for side in SIDES)}
    top = {path.name for path in prepared_examples.folder.iterdir() if path.is_file()}
    assert top == {"manifest.json", "report.html", "report.json", "run.json"}


def test_the_manifest_lists_every_file(prepared_examples):
    listed = {entry["path"]: entry["sha256"] for entry in prepared_examples.manifest["files"]}
    found = prepared_examples.sha256
    del found["manifest.json"]
    assert listed == found
    verify(prepared_examples.folder)


@pytest.mark.parametrize("side", SIDES)
def test_packed_rows_are_the_examples_of_the_plan(prepared_examples, side):
    examples, plan, packed = (getattr(prepared_examples, part)(side) for part in ("examples", "plan", "packed"))
    assert Counter(number for pack in plan for number in pack) == Counter(range(len(examples)))
    for pack, row in zip(plan, packed, strict=True):
        chosen = [examples[number] for number in pack]
        assert row["row_ids"] == [example["row_id"] for example in chosen]
        assert [ids for ids, _ in documents(row)] == [example["input_ids"] for example in chosen]
        assert [marked[1:] for _, marked in documents(row)] == [labels_of(example)[1:] for example in chosen]


@pytest.mark.parametrize("side", SIDES)
def test_packed_rows_can_be_fed_to_a_trainer(prepared_examples, side):
    for pack in prepared_examples.packed(side):
        assert sum(pack["seq_lengths"]) == len(pack["input_ids"]) == len(pack["labels"]) <= 1024
        assert all(label in (IGNORE, number) for label, number in zip(pack["labels"], pack["input_ids"], strict=True))
        for _, marked in documents(pack):
            assert marked[0] == IGNORE
            assert any(label != IGNORE for label in marked)


def test_token_counts_are_those_of_the_examples(prepared_examples):
    examples, report = prepared_examples.examples(), prepared_examples.report
    assert report["tokens"]["total"] == sum(len(example["input_ids"]) for example in examples)
    marked = [label for example in examples for label in labels_of(example)]
    assert report["trained_tokens"]["total"] == sum(label != IGNORE for label in marked)
    assert report["lengths"]["max"] == max(len(example["input_ids"]) for example in examples)


def test_every_example_is_a_stored_conversation_of_its_place(prepared_examples):
    for side in SIDES:
        keys = ("source", "source_file", "source_line")
        rows = [(row["id"], *(row[key] for key in keys)) for row in prepared_examples.conversations(side)]
        examples = [(row["row_id"], *(row[key] for key in keys)) for row in prepared_examples.examples(side)]
        assert examples == rows


def test_just_the_recorded_answers_train(prepared_examples, tokenizer):
    rows = {row["id"]: row for row in prepared_examples.conversations()}
    for example in prepared_examples.examples():
        messages = rows[example["row_id"]]["messages"]
        weights = rows[example["row_id"]]["weights"] or [None] * len(messages)
        said = [message["content"][0]["text"] for message in messages]
        trained = "".join(trained_texts(example, tokenizer))
        for message, text, weight in zip(messages, said, weights, strict=True):
            if message["role"] == "assistant" and weight != 0 and message["recipient"] is None:
                assert text.strip() in trained
        assert trained.endswith("<|im_end|>")
        assert "<|im_start|>" not in trained


def test_real_rows_of_every_dialect_are_prepared(prepare, llamafactory_data):
    names = ["glaive_toolcall_en_demo", "glaive_toolcall_zh_demo", "alpaca_zh_demo", "identity"]
    published = prepare(*(llamafactory_data / f"{name}.json" for name in names), "--max-tokens", "2048")
    report = published.report
    assert set(report["per_source"]) == set(names)
    assert all(sums(source["rows"]) and source["rows"]["accepted"] for source in report["per_source"].values())
    lengths = [len(example["input_ids"]) for example in published.examples()]
    tokens = sum(sum(pack["seq_lengths"]) for pack in published.packed())
    assert tokens == sum(lengths) == report["tokens"]["total"]


def test_preference_data_are_refused_by_name(turnmill, llamafactory_data, tmp_path):
    answer = turnmill("prepare", llamafactory_data / "dpo_en_demo.json", "--model", "smollm2", "-o", tmp_path / "out")
    assert answer.code == 2
    assert "preference" in answer.err
    assert not (tmp_path / "out").exists()


def test_limit_reads_so_many_rows_of_each_source(turnmill, llamafactory_data, tmp_path):
    data = [llamafactory_data / "identity.json", llamafactory_data / "alpaca_en_demo.json"]
    answer = turnmill("prepare", *data, "--model", "smollm2", "-o", tmp_path / "out", "--limit", 7, "--json")
    assert [source["rows"]["read"] for source in answer.json["per_source"].values()] == [7, 7]


def test_a_dry_run_writes_nothing(turnmill, examples_config, tmp_path):
    before = hashes(tmp_path)
    answer = turnmill("prepare", examples_config, "--output", tmp_path / "out", "--dry-run", "--json")
    assert answer.json["rows"] == {"assistant": 20, "tools": 16, "instructions": 20, "faulty": 16}
    assert hashes(tmp_path) == before
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_ends_with_the_command_that_does_it(turnmill, examples_config, tmp_path):
    flags = ["--seed", "3", "--loss.turns", "last", "--output", str(tmp_path / "out")]
    answer = turnmill("prepare", examples_config, *flags, "--dry-run")
    assert answer.next_step == f"turnmill prepare {examples_config} {' '.join(flags)}"


def test_without_materialising_only_plans_are_written(prepare, chats):
    published = prepare(chats("rows.jsonl", ["a", "b"]), "--pack.materialise", "false")
    assert published.packed() == []
    assert published.plan() == [[0]]


def test_a_row_that_does_not_fit_is_cut_at_a_turn_or_dropped(prepare, chats, tokenizer):
    rows = chats("rows.jsonl", ["one", "first answer", "two", "word " * 200], ["a", "b"])
    published = prepare(rows, "--max-tokens", "40")
    assert trained_texts(published.examples()[0], tokenizer) == ["first answer<|im_end|>"]
    assert published.report["per_source"]["rows"]["counts"]["fit/cut"] == 1
    dropped = prepare(rows, "--max-tokens", "40", "--fit.overflow", "drop", output="dropped")
    assert dropped.report["rows"]["rejected"] == 1


def test_kept_order_is_the_order_of_the_rows(prepare, chats):
    rows = chats("rows.jsonl", *([f"question {n}", "word " * (n + 1)] for n in range(30)))
    published = prepare(rows, "--pack.order", "kept", "--max-tokens", "100")
    assert [number for pack in published.plan() for number in pack] == list(range(30))


def test_text_is_the_recorded_text(prepare, chats):
    texts = ["  tabs\tand\r\nlines \u2028 \x85 é e\u0301 \U0001f468\u200d\U0001f469 ", "\n  return 1\n\n"]
    published = prepare(chats("rows.jsonl", texts))
    stored = [message["content"][0]["text"] for message in published.conversations()[0]["messages"]]
    assert stored == texts


def test_json_answer_is_one_value_on_stdout(turnmill, chats, tmp_path):
    answer = turnmill("prepare", chats("rows.jsonl", ["a", "b"]), "--model", "smollm2", "-o", tmp_path / "o", "--json")
    assert json.loads(answer.out)["rows"]["accepted"] == 1
    assert Published(tmp_path / "o").report["rows"]["accepted"] == 1


@pytest.mark.parametrize("side", SIDES)
def test_explain_says_of_raw_data_what_was_published(turnmill, examples_config, prepared_examples, tokenizer, side):
    explained = {row["row"]: row for row in turnmill("explain", examples_config, "all", "--json").rows}
    rows = prepared_examples.conversations(side)
    assert rows
    for row, example in zip(rows, prepared_examples.examples(side), strict=True):
        said = explained[row["row"]]["examples"][0]
        assert (said["input_ids"], said["labels"]) == (example["input_ids"], labels_of(example))
        trained = "".join(said["text"][span["start"] : span["end"]] for span in said["spans"] if span["trained"])
        assert "".join(trained_texts(example, tokenizer)) == trained

"""Raw texts beside chats, from the file to OUT and back."""

from __future__ import annotations

import json

import pytest

from chats import numbered

LONG = " ".join(f"Sentence number {n}." for n in range(120))
TEXTS = [{"text": LONG, "id": "long"}, {"text": "Short one.", "url": "u"}, {"text": "Short one."}, {"text": " "}]


@pytest.fixture
def texts(rows):
    return rows(*TEXTS, name="texts.jsonl")


def test_texts_and_chats_are_prepared_together(prepare, texts, chats, tokenizer):
    out = prepare(texts, chats("chats.jsonl", *numbered(4)), "--max-tokens", "100")
    assert out.report["rows"] | {"eval": 0} == out.report["rows"]
    assert {code: n for code, n in out.report["codes"].items() if n} == {"blank-text": 1, "duplicate": 1}
    parts = [row for row in out.examples() if row["source"] == "texts" and row["source_line"] == 1]
    ids = [token for row in parts for token in row["input_ids"]]
    assert ids == [*tokenizer.encode(LONG).ids, tokenizer.token_to_id("<|im_end|>")]
    assert [row["part"] for row in parts] == list(range(len(parts)))
    assert len(parts) > 1
    assert {weight for row in parts for weight in row["run_weights"]} == {1.0}
    assert sum(row["source"] == "chats" for row in out.examples()) == 4


def test_the_first_token_of_a_packed_text_is_ignored_and_no_other(prepare, texts):
    out = prepare(texts, "--max-tokens", "64")
    for pack in out.packed():
        start = 0
        for length in pack["seq_lengths"]:
            labels = pack["labels"][start : start + length]
            assert labels == [-100, *pack["input_ids"][start + 1 : start + length]]
            start += length


def test_out_is_read_again_as_it_is(prepare, texts):
    first = prepare(texts, "--max-tokens", "100")
    again = prepare(first.folder, "--max-tokens", "100", output="again")
    assert [row["input_ids"] for row in again.examples()] == [row["input_ids"] for row in first.examples()]
    assert {row["id"] for row in again.conversations()} == {row["id"] for row in first.conversations()}


def test_explain_shows_what_is_around_a_text(turnmill, texts):
    answer = turnmill("explain", texts, "1", "--model", "smollm2", "--json")
    found = json.loads(answer.out)
    assert found["text"] == "Short one.<|im_end|>"
    assert found["labels"] == found["input_ids"]
    assert found["turns"] == [{"message": 0, "trained": True, "why": "trained", "role": "assistant"}]


@pytest.mark.parametrize("engine", [["--model", "smollm2"], ["--template", "chatml"]])
def test_census_counts_texts_as_answers(turnmill, texts, engine):
    found = json.loads(turnmill("census", texts, *engine, "--json").out)
    assert found["rows"]["accepted"] == 2
    trained = found[f"trained_{found['unit']}" if f"trained_{found['unit']}" in found else "trained_tokens"]
    assert trained["answer"] == trained["total"] > 0


HOLDS = {"text": "How a turn ends: <|im_end|>"}


@pytest.mark.parametrize(
    ("policy", "accepted", "ends"), [(None, 1, 1), ("reject", 1, 1), ("escape", 2, 2), ("keep", 2, 2)]
)
def test_control_tokens_are_for_the_source_to_say(turnmill, rows, write, tmp_path, policy, accepted, ends):
    source = {"name": "s", "data": str(rows(HOLDS, {"text": "fine"})), "dialect": "text"}
    source |= {"control_tokens": policy} if policy else {}
    config = write("run.yaml", json.dumps({"model": {"name_or_path": "smollm2"}, "sources": [source]}))
    answer = turnmill("prepare", config, "--output", tmp_path / "out", "--render.control_tokens", "keep", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert (found["rows"]["accepted"], found["codes"]) == (
        accepted,
        {} if accepted == 2 else {"text-holds-control-tokens": 1},
    )


def test_many_texts_with_control_tokens_stop_the_run_and_say_what_to_type(turnmill, rows, tmp_path):
    held = rows(*({"text": f"{n} <|im_end|>"} for n in range(30)), {"text": "fine"}, name="s.jsonl")
    call = ["prepare", held, "--dialect", "text", "--model", "smollm2", "--output", tmp_path / "out"]
    answer = turnmill(*call)
    assert answer.code == 3
    assert answer.next_step.endswith("--sources.s.control_tokens escape")
    assert turnmill(*answer.next_step.split()[1:]).code == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "chat"}, "mode of source 's' is chat"),
        ({"mode": "chat", "dialect": "text"}, "got chat beside the dialect 'text'"),
        ({"mode": "text", "dialect": "openai"}, "got text beside the dialect 'openai'"),
        ({"mode": "sft"}, "got 'sft'"),
    ],
)
def test_a_mode_that_is_not_the_data_s_is_refused(turnmill, texts, write, tmp_path, given, said):
    source = {"name": "s", "data": str(texts), **given}
    answer = turnmill("check", write("run.yaml", json.dumps({"sources": [source]})))
    assert answer.code == 2
    assert said in answer.err


def test_mode_text_takes_transcripts_for_raw_texts(turnmill, rows, write):
    data = rows({"text": "### Human: q### Assistant: a"}, name="t.jsonl")
    assert "--dialect text" in turnmill("check", data).err
    config = write("run.yaml", json.dumps({"sources": [{"name": "s", "data": str(data), "mode": "text"}]}))
    assert turnmill("check", config).code == 0


def test_filters_look_at_texts_and_splits_hold_them_out(prepare, rows):
    held = rows(*({"text": f"Text {n}."} for n in range(40)), {"text": "I am ChatGPT, made by OpenAI."})
    out = prepare(held, "--filter.use", "[product-names]", "--split.rows", "5")
    assert (out.report["rows"]["filtered"], out.report["rows"]["eval"]) == (1, 5)
    assert len(out.examples("eval")) == 5

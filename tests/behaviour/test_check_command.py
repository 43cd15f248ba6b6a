from __future__ import annotations

import json

import pytest

KEYS = ["row", "source_file", "source_line", "accepted", "code", "message", "detail", "id", "turns"]
GOOD = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
BAD = {"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "again"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
STALLED = {
    "messages": [
        {"role": "user", "content": "go"},
        *[CALL, {"role": "tool", "content": "x"}] * 3,
        {"role": "assistant", "content": "no"},
    ],
    "tools": [TOOL],
}


def test_every_row_is_one_object_with_the_same_keys(turnmill, rows) -> None:
    found = turnmill("check", rows(GOOD, BAD, STALLED), "--json").rows
    assert [list(row) for row in found] == [KEYS] * 3
    assert [row["row"] for row in found] == [0, 1, 2]
    assert [row["source_line"] for row in found] == [1, 2, 3]
    assert {row["source_file"] for row in found} == {"rows.jsonl"}


def test_an_accepted_row_has_its_id_and_neutral_turns(turnmill, rows) -> None:
    (row,) = turnmill("check", rows(GOOD), "--json").rows
    assert row["accepted"]
    assert (row["code"], row["message"], row["detail"]) == (None, None, None)
    assert len(row["id"]) == 32
    assert row["turns"] == [["user", "hi"], ["final", "yo"]]


@pytest.mark.parametrize(
    ("record", "code", "detail"),
    [
        (BAD, "user-after-user", {"at": 1, "stage": "check", "class": "rejected"}),
        ({"messages": []}, "no-messages", {"at": None, "stage": "convert", "class": "rejected"}),
        (["no object"], "record-not-an-object", {"at": None, "stage": "read", "class": "rejected"}),
        (STALLED, "stalled-tool-call", {"at": 5, "stage": "filter", "class": "stalled"}),
    ],
)
def test_a_row_that_leaves_says_why_and_where(turnmill, rows, record, code: str, detail: dict) -> None:
    row = turnmill("check", rows(GOOD, record), "--json", "--dialect", "openai").rows[1]
    assert not row["accepted"]
    assert (row["code"], row["detail"], row["id"], row["turns"]) == (code, detail, None, None)
    assert row["message"]


def test_a_filter_that_is_off_lets_no_row_go(turnmill, rows) -> None:
    (row,) = turnmill("check", rows(STALLED), "--json", "--filter.use", "[]").rows
    assert row["accepted"]


def test_every_row_is_printed_before_a_health_limit_fails(turnmill, rows) -> None:
    data = rows(*[GOOD] * 18, BAD, BAD)
    answer = turnmill("check", data, "--json")
    assert (answer.code, len(answer.rows)) == (3, 20)
    assert "2 of 20 rows were rejected (10.0%), over the limit of 5.0%" in answer.err
    assert answer.next_step == f"turnmill explain {data} 18"


def test_one_source_over_its_limit_hides_no_other(turnmill, rows) -> None:
    data = [rows(BAD, name="a.jsonl"), rows(GOOD, name="b.jsonl"), rows(BAD, name="c.jsonl")]
    answer = turnmill("check", *data, "--json")
    assert (answer.code, [row["accepted"] for row in answer.rows]) == (3, [False, True, False])
    assert "source 'a': none of its 1 rows was accepted" in answer.err
    assert "source 'c'" in answer.err


def test_stalled_rows_are_outside_the_health_limit(turnmill, rows) -> None:
    answer = turnmill("check", rows(*[GOOD] * 18, STALLED, STALLED))
    assert answer.code == 0
    assert "20 rows, 18 accepted" in answer.out


def test_the_human_form_names_bad_rows_counts_codes_and_says_what_to_do(turnmill, rows) -> None:
    data = rows(GOOD, BAD)
    answer = turnmill("check", data)
    assert answer.code == 0
    first, summary, _, code = answer.out.splitlines()
    assert first.startswith("rows.jsonl:2  row 1  user-after-user: ")
    assert summary == "rows: 2 rows, 1 accepted"
    assert code.split()[:2] == ["1", "user-after-user"]
    assert "Join the two messages" in code
    assert "under 20 rows that only warns" in answer.err
    assert answer.next_step == f"turnmill prepare {data} --model smollm2 --output out"


def test_auto_says_which_dialect_it_chose_and_why(turnmill, examples) -> None:
    answer = turnmill("check", examples / "tools.json")
    assert answer.err.startswith("tools: tools.json is sharegpt (")


@pytest.mark.parametrize(("name", "rows_in"), [("assistant.jsonl", 20), ("tools.json", 16), ("instructions.json", 20)])
def test_the_good_examples_are_accepted(turnmill, examples, name: str, rows_in: int) -> None:
    accepted = [row["accepted"] for row in turnmill("check", examples / name, "--json").rows]
    assert accepted == [True] * rows_in


def test_a_file_cut_off_is_checked_to_its_fault_and_exits_3(turnmill, write) -> None:
    data = write("cut.json", json.dumps([GOOD, GOOD])[:-10])
    answer = turnmill("check", data, "--json")
    assert answer.code == 3
    assert [row["code"] for row in answer.rows] == [None, "broken-array"]
    assert turnmill("check", data, "--json", "--read.keep_prefix", "true").code == 0


def test_no_data_is_an_error_with_the_next_command(turnmill) -> None:
    answer = turnmill("check")
    assert (answer.code, answer.out, answer.next_step) == (2, "", "turnmill check --help")


def test_a_catalogue_of_data_sets_is_no_data(turnmill, write):
    path = write("dataset_info.json", json.dumps({"a": {"file_name": "a.json"}, "b": {"hf_hub_url": "org/b"}}))
    answer = turnmill("check", path)
    assert (answer.code, answer.next_step) == (2, f"turnmill config import {path} > run.yaml")

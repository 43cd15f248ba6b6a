"""Known faults of chat data, kind by kind (`records.jsonl`): the turns or the code that are right for a record.

Records go through `auto`, the dialect and the contract with default options. A case has `name`, `record`, perhaps
the source's `mapping`, and either `turns` (accepted, in neutral form) or `code` (rejected, perhaps `at` a message);
`counted` names what must be counted on the way.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected, UsageError

CASES = [json.loads(line) for line in (Path(__file__).parent / "records.jsonl").read_text().splitlines()]


def outcome(record: dict, reading: Reading) -> dict:
    name = detect([record], reading.mapping).name
    try:
        return {"turns": neutral_turns(check(convert(record, dialects.get(name), reading)))}
    except Rejected as rejected:
        return {"code": rejected.code} | ({} if rejected.at is None else {"at": rejected.at})


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_known_fault_gets_its_right_answer(case):
    reading = Reading(Mapping(**case.get("mapping", {})))
    right = {key: case[key] for key in ("turns", "code", "at") if key in case}
    assert outcome(case["record"], reading) == right
    assert set(case.get("counted", ())) <= set(reading.counts)


def test_every_case_has_its_own_name():
    assert len({case["name"] for case in CASES}) == len(CASES) > 60


def test_one_chat_in_several_spellings_is_one_row():
    turns = [("from", "value", "user", "assistant"), ("from", "value", "Human", "GPT")]
    turns += [("role", "content", "human", "chatgpt"), ("role", "content", "user", "assistant")]
    chats = [[{who: asker, says: "hi"}, {who: answerer, says: "ho"}] for who, says, asker, answerer in turns]
    records = [{"conversations": chat} for chat in chats] + [{"messages": chats[-1]}]
    ids = {check(convert(r, dialects.get(detect([r], Mapping()).name), Reading())).id for r in records}
    assert len(ids) == 1


def test_a_record_of_no_dialect_ends_the_run_before_it_starts():
    with pytest.raises(UsageError):
        detect([{}], Mapping())

"""SWE-agent: the history of a trajectory, in text and with calls."""

from __future__ import annotations

from collections import Counter

import pytest

from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected
from turnmill.options import Check

NAME = "swe-agent"
ACTION = "I look.\n\n```\nls -F\n```"


def entry(role: str, content, kind: str = "observation", **more) -> dict:
    return {"role": role, "content": content, "agent": "main", "message_type": kind, **more}


SYSTEM = entry("system", "SETTING: a shell.", "system_prompt")
TASK = entry("user", "Mend it.\nbash-$")
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
STEP = {"action": "ls -F\n", "observation": "a.py", "response": ACTION, "thought": "I look.", "state": "{}"}


def record(*history: dict, **more) -> dict:
    return {"trajectory": [STEP], "history": list(history), "info": {"exit_status": "submitted"}, **more}


def read(row: dict, counts: Counter[str] | None = None):
    assert detect([row], Mapping()).name == NAME
    reading = Reading(counts=Counter() if counts is None else counts)
    return check(convert(row, dialects.get(NAME), reading), Check(invalid_tool_call="retain"))


def test_thought_and_action_are_one_text_and_the_last_observation_is_dropped():
    counts: Counter[str] = Counter()
    acted = entry("assistant", ACTION, "action", thought="I look.", action="ls -F\n")
    row = read(record(SYSTEM, TASK, acted, entry("user", "a.py"), acted, entry("user", "a.py")), counts)
    said = [["system", "SETTING: a shell."], ["user", "Mend it.\nbash-$"], ["final", ACTION]]
    assert neutral_turns(row) == [*said, ["user", "a.py"], ["final", ACTION]]
    assert counts["read/trace-tail-dropped"] == 1


def test_calls_and_their_results():
    thinking = [{"type": "thinking", "thinking": "r", "signature": "c"}, {"type": "redacted_thinking", "data": "x"}]
    acted = entry("assistant", "I look.", "action", action="ls", tool_calls=[CALL], thinking_blocks=thinking)
    part = {"type": "text", "text": "a.py", "cache_control": {"type": "ephemeral"}}
    shown = entry("tool", [part], tool_call_ids=["c1"])
    counts: Counter[str] = Counter()
    row = read(record(SYSTEM, TASK, acted, shown, entry("assistant", "Done.", "action", tool_calls=None)), counts)
    assert neutral_turns(row)[2:] == [
        ["analysis", "r"],
        ["commentary", "I look."],
        ["call", "bash", {"command": "ls"}],
        ["result", "bash", "a.py"],
        ["final", "Done."],
    ]
    assert counts["read/reasoning-withheld"] == 1


def test_demonstrations_are_context():
    shown = [entry("user", "Demo task.", is_demo=True), entry("assistant", "demo", "action", is_demo=True)]
    row = read(record(SYSTEM, *shown, TASK, entry("assistant", ACTION, "action")))
    assert [message.weight for message in row.messages if message.role == "assistant"] == [0.0, None]


def test_a_demonstration_as_one_text_joins_the_task():
    counts: Counter[str] = Counter()
    shown = entry("user", "Here is a demonstration.", "demonstration", is_demo=True)
    row = read(record(SYSTEM, shown, TASK, entry("assistant", ACTION, "action")), counts)
    assert row.messages[1].text == "Here is a demonstration.\n\nMend it.\nbash-$"
    assert counts["read/user-events-joined"] == 1


def test_other_agents_are_left_out():
    counts: Counter[str] = Counter()
    other = [{**entry("user", "plan"), "agent": "planner"}, {**entry("assistant", "p", "action"), "agent": "planner"}]
    assert len(read(record(SYSTEM, TASK, *other, entry("assistant", ACTION, "action")), counts).messages) == 3
    assert counts["read/other-agents-dropped"] == 2


@pytest.mark.parametrize(("status", "ended"), [("submitted", None), ("exit_cost", "exit_cost"), (None, None)])
def test_a_run_says_how_it_ended(status, ended):
    row = read(record(SYSTEM, TASK, entry("assistant", ACTION, "action"), info={"exit_status": status}))
    assert row.meta.get("ended") == ended


def test_mini_swe_agents_messages():
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}]
    messages += [{"role": "assistant", "content": ACTION, "extra": {"cost": 1}}, {"role": "exit", "content": "no"}]
    info = {"exit_status": "LimitsExceeded"}
    row = read({"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1"})
    assert neutral_turns(row)[-1] == ["final", ACTION]
    assert row.meta["ended"] == "LimitsExceeded"


def test_steps_without_a_history_hold_no_prompts():
    with pytest.raises(Rejected) as caught:
        convert({"trajectory": [STEP], "environment": "swe_main"}, dialects.get(NAME), Reading())
    assert caught.value.code == "no-messages"

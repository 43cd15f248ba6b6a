"""OpenHands: events of the application and of the SDK, rows with a history, logs of completions."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from session_lines import outcomes, rows_of
from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

NAME = "openhands"
TOOL = {"type": "function", "function": {"name": "execute_bash", "parameters": {"type": "object"}}}
SYSTEM, ASKED = ["system", "Be OpenHands."], ["user", "q"]
CALL, RESULT = ["call", "execute_bash", {"command": "ls"}], ["result", "execute_bash", "out"]
FINISH = ["call", "finish", {"message": "done"}]


def event(number: int, source: str, **more) -> dict:
    return {"id": number, "timestamp": "2026-01-02T03:04:05", "source": source, "message": "shown", **more}


def response(name: str, call: str, *, content: str = "", identity: str = "r1", **arguments) -> dict:
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
    }
    return {"id": identity, "model": "m", "choices": [{"index": 0, "message": message}], "usage": {}}


def action(number: int, name: str, call: str, *, tool: str = "execute_bash", content: str = "", **arguments) -> dict:
    answer = response(tool, call, content=content, identity=f"r{number}", **arguments)
    metadata = {"function_name": tool, "tool_call_id": call, "model_response": answer, "total_calls_in_response": 1}
    return event(number, "agent", action=name, args={**arguments, "thought": content}, tool_call_metadata=metadata)


def observation(number: int, name: str, call: str, content: str = "out", **extras) -> dict:
    metadata = {"function_name": "execute_bash", "tool_call_id": call, "model_response": {"id": "r", "choices": []}}
    more = {"observation": name, "content": content, "extras": extras, "cause": number - 1}
    return event(number, "agent", **more, tool_call_metadata=metadata)


def user(number: int, said: str = "q") -> dict:
    return event(
        number, "user", action="message", args={"content": said, "image_urls": None, "wait_for_response": False}
    )


START = [
    event(0, "agent", action="system", args={"content": "Be OpenHands.", "tools": [TOOL]}),
    user(1),
    event(2, "user", action="recall", args={"query": "q", "recall_type": "workspace_context"}),
    event(3, "environment", observation="recall", content="Added", extras={"recall_type": "workspace_context"}),
]
RUN = [action(4, "run", "c1", command="ls", content="Look."), observation(5, "run", "c1", exit_code=0)]
DONE = action(6, "finish", "c2", tool="finish", message="done")


def test_a_list_of_events_is_a_run():
    counts: Counter[str] = Counter()
    expected = [SYSTEM, ASKED, ["commentary", "Look."], CALL, RESULT, FINISH]
    assert outcomes(NAME, [*START, *RUN, DONE], counts) == [expected]
    assert counts["read/event-dropped/recall"] == 2


def test_tools_are_those_of_the_system_message():
    (row,) = rows_of(NAME, [*START, *RUN])
    assert convert(row.value, dialects.get(NAME), Reading()).tools == (TOOL,)


def test_actions_of_one_response_are_said_once():
    first, second = action(4, "run", "c1", command="ls"), action(5, "run", "c2", command="ls")
    whole, other = (one["tool_call_metadata"]["model_response"] for one in (first, second))
    whole["choices"][0]["message"]["tool_calls"] += other["choices"][0]["message"]["tool_calls"]
    second["tool_call_metadata"]["model_response"] = whole
    results = [observation(6, "run", "c1"), observation(7, "run", "c2")]
    found = outcomes(NAME, [*START, first, second, *results, DONE | {"id": 8}])
    assert found == [[SYSTEM, ASKED, CALL, CALL, RESULT, RESULT, FINISH]]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (event(6, "agent", action="message", args={"content": "a"}), ["commentary", "a"]),
        (event(6, "agent", action="message", args={"content": "<think>r</think>a"}), ["analysis", "r"]),
        (event(6, "agent", action="finish", args={"final_thought": "x"}), "answer-not-recorded"),
        (event(6, "user", action="message", args={"content": "x", "image_urls": ["data:"]}), "non-text-content"),
    ],
)
def test_messages_and_what_cannot_be_read(last, said):
    (found,) = outcomes(NAME, [*START, *RUN, last, event(7, "agent", action="message", args={"content": "b"})])
    assert said == found if isinstance(found, str) else said in found


def test_an_error_without_a_call_is_told_to_the_agent():
    error = event(4, "environment", observation="error", content="It is stuck.", extras={"error_id": ""})
    assert outcomes(NAME, [*START, error, DONE]) == [[SYSTEM, ["user", "q\n\nIt is stuck."], FINISH]]


@pytest.mark.parametrize(
    "forgotten", [{"forgotten_event_ids": [4, 5]}, {"forgotten_events_start_id": 4, "forgotten_events_end_id": 5}]
)
def test_a_condensation_begins_a_new_conversation(forgotten):
    condensed = event(8, "agent", action="condensation", args={**forgotten, "summary": "S.", "summary_offset": 2})
    later = [action(9, "run", "c9", command="ls"), observation(10, "run", "c9")]
    found = outcomes(NAME, [*START, *RUN, condensed, *later])
    assert found == [[SYSTEM, ASKED, ["commentary", "Look."], CALL], [SYSTEM, ["user", "q\n\nS."], CALL]]


def test_what_was_forgotten_must_be_recorded():
    condensed = event(8, "agent", action="condensation", args={"summary": "S."})
    assert outcomes(NAME, [*START, *RUN, condensed, DONE])[1] == "session-torn"


def test_an_agent_that_was_delegated_to_is_a_row_of_its_own():
    delegate = action(4, "delegate", "c1", tool="delegate_to_browser", agent="BrowsingAgent", inputs={})
    own = [user(5, "TASK: look"), action(6, "run", "c5", command="ls"), observation(7, "run", "c5")]
    own.append(event(8, "agent", action="message", args={"content": "seen"}))
    back = observation(9, "delegate", "c1", "seen", outputs={})
    rows = rows_of(NAME, [*START, delegate, *own, back, DONE | {"id": 10}])
    main, agent = outcomes(NAME, [*START, delegate, *own, back, DONE | {"id": 10}])
    assert main[2][:2] == ["call", "delegate_to_browser"]
    assert main[3] == ["result", "delegate_to_browser", "seen"]
    assert agent == [["user", "TASK: look"], CALL, RESULT, ["final", "seen"]]
    assert (rows[1].value["agent"], rows[1].value["parent_call"]) == ("BrowsingAgent", "c1")


def sdk(kind: str, source: str, **more) -> dict:
    return {"id": f"e{abs(hash(kind + str(more))) % 9999}", "timestamp": "t", "source": source, **more, "kind": kind}


def parts(text: str) -> list[dict]:
    return [{"cache_prompt": False, "type": "text", "text": text}]


def message(source: str, text: str) -> dict:
    role = "assistant" if source == "agent" else source
    return sdk("MessageEvent", source, llm_message={"role": role, "content": parts(text)}, extended_content=[])


SDK = [
    sdk("SystemPromptEvent", "agent", system_prompt=parts("Be OpenHands.")[0], tools=[TOOL]),
    message("user", "q"),
    sdk("ConversationStateUpdateEvent", "environment", key="x", value="y"),
    sdk("ActionEvent", "agent", thought=parts("Look."), reasoning_content="r", thinking_blocks=[],
        action={"command": "ls", "kind": "ExecuteBashAction"}, tool_name="execute_bash", tool_call_id="c1",
        tool_call={"id": "c1", "name": "execute_bash", "arguments": '{"command": "ls"}', "origin": "completion"},
        llm_response_id="r1"),
    sdk("ObservationEvent", "environment", tool_name="execute_bash", tool_call_id="c1", action_id="a",
        observation={"content": parts("out"), "is_error": False, "kind": "ExecuteBashObservation"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("end", "turns"),
    [
        ([message("agent", "a")], [RESULT, ["final", "a"]]),
        ([sdk("AgentErrorEvent", "agent", tool_name="execute_bash", tool_call_id="c1", error="no"),
          message("agent", "a")], "tool-reply-unmatched"),
        ([], []),
    ],
)  # fmt: skip
def test_events_of_the_sdk_are_read(end, turns):
    (found,) = outcomes(NAME, [*SDK, *end])
    expected = [SYSTEM, ASKED, ["analysis", "r"], ["commentary", "Look."], CALL]
    assert found == ([*expected, *turns] if isinstance(turns, list) else turns)


def test_an_sdk_condensation_forgets_by_id():
    forgotten = [SDK[3]["id"], SDK[4]["id"]]
    condensed = sdk("Condensation", "environment", forgotten_event_ids=forgotten, summary="S.", summary_offset=2)
    found = outcomes(NAME, [*SDK, condensed, message("agent", "a")])
    assert found[1] == [SYSTEM, ["user", "q\n\nS."], ["final", "a"]]


@pytest.mark.parametrize("paired", [False, True])
def test_a_row_with_a_history_is_a_run(paired):
    events = [*START, *RUN, DONE]
    history = [[events[n], events[n + 1]] for n in range(0, 6, 2)] + [[DONE]] if paired else events
    record = {"instance_id": "i1", "history": history, "metadata": {}, "test_result": {}}
    assert detect([record], Mapping()).name == NAME
    assert neutral_turns(convert(record, dialects.get(NAME), Reading()))[-2:] == [RESULT, FINISH]


def read(record: dict, counts: Counter[str] | None = None):
    return convert(record, dialects.get(NAME), Reading(counts=Counter() if counts is None else counts))


def test_a_history_with_a_condensation_gives_its_last_conversation():
    counts: Counter[str] = Counter()
    condensed = event(8, "agent", action="condensation", args={"forgotten_event_ids": [4, 5], "summary": "S."})
    row = read({"history": [*START, *RUN, condensed, DONE]}, counts)
    assert neutral_turns(row) == [SYSTEM, ["user", "q\n\nS."], FINISH]
    assert counts["read/condensed-history-dropped"] == 1


def test_a_history_without_answers_is_no_row():
    with pytest.raises(Rejected) as caught:
        read({"history": START})
    assert caught.value.code == "no-messages"


def test_a_logged_completion_trains_its_response_alone():
    messages = [{"role": "user", "content": parts("q")}, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c0", "type": "function", "function": {"name": "execute_bash", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c0", "content": parts("out")}]  # fmt: skip
    answer = response("execute_bash", "c1", command="ls")
    record = {"messages": messages, "response": answer, "kwargs": {"tools": [TOOL]}}
    assert detect([record], Mapping()).name == NAME
    row = check(read(record | {"cost": 0.1}))
    assert [message.weight for message in row.messages] == [None, 0.0, 0.0, None]
    assert neutral_turns(row)[-1] == CALL

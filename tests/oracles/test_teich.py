"""What teich reads out of sessions is what we read, but for what it leaves out, joins and trims on purpose.

It reads a file as one conversation, so that only sessions without branches are compared. It trims texts, keeps what
stands behind the last answer, and drops what the harness says before the first prompt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from session_lines import outcomes

pytestmark = pytest.mark.oracles

EXAMPLES = Path(__file__).parents[2] / "examples" / "traces"
LAYOUTS = Path(__file__).parents[1] / "layouts" / "sessions.jsonl"
CASES = [json.loads(line) for line in LAYOUTS.read_text("utf-8").splitlines()]
COMPARED = [
    case
    for case in CASES
    if case["dialect"] in ("claude-code", "codex") and len(case["rows"]) == 1 and "early" not in case["name"]
]
OTHERWISE = {
    "Claude Code log: a request that failed": "it keeps the failed request as an answer",
    "Codex rollout: a patch as free text, a local shell": "it leaves the call of the local shell out",
}
"""Sessions that it reads otherwise, and how."""


def theirs(path: Path) -> list[list[Any]]:
    """What teich reads out of a session: texts, reasoning, calls and results in order."""
    from teich.converter import convert_trace_to_training_example

    said: list[list[Any]] = []
    for message in convert_trace_to_training_example(path).to_dict()["messages"]:
        if message.get("reasoning_content"):
            said.append(["analysis", message["reasoning_content"].strip()])
        if message["role"] == "tool":
            said.append(["result", message["content"].strip()])
        elif message["content"]:
            said.append([message["role"], message["content"].strip()])
        said += [_call(call["function"]) for call in message.get("tool_calls") or ()]
    return said


def _call(function: dict[str, Any]) -> list[Any]:
    """A call; the free text of a patch is the argument `input` here, and `patch` there."""
    name, arguments = function["name"], function["arguments"]
    return ["call", name, {"input": arguments["patch"]} if name == "apply_patch" else arguments]


def ours(turns: list[list[Any]]) -> list[list[Any]]:
    """Our turns in the same words."""
    said: list[list[Any]] = []
    for kind, *rest in turns:
        if kind == "result":
            said.append(["result", rest[1].strip()])
        elif kind in ("commentary", "final"):
            said.append(["assistant", rest[0].strip()])
        else:
            said.append([kind, *(text.strip() if isinstance(text, str) else text for text in rest)])
    return said


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case["name"])
def test_a_session_without_branches_is_read_alike(case, tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in case["lines"]))
    own, other = ours(case["rows"][0]), theirs(path)
    if case["name"] in OTHERWISE:
        assert own != other[: len(own)]
    else:
        assert own == other[: len(own)]


@pytest.mark.parametrize("name", ["agent-a7c31.jsonl", "rollout-2026-03-02T09-10-00-019c0000.jsonl"])
def test_the_examples_are_read_alike(name):
    lines = [json.loads(line) for line in (EXAMPLES / name).read_text("utf-8").splitlines()]
    (turns,) = outcomes("codex" if name.startswith("rollout") else "claude-code", lines)
    prompted = [[kind, rest[0].rpartition("\n\n")[2]] if kind == "user" else [kind, *rest] for kind, *rest in turns]
    assert ours(prompted) == theirs(EXAMPLES / name)[: len(turns)]

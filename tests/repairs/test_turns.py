"""Repairs that drop, join or move whole turns."""

from __future__ import annotations

import pytest

U, A, S = "user", "assistant", "system"
F = "final"


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ([(U, "a"), (U, "b"), (A, "c")], [[U, "a\n\nb"], [F, "c"]]),
        ([(U, "a"), (U, " b "), (U, "c\n"), (A, "d")], [[U, "a\n\n b \n\nc\n"], [F, "d"]]),
        ([(U, "a"), (A, "b"), (A, "c")], [[U, "a"], [F, "b\n\nc"]]),
        (
            [(U, "a"), (A, "b"), (U, "c"), (U, "d"), (A, "e"), (A, "f")],
            [[U, "a"], [F, "b"], [U, "c\n\nd"], [F, "e\n\nf"]],
        ),
    ],
)
def test_turns_that_follow_one_another_are_joined(mend, said, turns):
    mended = mend("merge-turns", said)
    assert (mended.outcome, mended.touched) == (turns, ["merge-turns"])


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([(S, "a"), (S, "b"), (U, "c"), (A, "d")], [[S, "a"], [S, "b"], [U, "c"], [F, "d"]]),
        ([(U, "a"), (A, "<think>r</think>b"), (A, "<think>s</think>c")], "assistant-after-final"),
        ([(U, "a"), (A, "b")], [[U, "a"], [F, "b"]]),
    ],
)
def test_what_belongs_apart_stays_apart(mend, said, code):
    mended = mend("merge-turns", said)
    assert (mended.outcome, mended.touched) == (code, [])


@pytest.mark.parametrize(
    ("first", "second", "joins"),
    [
        ({"weight": 0}, {"weight": 1}, False),
        ({"weight": 0}, {}, False),
        ({"weight": 0}, {"train": False}, True),
        ({"name": "ann"}, {"name": "bob"}, False),
        ({"name": "ann"}, {"name": "ann"}, True),
    ],
)
def test_turns_of_other_weights_or_authors_stay_apart(mend, first, second, joins):
    said = [{"role": A, "content": "b", **first}, {"role": A, "content": "c", **second}]
    mended = mend("merge-turns", {"messages": [{"role": U, "content": "a"}, *said]})
    assert bool(mended.touched) == joins
    assert len(mended.conversation.messages) == (2 if joins else 3)


def test_a_recorded_original_is_joined_too(mend):
    mended = mend("merge-turns", [(U, "a"), (A, "<think>r</think>b"), (A, "c")])
    assert mended.outcome == [[U, "a"], ["analysis", "r"], [F, "b\n\nc"]]
    assert mended.conversation.verbatim == {1: "<think>r</think>b\n\nc"}
    assert [message.recorded for message in mended.conversation.messages] == [0, 1, 1]


@pytest.mark.parametrize(
    ("said", "turns", "touched"),
    [
        ([(U, "q1"), (A, "a1"), (U, "q2")], [[U, "q1"], [F, "a1"]], True),
        ([(U, "q1"), (A, "a1"), (U, "q2"), (U, "q3")], [[U, "q1"], [F, "a1"]], True),
        ([(U, "q1"), (A, "a1")], [[U, "q1"], [F, "a1"]], False),
        ([(U, "q1")], "no-assistant-turn", False),
        ([(S, "s"), (U, "q1"), (U, "q2")], "user-after-user", False),
    ],
)
def test_questions_that_nobody_answered_leave(mend, said, turns, touched):
    mended = mend("drop-trailing-user", said)
    assert (mended.outcome, bool(mended.touched)) == (turns, touched)


@pytest.mark.parametrize(
    ("said", "turns", "touched"),
    [
        ([(U, "q"), (A, "a"), (U, " \n"), (A, "")], [[U, "q"], [F, "a"]], True),
        ([(U, ""), (U, "q"), (A, None), (A, "a")], [[U, "q"], [F, "a"]], True),
        ([(S, ""), (U, "q"), (A, "a")], [[S, ""], [U, "q"], [F, "a"]], False),
        ([(U, "q"), (A, "<think>r</think>\n")], "turn-without-answer", False),
        ([(U, " "), (A, "")], "no-messages", True),
    ],
)
def test_empty_turns_leave(mend, said, turns, touched):
    mended = mend("drop-empty-turns", said)
    assert (mended.outcome, bool(mended.touched)) == (turns, touched)


TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]


def calls(*named: tuple[str, str]) -> dict:
    functions = [{"id": key, "function": {"name": key[0], "arguments": {"city": city}}} for key, city in named]
    return {"role": A, "content": "", "tool_calls": functions}


def reply(key: str, text: str) -> dict:
    return {"role": "tool", "tool_call_id": key, "content": text}


def test_several_calls_become_one_after_another(mend):
    asked = [{"role": U, "content": "both?"}, calls(("f1", "Oslo"), ("f2", "Rome"))]
    messages = [*asked, reply("f2", "19C"), reply("f1", "5C"), {"role": A, "content": "ok"}]
    mended = mend("split-parallel-calls", {"messages": messages, "tools": TOOLS})
    assert mended.outcome == [
        [U, "both?"],
        ["call", "f", {"city": "Oslo"}], ["result", "f", "5C"],
        ["call", "f", {"city": "Rome"}], ["result", "f", "19C"],
        [F, "ok"],
    ]  # fmt: skip
    assert mended.touched == ["split-parallel-calls"]


@pytest.mark.parametrize(
    "messages",
    [
        [calls(("f1", "Oslo")), reply("f1", "5C"), {"role": A, "content": "ok"}],
        [calls(("f1", "Oslo"), ("f2", "Rome"))],
        [calls(("f1", "Oslo"), ("g1", "Rome")), reply("f1", "5C")],
    ],
)
def test_other_batches_stay_as_they_are(mend, messages):
    asked = [{"role": U, "content": "both?"}, *messages]
    assert mend("split-parallel-calls", {"messages": asked, "tools": TOOLS}).touched == []


def test_text_beside_calls_stays_before_the_first(mend):
    told = {**calls(("f1", "Oslo"), ("g1", "Rome")), "content": "Both.", "reasoning": "two"}
    messages = [{"role": U, "content": "go"}, told, reply("f1", "5C"), reply("g1", "19C"), calls(("g2", "Bern"))]
    mended = mend("split-parallel-calls", {"messages": messages, "tools": TOOLS})
    assert [turn[0] for turn in mended.outcome] == [
        U, "analysis", "commentary", "call", "result", "call", "result", "call",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ([(U, "a"), (A, "b"), (S, "s"), (U, "c"), (A, "d")], [[U, "a"], [F, "b"], [U, "s\n\nc"], [F, "d"]]),
        ([(U, "a"), (S, "s"), (A, "d")], [[U, "a\n\ns"], [F, "d"]]),
        ([(U, "a"), (S, "s"), (S, "t"), (U, "c"), (A, "d")], [[U, "a\n\ns\n\nt\n\nc"], [F, "d"]]),
        ([(S, "x"), (U, "a"), (A, "b"), (S, "s"), (A, "d")], [[S, "x"], [U, "a"], [F, "b"], [U, "s"], [F, "d"]]),
    ],
)
def test_late_instructions_are_the_users(mend, said, turns):
    mended = mend("late-system-to-user", said)
    assert (mended.outcome, mended.touched) == (turns, ["late-system-to-user"])


@pytest.mark.parametrize("said", [[(S, "x"), (S, "y"), (U, "a"), (A, "b")], [(U, "a"), (U, "b"), (A, "c")]])
def test_nothing_late_is_nothing_to_mend(mend, said):
    assert mend("late-system-to-user", said).touched == []

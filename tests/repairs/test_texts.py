"""Repairs that change texts."""

from __future__ import annotations

import pytest

U, A = "user", "assistant"
F, R = "final", "analysis"


def test_ends_are_stripped(mend):
    mended = mend("strip-ends", [("system", " s "), (U, "\tq\n"), (A, "<think>\n r </think>\n\n  a\n b \n")])
    assert mended.outcome == [["system", "s"], [U, "q"], [R, "r"], [F, "a\n b"]]
    assert mended.conversation.verbatim == {2: "<think>\n r </think>\n\n  a\n b"}


def test_results_keep_their_ends(mend):
    call = {"role": A, "tool_calls": [{"function": {"name": "f", "arguments": {"code": " x "}}}]}
    record = {"messages": [{"role": U, "content": "q "}, call, {"role": "tool", "content": " out\r\n"}]}
    assert mend("strip-ends", record).turns == [[U, "q"], ["call", "f", {"code": " x "}], ["result", "f", " out\r\n"]]
    assert mend("normalise-newlines", record).turns[2] == ["result", "f", " out\n"]


@pytest.mark.parametrize(
    ("text", "becomes"), [("x\r\ny", "x\ny"), ("x\ry", "x\ny"), ("x\r\r\ny\r", "x\n\ny\n"), ("x\n\u2028\x85y", None)]
)
def test_newlines_become_line_feeds(mend, text, becomes):
    mended = mend("normalise-newlines", [(U, text), (A, "z")])
    assert mended.outcome == [[U, becomes or text], [F, "z"]]
    assert mended.touched == (["normalise-newlines"] if becomes else [])


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Add them.\n</think>\n\nFour.", [[R, "Add them."], [F, "Four."]]),
        ("Add them.</think>Four.", [[R, "Add them."], [F, "Four."]]),
        ("\nAdd\n\nthem. </think>\nFour.\n", [[R, "Add\n\nthem. "], [F, "Four.\n"]]),
        ("Add them.\n</think> Four.", [[R, "Add them."], [F, " Four."]]),
        ("\n</think>\n\nFour.", [[F, "Four."]]),
        ("Add them.\n[/THINK]\nFour.", [[R, "Add them."], [F, "Four."]]),
    ],
)
def test_a_missing_opener_is_restored(mend, text, turns):
    mended = mend("reopen-think", [(U, "2+2?"), (A, text)])
    assert (mended.outcome, mended.touched) == ([[U, "2+2?"], *turns], ["reopen-think"])
    assert mended.conversation.verbatim[1].count("hink>") + mended.conversation.verbatim[1].count("THINK]") == 2


@pytest.mark.parametrize(
    "text",
    [
        "A block ends with </think> as you see.",
        "Write `</think>` at its end.",
        "Write\n```\n</think>\n```\nat its end.",
        "one\n</think>\ntwo\n</think>\nthree",
        "first <think> then\n</think>\nend",
        "one\n</think>\ntwo\n[/THINK]\nthree",
        "no tag at all",
    ],
)
def test_a_tag_that_is_talked_about_stays(mend, text):
    mended = mend("reopen-think", [(U, "q"), (A, text)])
    assert (mended.outcome, mended.touched) == ([[U, "q"], [F, text]], [])


def test_reasoning_without_an_answer_is_no_answer(mend):
    assert mend("reopen-think", [(U, "q"), (A, "Add them.\n</think>\n")]).outcome == "turn-without-answer"


def test_recorded_reasoning_goes_first(mend):
    record = {"messages": [{"role": U, "content": "q"}, {"role": A, "reasoning": "r", "content": "s\n</think>\na"}]}
    assert mend("reopen-think", record).touched == []


def test_a_users_tag_is_text(mend):
    assert mend("reopen-think", [(U, "r\n</think>\nq"), (A, "a")]).touched == []

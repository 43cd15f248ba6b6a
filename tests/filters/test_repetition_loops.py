from __future__ import annotations

import pytest

from turnmill.filters.repetition_loops import longest_loop

STUCK = [
    "Sure! " + "I hope this helps. " * 15,
    "no " * 100,
    "Fine. " + "The answer is that the answer is what it is, " * 8 + "end",
    "Ooh ah! *giggle* " * 20,
    "这个问题很好。" * 40,
    "ありがとうございます。" * 25,
    "감사합니다 여러분 " * 25,
    "A list:\n" + "- buy milk and bread\n" * 14,
    "Intro text that is long enough to matter.\n\n" + "Paragraph one is here.\n\n" * 12,
]
SOUND = [
    "I hope this helps. " * 3,
    "ha ha ha ha ha ha",
    "| --- | --- | --- |\n" * 30,
    "0, " * 300,
    "-" * 2000,
    "```\n" + "print('the same line')\n" * 40 + "```",
    "\n".join(f"{n}. Step {n} of the plan is step {n + 1}." for n in range(40)),
    "Row, row, row your boat, gently down the stream. " * 2
    + "Merrily, merrily, merrily, merrily, life is but a dream.",
    " ".join(f"word{n} and more" for n in range(300)),
    "Chorus of the song\n\n" + "\n\n".join(f"verse {n} tells of a man\nChorus of the song" for n in range(12)),
]


@pytest.mark.parametrize("answer", STUCK)
def test_a_text_that_got_stuck_leaves(refused, answer):
    fault = refused("repetition-loops", answer)
    assert fault.code == "repetition-loops"
    assert "times in a row" in fault.message


@pytest.mark.parametrize("answer", SOUND)
def test_a_text_that_goes_on_stays(refused, answer):
    assert refused("repetition-loops", answer) is None


def test_the_bounds_are_options(refused):
    text = "I hope this helps. " * 5
    assert refused("repetition-loops", text, min_repeats=4, min_characters=50) is not None
    assert refused("repetition-loops", text, min_repeats=4, min_characters=500) is None


def test_the_loop_is_named():
    loop = longest_loop("Well: " + "Stop it now, please. " * 12 + "Done.", 6, 100)
    assert (loop.piece, loop.repeats) == ("Stop it now, please.", 12)


def test_a_questions_loop_is_the_users_own(refused):
    assert refused("repetition-loops", "No.", question="Are we there yet? " * 40) is None

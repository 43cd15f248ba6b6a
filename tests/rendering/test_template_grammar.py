"""Of any template the spans are right, or it or the row is refused by name: never silently wrong."""

import random
from collections import Counter

import pytest

import template_grammar as grammar
from turnmill.errors import Rejected, UsageError
from turnmill.rendering.renderer import Renderer

EACH = 10
"""Templates a case; `python -m pytest tests/render/test_template_grammar.py` runs 400 in all."""


def judged(seed: int, template_of, chat_of) -> tuple[str, list[str]]:
    """How a random template takes a random chat, and what it says wrongly."""
    rng = random.Random(seed)
    source, row = template_of(rng), chat_of(rng)
    try:
        renderer = Renderer(source, {"eos_token": grammar.STOP}, [grammar.STOP])
        return "said", [f"{fault}\n{source}" for fault in grammar.faults(renderer.render(row), row)]
    except (UsageError, Rejected) as fault:
        return getattr(fault, "code", "unusable"), []


@pytest.mark.parametrize("block", range(20))
@pytest.mark.parametrize("kind", ["chat", "agent"])
def test_spans_are_right_or_the_template_is_refused(kind, block):
    makers = (grammar.chat_template, grammar.chat) if kind == "chat" else (grammar.agent_template, grammar.agent_chat)
    outcomes = [judged(seed, *makers) for seed in range(block * EACH, (block + 1) * EACH)]
    assert [fault for _, faults in outcomes for fault in faults] == []
    assert Counter(outcome for outcome, _ in outcomes)["said"] >= 1


DISORDERED = ("reversed", "twice", "recursive", "grouped")
PADDED = ("unpacked",)
"""Writes a message that nobody said behind an odd number of them: a witness sees more in the last turn."""


def renderer_of_loop(name):
    body = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    prompt = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    return Renderer(grammar.LOOPS[name].replace("BODY", body) + prompt, {}, [grammar.STOP])


@pytest.mark.parametrize("name", PADDED)
def test_a_template_that_writes_a_message_of_its_own_is_refused_by_name(name):
    with pytest.raises(UsageError, match="who wrote what is not certain"):
        renderer_of_loop(name)


@pytest.mark.parametrize("name", [name for name in grammar.LOOPS if name not in DISORDERED + PADDED])
def test_a_template_that_says_each_message_in_its_place_is_said(name):
    row = grammar.chat(random.Random(1))
    assert grammar.faults(renderer_of_loop(name).render(row), row) == []


HIDING = ["percent", "format", "indent", "center method", "escape", "title", "json", "repr", "wordwrap", "zfill"]


@pytest.mark.parametrize("name", HIDING)
def test_a_text_that_an_operation_makes_anew_stays_its_writers(name):
    body = "<|im_start|>{{ m.role }}\n" + grammar.CONTENTS[name] + "<|im_end|>\n"
    source = (
        grammar.LOOPS["plain"].replace("BODY", body)
        + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    row = grammar.chat(random.Random(1))
    assert grammar.faults(Renderer(source, {}, [grammar.STOP]).render(row), row) == []


@pytest.mark.parametrize(
    "text",
    [
        "a.content.encode()",
        "a.content ~ b.content",
        "'%s%s' % (a.content, b.content)",
        "[a.content, b.content] | string",
    ],
)
def test_one_text_of_two_messages_is_refused_by_name(text):
    source = "{% set a, b = messages[0], messages[1] %}{{ (" + text + ") | tojson }}"
    with pytest.raises(UsageError, match="writers-mixed"):
        Renderer(source, {}, [grammar.STOP])

"""Spans of rows that passages say are put together of what is known of each passage, or are found as for any row."""

import pytest

from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.rendering.blocks import Blocks
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import conversation

CHAT = (("user", "q"), ("answer", "a"))
CALLED = (("user", "q"), ("call", "Cityone"), ("result", "b"), ("answer", "a"))
SEEN = (CHAT, CHAT * 2, CHAT * 3, CALLED + CHAT, CHAT + CALLED, CALLED * 2, CHAT * 2 + CALLED * 2, CALLED * 3)
UNSEEN = (CHAT * 7, CALLED * 4 + CHAT, CHAT + CALLED * 5 + CHAT * 3)
AHEAD = """
{%- for m in messages %}{% if not loop.first %}{{ '<|im_end|>\n' }}{% endif %}{{ '<|im_start|>' + m.role + '\n' }}
{{- m.content }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_end|>\n<|im_start|>assistant\n' }}{% endif %}"""
"""Ends a turn with the next message, and the last one not at all."""


def renderer(source, **options):
    return Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source), **options)


def learned(source):
    """A renderer that has rendered short rows until it puts them together."""
    rendering = renderer(source)
    for _ in range(4):
        for shape in SEEN:
            rendering.render(conversation(shape))
    return rendering


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5", "glm4moe", "llama3_1"])
def test_spans_of_long_rows_are_put_together_of_those_of_short_ones(name, trl_templates, monkeypatch):
    source = (trl_templates / f"{name}.jinja").read_text()
    rendering, plain = learned(source), renderer(source, accelerate=False)
    wanted = [plain.render(conversation(shape)) for shape in UNSEEN]
    put_together = []
    monkeypatch.setattr(Blocks, "learn", lambda *_: put_together.append(False))
    found = [rendering.render(conversation(shape)) for shape in UNSEEN]
    assert found == wanted
    assert rendering.fills.passages.served >= len(UNSEEN)
    assert put_together == []


def test_a_stop_at_the_head_of_the_next_block_is_the_turns_and_the_last_is_added():
    rendering, plain = renderer(AHEAD), renderer(AHEAD, accelerate=False)
    rows = [conversation(CHAT * (1 + number % 9)) for number in range(40)]
    assert [rendering.render(row) for row in rows] == [plain.render(row) for row in rows]
    assert rendering.counts == plain.counts
    assert rendering.counts["render/stop-added"] == len(rows)
    assert rendering.fills.passages.served > 0


def test_rows_that_end_outside_of_the_loop_are_left_to_the_rules_of_whole_rows():
    source = (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{{ m.content }}{{ '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% else %}{{ 'END' }}{% endif %}"
    )
    rendering, plain = renderer(source), renderer(source, accelerate=False)
    rows = [conversation(CHAT * (1 + number % 9)) for number in range(30)]
    assert [rendering.render(row) for row in rows] == [plain.render(row) for row in rows]
    assert rendering.fills.passages.served > 0
    told = rendering.fills.passages._first.values()
    assert not any(turn.layout.known for first in told for one in first for turns in one.own.values() for turn in turns)

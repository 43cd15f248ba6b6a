"""Spans of rows that passages say are put together of what is known of each passage, or are found as for any row."""

from collections import Counter

import pytest

from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.rendered import Rendered, Span
from turnmill.rendering.blocks import Attributed, Block, Blocks, Layout
from turnmill.rendering.form import Entry
from turnmill.rendering.passage_recording import Piece, Writer
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


def layout(*, emitter="own", entry="own"):
    """Of a block of a header and a message's text."""
    header = Piece("<|im_start|>", Writer(entry, -1, None, -1, emitter, -1))
    return Layout([header, Piece(7, Writer(entry, -1, "user", 0, emitter, -1))])


ROW = conversation(CHAT)
TURN, HEAD_OF_FIRST, TAIL = layout(), layout(emitter="nobody", entry="first"), layout(emitter="nobody")
OTHERS = layout(entry="first")


@pytest.mark.parametrize(
    ("said", "are_known"),
    [
        (((TURN, 0), (TURN, 1)), True),
        (((TURN, 1), (TURN, 0)), False),  # in another order
        (((TURN, 0), (TURN, 1), (TAIL, -1)), False),  # behind the loop
        (((TURN, 0),), False),  # a turn is left out
        (((HEAD_OF_FIRST, -1), (TURN, 1)), True),
        (((HEAD_OF_FIRST, -1), (TURN, 0), (TURN, 1)), False),  # the first message twice
        (((TURN, 0), (OTHERS, 1)), False),  # a message in the block of another
    ],
)
def test_only_rows_of_a_block_for_each_message_are_put_together(said, are_known):
    texts = ["<|im_start|>", "text"] * len(said)
    blocks = [Block(layout, entry, 2 * number) for number, (layout, entry) in enumerate(said)]
    entries = [Entry("user", [0], 0), Entry("assistant", [1], 1)]
    row = Blocks(ROW, entries, blocks, texts)
    text = "".join(texts)
    ends = range(0, len(text), 16)
    parts = [(end, end + 16, entry if entry >= 0 else 0, "user") for end, (_, entry) in zip(ends, said, strict=True)]
    rendered = Rendered(text, tuple(Span(*part) for part in parts), (text.rindex("text"),))
    for layout, _ in said:
        layout.known.clear()
    row.learn(Attributed(rendered, parts, {}))
    assert (row.rendered(text, Counter()) == rendered) is are_known

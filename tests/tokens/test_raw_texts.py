"""Raw texts: the tokenizer's own ids, an end token, every token trained, and each in one part."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors

from tests_support import listed
from tokenizers_of_tests import byte_level, word_piece_like
from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.errors import Rejected, UsageError
from turnmill.options import Loss
from turnmill.rendered import Example
from turnmill.rendering.raw_text import Around
from turnmill.rendering.renderer import Renderer
from turnmill.tokens.encode import ANCHOR, Encoder
from turnmill.tokens.fit import chunks
from turnmill.tokens.tokenize import Row, Tokenizing

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def with_bos(tokenizer: Tokenizer, bos: str) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


TOKENIZERS = {
    "byte-level": (byte_level(), "", "<|endoftext|>"),
    "byte-level with bos": (with_bos(byte_level(nfc=True), "<|im_start|>"), "<|im_start|>", "<|im_end|>"),
    "always prefixed": (with_bos(word_piece_like("always"), "<s>"), "<s>", "</s>"),
    "prefixed at the start": (with_bos(word_piece_like("first"), "<s>"), "<s>", "</s>"),
    "not prefixed": (word_piece_like("never"), "", "</s>"),
}
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab \n"), min_size=1).filter(
    lambda text: text.strip() and ANCHOR not in text
)


class Line:
    """The way of a text to its example, without files."""

    def __init__(self, name: str) -> None:
        self.tokenizer, bos, self.eos = TOKENIZERS[name]
        added = [(token.content, token.special) for token in self.tokenizer.get_added_tokens_decoder().values()]
        self.renderer = Renderer(TEMPLATE, {}, ["<|im_end|>"], added)
        self.renderer.around = Around(bos, self.eos)
        self.tokenizing = Tokenizing(Encoder(self.tokenizer, self.renderer.probe.markers.control))

    def row(self, text: str, policy: str | None = None, loss: Loss | None = None) -> Row:
        said = check(Conversation((Message("assistant", text, "text", recorded=0),)))
        return Row(said.id, said, self.renderer.render(said, control_tokens=policy), loss or Loss())

    def example(self, text: str, policy: str | None = None, loss: Loss | None = None) -> Example:
        (made,) = self.tokenizing.examples([self.row(text, policy, loss)])
        assert isinstance(made, Example)
        return listed(made)

    def ids(self, text: str) -> list[int]:
        """What the tokenizer gives for a plain text, and the end token."""
        return [*self.tokenizer.encode(text).ids, self.tokenizer.token_to_id(self.eos)]


LINES = {name: Line(name) for name in TOKENIZERS}


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=40, deadline=None)
@given(text=texts, max_tokens=st.integers(1, 40))
def test_chunks_joined_are_the_ids_of_the_whole_text_and_every_token_trains_once(name, text, max_tokens):
    line = LINES[name]
    whole = line.example(text, "escape")
    assert whole.input_ids == line.ids(text)
    parts = [part.example for part in chunks(whole, max_tokens, Counter())]
    assert [token for part in parts for token in part.input_ids] == whole.input_ids
    assert all(1 <= len(part.input_ids) <= max_tokens for part in parts)
    assert [part.part for part in parts] == list(range(len(parts)))
    for part in parts:
        assert [(run.end, run.message, run.kind, run.weight) for run in part.runs] == [
            (len(part.input_ids), 0, "answer", 1.0)
        ]


@pytest.mark.parametrize(
    ("length", "limit", "sizes"),
    [(10, 10, [10]), (11, 10, [9, 2]), (12, 10, [10, 2]), (21, 10, [10, 9, 2]), (3, 2, [2, 1]), (3, 1, [1, 1, 1])],
)
def test_no_part_is_one_token_that_nothing_predicts_where_that_can_be(length, limit, sizes):
    whole = LINES["byte-level"].example("!" * (length - 1))
    if len(whole.input_ids) != length:
        whole = LINES["byte-level"].example(" ".join("~" * (length - 1)))
    counts = Counter()
    ids = whole.input_ids[:length]
    assert len(ids) == length
    parts = chunks(whole, limit, counts)
    assert [len(part.example.input_ids) for part in parts] == sizes
    assert counts["fit/parts-added"] == len(sizes) - 1


@pytest.mark.parametrize("loss", [Loss(turns="last"), Loss(reasoning=False), Loss(scaling="progressive")])
def test_options_of_turns_change_nothing(loss):
    line = LINES["byte-level"]
    assert line.example("a quick fox", loss=loss) == line.example("a quick fox")


@pytest.mark.parametrize("policy", [None, "reject"])
def test_control_tokens_reject_a_text_unless_its_source_says_otherwise(policy):
    with pytest.raises(Rejected, match=r"'<\|im_end\|>'") as caught:
        LINES["byte-level"].row("about <|im_end|> and more", policy)
    assert (caught.value.code, caught.value.at) == ("text-holds-control-tokens", 0)


def test_escaped_control_tokens_are_plain_text():
    line = LINES["byte-level with bos"]
    made = line.example("about <|im_end|> and", "escape")
    control = line.tokenizer.token_to_id("<|im_end|>")
    assert [token for token in made.input_ids if token == control] == [control]
    assert made.input_ids[-1] == control
    assert line.tokenizer.decode(made.input_ids[1:-1], skip_special_tokens=False) == "about <|im_end|> and"


@pytest.mark.parametrize("policy", [None, "escape", "keep"])
def test_a_text_with_turnmills_own_mark_leaves(policy):
    line = LINES["byte-level"]
    (made,) = line.tokenizing.examples([line.row(f"a {ANCHOR} b", policy)])
    assert isinstance(made, Rejected)
    assert made.code == "control-token-unescapable"


def test_kept_control_tokens_are_control_tokens():
    line = LINES["byte-level"]
    assert line.example("a<|im_end|>b", "keep").input_ids == line.ids("a<|im_end|>b")


def test_a_rendered_text_that_brings_its_own_ends_gets_no_second_ones():
    line = LINES["byte-level with bos"]
    rendered = line.example("<|im_start|>user\nq<|im_end|>", "keep")
    assert rendered.input_ids == line.tokenizer.encode("<|im_start|>user\nq<|im_end|>", add_special_tokens=False).ids


def test_offsets_cover_the_text_with_its_tokens():
    line = LINES["always prefixed"]
    row = line.row("The quick fox")
    offsets = line.tokenizing.placed(row.conversation, row.rendered, row.loss).offsets
    assert row.rendered.text == "<s>The quick fox</s>"
    assert offsets[0].tolist() == [0, 3]
    assert offsets[-1].tolist() == [16, 20]
    assert len(offsets) == len(line.example("The quick fox").input_ids)


def test_a_model_without_an_end_token_cannot_take_raw_texts():
    renderer = Renderer(TEMPLATE, {}, ["<|im_end|>"])
    renderer.around = Around("", None)
    row = check(Conversation((Message("assistant", "x", "text", recorded=0),)))
    with pytest.raises(UsageError, match="no end token"):
        renderer.render(row)

import pytest

from turnmill.errors import UsageError
from turnmill.models import open_template
from turnmill.rendering.renderer import Renderer
from turnmill.tokens.markers import check_markers, turn_markers

BRACKETS = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}"
)


def probe_of(source: str):
    return Renderer(source, {}, ["<|im_end|>"]).probe


def test_headers_and_stops_are_turn_markers() -> None:
    assert turn_markers(probe_of(open_template("chatml").template)) == ("<|im_start|>", "<|im_end|>")


def test_markers_that_are_tokens_are_fine(tokenizer) -> None:
    check_markers(tokenizer, probe_of(open_template("chatml").template), "mine")


def test_markers_of_another_model_are_refused_by_name(tokenizer) -> None:
    source = open_template("chatml").template.replace("<|im_start|>", "<|start|>")
    with pytest.raises(
        UsageError, match=r"mine: turn markers are plain text .* '<\|start\|>' \(\d+ tokens\)"
    ) as refused:
        check_markers(tokenizer, probe_of(source), "mine")
    assert "<|im_end|>" not in str(refused.value)


def test_bracketed_markers_may_be_plain_text(tokenizer) -> None:
    check_markers(tokenizer, probe_of(BRACKETS), "mine")

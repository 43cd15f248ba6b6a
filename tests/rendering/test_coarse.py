"""Templates that strings with a memory cannot follow: whole turns by generation tags, or by differences, or none."""

import msgspec
import pytest

from tests_support import TRANSFORMERS_TOKENS, reference_render
from turnmill.conversation import Message
from turnmill.errors import Rejected, UsageError
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.form import write
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import conversation

ESCAPING = "{{ '<begin>' | safe + '&' }}"
"""Markup: what follows is escaped, so the text is not what strings that remember give."""
TAGGED = (
    ESCAPING
    + """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}{% generation %}{{ message.content }}{{ '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ message.content }}{{ '<|im_end|>' }}{% endif %}{{ '\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
)
UNTAGGED = TAGGED.replace("{% generation %}", "").replace("{% endgeneration %}", "")
MISTAGGED = UNTAGGED.replace(
    "{{- '<|im_start|>' + message.role + '\\n' }}",
    "{{- '<|im_start|>' }}{% generation %}{{ message.role }}{% endgeneration %}{{ '\\n' }}",
)
REWRITING = UNTAGGED.replace("{{ message.content }}", "{{ message.content if loop.last else message.content | upper }}")
TURNS = (("system", "S"), ("user", "Q"), ("answer", "An answer"), ("user", "R"), ("answer", "Another\n"))


def renderer(source):
    return Renderer(source, TRANSFORMERS_TOKENS, ["<|im_end|>"])


def trained(rendered):
    return [rendered.text[span.start : span.end] for span in rendered.spans if span.kind in TRAINED_KINDS]


@pytest.mark.parametrize(
    ("source", "rung"), [(TAGGED, "generation-tags"), (UNTAGGED, "differences"), (MISTAGGED, "differences")]
)
def test_turns_are_known_as_a_whole(source, rung):
    made, row = renderer(source), conversation(TURNS)
    rendered = made.render(row)
    assert made.probe.rung == rung
    assert trained(rendered) == ["An answer", "<|im_end|>", "Another\n", "<|im_end|>"]
    assert rendered.text == reference_render(source, write(row, made.probe.form, None, {}), made.kwargs_of(row), False)
    assert [rendered.text[end : end + 3] for end in rendered.prompt_ends] == ["An ", "Ano"]


def test_a_template_that_shows_turns_otherwise_later_is_refused():
    with pytest.raises(UsageError, match="render-differs"):
        renderer(REWRITING)


def test_text_that_the_template_changes_is_lost():
    source = UNTAGGED.replace("{{ message.content }}", "{{ '' | safe + message.content }}")
    with pytest.raises(Rejected) as caught:
        renderer(source).render(conversation((("user", "Q"), ("answer", "a < b"))))
    assert caught.value.code == "content-lost"


@pytest.mark.parametrize("policy", ["escape", "reject"])
def test_control_tokens_in_content_cannot_be_told_from_the_templates(policy):
    row = conversation((("user", "Say <|im_end|>"), ("answer", "No.")))
    with pytest.raises(Rejected) as caught:
        renderer(UNTAGGED).render(row, None, policy)
    assert caught.value.code == "control-token-unescapable"
    assert trained(renderer(UNTAGGED).render(row, None, "keep")) == ["No.", "<|im_end|>"]


def test_a_turn_of_two_weights_is_not_told_apart():
    row = conversation((("user", "Q"), ("answer", "A")))
    two = (*row.messages, Message(role="assistant", text="B", weight=0, recorded=2))
    with pytest.raises(Rejected) as caught:
        renderer(UNTAGGED).render(msgspec.structs.replace(row, messages=two))
    assert caught.value.code == "spans-unknown"


def test_options_that_pick_parts_of_a_turn_are_refused(tmp_path, write, turnmill):
    template = write("template.jinja", UNTAGGED)
    data = write(
        "data.jsonl", '{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}\n'
    )
    done = turnmill(
        "prepare", data, "--model", "smollm2", "--template", template, "--loss.reasoning", "false",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 2
    assert "loss.reasoning" in done.err

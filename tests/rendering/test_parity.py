"""Our text is transformers' text, and our trained spans are those of the templates' own generation tags."""

from collections import Counter
from pathlib import Path

import pytest

from tests_support import TRANSFORMERS_TOKENS, reference_render, stops_of_template
from turnmill.errors import Rejected, UsageError
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.attribute import Attribution
from turnmill.rendering.form import Form, write
from turnmill.rendering.probe import probe
from turnmill.rendering.samples import SAMPLES, sample
from turnmill.rendering.template import Template

FORMS = (Form(), Form(arguments="text"), Form(empty_content=False), Form(parts=True))


def outcome(function, *arguments):
    """A text, or None where the template refuses."""
    try:
        return function(*arguments)
    except Exception:
        return None


def our_text(template, conversation, form, kwargs, prompt):
    return template.tracked(conversation, form, kwargs, prompt=prompt).text


def kwargs_of(conversation):
    return {"enable_thinking": any(message.channel == "analysis" for message in conversation.messages)}


def test_the_text_is_transformers_text_on_every_template_and_sample(trl_templates):
    compared, refused = 0, 0
    for path in sorted(trl_templates.glob("*.jinja")):
        source = path.read_text()
        template = Template(source, TRANSFORMERS_TOKENS)
        for name in SAMPLES:
            conversation = sample(name)
            for form in FORMS:
                for prompt in (False, True):
                    kwargs = kwargs_of(conversation)
                    written = write(conversation, form, None, Counter())
                    want = outcome(reference_render, source, written, kwargs, prompt)
                    got = outcome(our_text, template, conversation, form, kwargs, prompt)
                    assert got == want, (path.name, name, form, prompt)
                    compared, refused = compared + (want is not None), refused + (want is None)
    assert len(list(trl_templates.glob("*.jinja"))) == 72
    assert compared > 5000 > refused


def tagged(trl_templates: Path):
    """The templates with generation tags, probed."""
    for path in sorted(trl_templates.glob("*.jinja")):
        source = path.read_text()
        if "generation %}" not in source and "generation -%}" not in source:
            continue
        template = Template(source, TRANSFORMERS_TOKENS, name=path.stem)
        try:
            yield path.stem, template, probe(template, stops_of_template(source))
        except UsageError as fault:
            pytest.fail(f"{path.stem}: {fault}")


POLICY = {"scaffold", "frame"}
"""Kinds the tags train and we do not: empty think blocks, headers, and what stands behind a stop."""


def differences(template, found, name):
    """(kind, text) of stretches that one side trains and the other does not."""
    conversation = sample(name)
    dialog = template.tracked(conversation, found.form, kwargs_of(conversation))
    written = write(conversation, found.form, None, Counter())
    tags = reference_render(template.source, written, kwargs_of(conversation), False, masks=True)
    parts = Attribution(dialog.text, dialog.segments, dialog.written.entries, found.markers, Counter()).parts
    for start, end, _, kind in parts:
        inside = [any(low <= position < high for low, high in tags) for position in range(start, end)]
        if any(trained != (kind in TRAINED_KINDS) for trained in inside):
            yield kind, dialog.text[start:end]


def test_trained_spans_are_those_of_the_generation_tags_up_to_policy(trl_templates):
    compared = 0
    for name, template, found in tagged(trl_templates):
        for verdict in found.verdicts:
            if not verdict.said:
                continue
            compared += 1
            for kind, text in differences(template, found, verdict.name):
                is_supplied = "diffusion_gemma" in name and text == "<|tool_response>"  # trained here, not by the tags
                assert kind in POLICY or is_supplied, (name, verdict.name, kind, text)
    assert compared > 200


def test_a_template_refuses_what_it_cannot_say(trl_templates):
    template = Template((trl_templates / "gemma.jinja").read_text(), TRANSFORMERS_TOKENS)
    with pytest.raises(Rejected, match="System role not supported") as refused:
        template.tracked(sample("system message"), Form(), {})
    assert refused.value.code == "template-refuses"

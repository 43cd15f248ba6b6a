"""`template export`: one of our templates in a tokenizer directory, read by transformers to the same bytes."""

import json
import re
import shutil
from collections import Counter

import pytest

import corpus
from probes import PROBES, probe_of
from tests_support import TRANSFORMERS_TOKENS, reference_render, stops_of_template
from turnmill import api
from turnmill.models import OWN_TEMPLATES, own_templates
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.form import Form
from turnmill.rendering.form import write as written_for
from turnmill.rendering.renderer import Renderer
from turnmill.verbs.template_export import SERVING, notes

POLICY = {"scaffold", "frame"}


def own(name):
    source = (OWN_TEMPLATES / f"{name}.jinja").read_text()
    return Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source), name=name)


def test_there_is_one_of_each_family_with_notes():
    assert own_templates() == ["chatml", "gemma4", "harmony", "llama3"]
    assert set(SERVING) == set(own_templates())


@pytest.mark.parametrize("name", own_templates())
def test_ours_pass_what_public_templates_pass(name):
    finding = corpus.find(name, OWN_TEMPLATES / f"{name}.jinja")
    assert (finding.different, finding.wrong, finding.refusal) == ([], [], "")
    assert finding.unsaid == ({"parallel calls": "template-refuses"} if name == "harmony" else {})


@pytest.mark.parametrize("name", own_templates())
def test_the_generation_tags_hold_what_trains(name):
    renderer = own(name)
    for probe in PROBES:
        if (name, probe) == ("harmony", "parallel calls"):
            continue
        row = probe_of(probe)
        rendered = renderer.render(row)
        given = written_for(row, renderer.probe.form, None, Counter())
        tags = reference_render(renderer.template.source, given, renderer.kwargs_of(row), False, masks=True)
        ours = {place for start, end in corpus.trained_of(rendered) for place in range(start, end)}
        theirs = {place for start, end in tags for place in range(start, end)}
        assert ours == theirs, probe


@pytest.mark.parametrize("name", ["chatml", "llama3", "gemma4"])
def test_calls_parse_back_in_the_style_of_hermes(name):
    rendered = own(name).render(probe_of("parallel calls"))
    calls = [json.loads(call) for call in re.findall(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", _trained(rendered))]
    assert calls == [{"name": "find_weather", "arguments": {"city": city}} for city in ("Cityone", "Citytwo")]


def _trained(rendered):
    return "".join(rendered.text[span.start : span.end] for span in rendered.spans if span.kind in TRAINED_KINDS)


def test_transformers_reads_the_export_to_the_same_bytes(turnmill, tmp_path):
    from transformers import AutoTokenizer

    answer = turnmill("template", "export", "chatml", "--to", tmp_path / "made", "--model", "smollm2", "--json")
    assert answer.code == 0, answer.err
    assert {path.rpartition("/")[2] for path in answer.json["files"]} >= {"tokenizer.json", "chat_template.jinja"}
    assert "--tool-call-parser hermes" in (tmp_path / "made/SERVING.md").read_text()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "made")
    assert tokenizer.chat_template == (OWN_TEMPLATES / "chatml.jinja").read_text()
    for probe in ("reasoning in some turns", "parallel calls"):
        row = probe_of(probe)
        given = written_for(row, Form(), None, Counter())
        text = tokenizer.apply_chat_template(given.dicts, tools=given.tools, tokenize=False)
        assert text == api.render(row, model=str(tmp_path / "made")).text
    assert turnmill("template", "check", tmp_path / "made").code == 0


def test_a_tokenizer_directory_gets_the_template_once(turnmill, tmp_path, smollm2_directory):
    directory = tmp_path / "tokenizer"
    shutil.copytree(smollm2_directory, directory)
    (directory / "chat_template.jinja").unlink(missing_ok=True)
    assert turnmill("template", "export", "chatml", "--to", directory).code == 0
    again = turnmill("template", "export", "chatml", "--to", directory)
    assert (again.code, "is not written over" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "flags", "code", "said"),
    [
        ("chatm", (), 2, "Did you mean 'chatml'?"),
        ("chatml", (), 2, "holds no tokenizer.json"),
        ("gemma4", ("--model", "smollm2"), 3, "has no stop token"),
    ],
)
def test_what_cannot_be_exported_says_why(turnmill, tmp_path, name, flags, code, said):
    answer = turnmill("template", "export", name, "--to", tmp_path / "new", *flags)
    assert answer.code == code
    assert said in answer.err
    assert not (tmp_path / "new").exists()


PARSERS = {
    "chatml": ("hermes", None, "add `--reasoning-parser deepseek_r1`"),
    "llama3": ("hermes", None, "no reasoning parser"),
    "gemma4": ("hermes", "gemma4", "Hermes style, not in Gemma's own"),
    "harmony": ("openai", "openai_gptoss", "commentary"),
}


@pytest.mark.parametrize("name", PARSERS)
def test_notes_name_the_parsers_that_read_the_template(name):
    calls, reasoning, said = PARSERS[name]
    (command,) = [line for line in notes(name).splitlines() if line.startswith("- vLLM: `")]
    words = command.strip("`").split()
    assert words[words.index("--tool-call-parser") + 1] == calls
    assert ("--reasoning-parser" in words) == (reasoning is not None)
    assert reasoning is None or words[words.index("--reasoning-parser") + 1] == reasoning
    assert said in notes(name)

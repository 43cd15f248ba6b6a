"""What the probe learns of real templates."""

import pytest

from turnmill.errors import UsageError
from turnmill.rendering.markers import Markers, common_prefix, first_of, last_of
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import SAMPLES, sample

CHATML = "<|im_start|>assistant\n"
HEADERS = [
    ("qwen3", CHATML, CHATML),
    ("qwen3_8", CHATML, CHATML),
    ("nemotron_3_nano", CHATML, CHATML),
    ("gptoss", "<|start|>assistant", "<|start|>assistant"),
    ("glm4moe", "<|assistant|>", "<|assistant|>"),
    ("llama3", "<|start_header_id|>assistant<|end_header_id|>\n\n", None),
    ("deepseekv3", "<｜Assistant｜>", "<｜tool▁outputs▁end｜>"),
]


@pytest.mark.parametrize(("name", "after_user", "after_tool"), HEADERS)
def test_the_header_is_what_generation_prompts_share_without_a_think_tag(renderer_of, name, after_user, after_tool):
    headers = renderer_of(name).probe.markers.headers
    assert (headers.get("user"), headers.get("tool")) == (after_user, after_tool)


STOPS = [
    ("qwen3", "<|im_end|>", "<|im_end|>", "<|im_end|>", None),
    ("gptoss", "<|end|>", "<|return|>", "<|call|>", None),
    ("glm4moe", "<|user|>", None, "<|observation|>", "<|user|>"),
    ("gemma4_v5", "<turn|>", "<turn|>", "<|tool_response>", None),
    ("phi3", "<|end|>", "<|end|>", None, None),
]


@pytest.mark.parametrize(("name", "answer", "last", "call", "added"), STOPS)
def test_stops_of_answers_calls_and_last_turns(renderer_of, name, answer, last, call, added):
    probe = renderer_of(name).probe
    assert (probe.answer_stop, probe.last_stop, probe.call_stop, probe.added_stop) == (answer, last, call, added)


@pytest.mark.parametrize(("name", "closer"), [("qwen3", "</think>"), ("gptoss", "<|end|>"), ("llama3", None)])
def test_what_closes_reasoning(renderer_of, name, closer):
    assert renderer_of(name).probe.markers.think_close == closer


FORMS = [
    ("deepseekv3", {"arguments": "text"}),
    ("qwen3", {"arguments": "object", "developer": False, "several_systems": True, "reasoning": True}),
    ("qwen3_6", {"several_systems": False}),
    ("gptoss", {"developer": True, "bare_tools": False}),
    ("qwen2_5", {"reasoning": False, "bare_tools": True}),
    ("llava_next", {"parts": True}),
    ("smolvlm", {"parts": True}),
]


@pytest.mark.parametrize(("name", "want"), FORMS)
def test_rows_are_written_in_the_form_that_survives(renderer_of, name, want):
    form = renderer_of(name).probe.form
    assert {field: getattr(form, field) for field in want} == want


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("chatml", set()),
        ("qwen3", set()),
        ("gptoss", {"text beside a call", "reasoning beside a call", "parallel calls"}),
        ("llama3_1", {"text beside a call", "reasoning beside a call", "parallel calls"}),
    ],
)
def test_verdicts_name_what_a_template_cannot_say(renderer_of, chatml, name, lost):
    probe = (chatml if name == "chatml" else renderer_of(name)).probe
    unsaid = {verdict.name for verdict in probe.verdicts if not verdict.said and "reasoning" not in verdict.name}
    assert unsaid == {name for name in lost if "reasoning" not in name}
    assert {verdict.name for verdict in probe.verdicts} == set(SAMPLES)


TURN_OF = "{% for m in messages %}{{ OPENING }}{{ m.content }}{{ '</s>' if m.role == 'assistant' }}{% endfor %}"


@pytest.mark.parametrize(
    ("opening", "header"),
    [
        ("'### ' + m.role + ': '", "### assistant: "),
        ("'ASSISTANT: ' if m.role == 'assistant' else 'USER: '", "ASSISTANT: "),
        ("' ' if m.role == 'assistant' else '[INST] '", ""),
    ],
)
def test_without_a_generation_prompt_the_header_is_what_turns_open_with(opening, header):
    renderer = Renderer(TURN_OF.replace("OPENING", opening), {}, ["</s>"])
    assert renderer.probe.markers.headers.get("user", "") == header
    rendered = renderer.render(sample("two turns"))
    answers = [rendered.text[span.start : span.end] for span in rendered.spans if span.kind == "answer"]
    assert [answer.strip() for answer in answers] == ["Answerone", "Answertwo"]


def test_bare_tool_definitions_are_wrapped_where_the_template_needs_it(renderer_of):
    import msgspec

    row = sample("tool call")
    bare = msgspec.structs.replace(row, tools=(row.tools[0]["function"],))
    renderer = renderer_of("gptoss")
    assert renderer.render(bare).text == renderer.render(row).text


def test_history_reasoning_kept_or_stripped(renderer_of):
    assert renderer_of("qwen3_8").probe.keeps_history_reasoning
    assert not renderer_of("qwen3").probe.keeps_history_reasoning


def test_a_template_that_renders_nothing_is_refused_by_name():
    with pytest.raises(UsageError, match="mine cannot be used: a plain question and answer is not rendered"):
        Renderer("{{ bos_token }}", {}, ["</s>"], name="mine")


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("<a>x", "<a>y", "<a>"),
        ("<a>\n<b>", "<a>\n<c>", "<a>\n"),
        ("<a>", "<a>b", "<a>"),
        ("[INST] x", "[INS] y", ""),
        ("", "a", ""),
    ],
)
def test_a_shared_beginning_splits_no_tag(first, second, shared):
    assert common_prefix(first, second) == shared


def test_first_and_last_marker():
    tokens = ("<end_of_turn>", "<end>")
    assert first_of("a<end>b<end_of_turn>", tokens) == (1, 6)
    assert last_of("a<end>b<end_of_turn>", tokens) == (7, 20)
    assert first_of("a", tokens) is last_of("a", tokens) is None


def test_a_header_is_only_as_long_as_it_is_written():
    markers = Markers(headers={"user": "<m>assistant\n", "tool": "<t>"})
    assert markers.header_length("<m>assistant\nhi", "tool") == len("<m>assistant\n")
    assert markers.header_length("<t>hi", "tool") == 3
    assert markers.header_length("hi", "user") == 0

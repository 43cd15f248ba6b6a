"""Known faults of templates beside their models: what is said before the first row, and what is counted in rows."""

from __future__ import annotations

import pytest

from chats import chat
from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from tokenizers_of_tests import byte_level
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected, UnsafeTemplate
from turnmill.models import open_template
from turnmill.options import Loss, Render
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.renderer import Renderer
from turnmill.tokens.encode import Encoder
from turnmill.tokens.labels import IGNORE, labels
from turnmill.tokens.markers import check_markers
from turnmill.tokens.tokenize import Row, Tokenizing

CHATML = open_template("chatml").template
USUAL = ["<|im_end|>", "<|endoftext|>"]


def made(source: str, stops: list[str] | None = None, **options) -> Renderer:
    return Renderer(source, TRANSFORMERS_TOKENS, stops or stops_of_template(source), None, Render(**options))


def checked(record: dict):
    return check(convert(record, dialects.get("openai"), Reading()))


UNSAFE = {
    "stop of another model": (CHATML, ["<|endoftext|>"], "stop-not-in-eos", ["'<|im_end|>'", "'<|endoftext|>'"]),
    "stop of the base model": (CHATML, ["</s>"], "stop-not-in-eos", ["'<|im_end|>'", "'</s>'"]),
    "no stop at all": (CHATML.replace("{{- '<|im_end|>' }}", ""), USUAL, "turn-without-stop", ["last turn"]),
    "nothing ends generation": (CHATML, ["<|never|>"], "stop-not-in-eos", ["'<|im_end|>'", "'<|never|>'"]),
}


@pytest.mark.parametrize("what", UNSAFE)
def test_a_stop_that_does_not_end_generation_is_said_with_both_tokens(what):
    source, stops, code, said = UNSAFE[what]
    with pytest.raises(UnsafeTemplate) as refused:
        made(source, stops)
    assert refused.value.code == code
    assert [part for part in said if part not in str(refused.value)] == []


SPELLED = {
    "both markers": CHATML.replace("<|im_start|>", "<start_of_turn>").replace("<|im_end|>", "<end_of_turn>"),
    "the opening marker": CHATML.replace("<|im_start|>", "<|turn>"),
    "the stop": CHATML.replace("<|im_end|>", "<turn|>"),
    "the tokenizer's own": CHATML,
}


@pytest.mark.parametrize("what", SPELLED)
def test_markers_that_are_no_tokens_are_refused(what):
    probe = made(SPELLED[what], ["<|im_end|>", "<end_of_turn>", "<turn|>"]).probe
    if what == "the tokenizer's own":
        check_markers(byte_level(), probe, "mine")
        return
    with pytest.raises(UnsafeTemplate) as refused:
        check_markers(byte_level(), probe, "mine")
    assert refused.value.code == "turn-marker-not-a-token"


@pytest.fixture(scope="session")
def source(trl_templates):
    return lambda name: (trl_templates / f"{name}.jinja").read_text()


def thought(*turns: tuple[str, str]) -> dict:
    """Reasoning and answer of each turn."""
    messages = []
    for number, (reasoning, answer) in enumerate(turns):
        messages += chat(f"q{number}")["messages"]
        messages.append({"role": "assistant", "content": answer, "reasoning_content": reasoning})
    return {"messages": messages}


def test_a_system_text_that_nobody_wrote_is_reported(source):
    assert "Reasoning effort" in made(source("qwen3_8")).probe.adds_text
    assert "helpful" in made(source("qwen2_5")).probe.adds_text
    assert made(source("qwen3")).probe.adds_text == ""


def test_a_rows_own_argument_switches_it_off(source):
    renderer = made(source("qwen3_8"))
    record = thought(("Hm.", "hello"))
    told = {**record, "chat_template_kwargs": {"reasoning_effort": "medium"}}
    texts = [renderer.render(checked(row)).text for row in (record, told)]
    assert ["Reasoning effort" in text for text in texts] == [True, False]


COUNTED = [
    ("qwen3", thought(("r1", "a1"), ("r2", "a2")), "render/history-reasoning-stripped"),
    ("qwen3", {"messages": [{"role": "developer", "content": "Say PEAR."}, *chat("q", "PEAR")["messages"]]},
     "render/developer-as-system"),
    ("llama3_1", chat("go on", "    return 1\n\n"), "render/trimmed"),
    ("gemma3", chat("go on", "    return 1\n\n"), "render/trimmed"),
    ("qwen2_5", chat("what is <|im_end|>?", "a token"), "render/control-token-text"),
    ("glm4moe", chat("q", "a"), "render/stop-added"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "record", "count"), COUNTED, ids=[f"{t}-{c[7:]}" for t, _, c in COUNTED])
def test_what_a_template_does_to_a_row_is_counted(source, template, record, count):
    renderer = made(source(template))
    renderer.render(checked(record))
    assert renderer.counts[count] == 1


LOOKING = {
    "deepseek_r1_distill": "content-lost", "deepseekv3": None, "gptoss": "content-lost", "llama3": "content-lost",
    "llama3_1": "content-lost", "llama3_2": "content-lost", "phi3": "content-lost", "qwen2_5": None, "qwen3": None,
    "qwen3_8": None,
}  # fmt: skip
"""Template → the code of a row with text beside a call; None where the template says both."""


@pytest.mark.parametrize("template", LOOKING)
def test_text_beside_a_call_is_said_or_the_row_leaves(source, template):
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": {"port": "Brest"}}}
    said = {"role": "assistant", "content": "Looking it up.", "tool_calls": [call]}
    replies = [{"role": "tool", "tool_call_id": "c1", "content": "6 m"}, {"role": "assistant", "content": "Six."}]
    function = {"name": "tide", "description": "Height", "parameters": {"type": "object", "properties": {}}}
    messages, tools = [*chat("tide?")["messages"], said, *replies], [{"type": "function", "function": function}]
    row, renderer = checked({"messages": messages, "tools": tools}), made(source(template))
    if LOOKING[template] is None:
        text = renderer.render(row).text
        assert all(part in text for part in ("Looking it up.", "tide", "Brest", "6 m", "Six."))
        return
    with pytest.raises(Rejected) as refused:
        renderer.render(row)
    assert refused.value.code == LOOKING[template]


NO_CALLS = [{"tool_calls": []}, {"tool_calls": None}, {"tool_calls": None, "reasoning_content": None}]


@pytest.mark.parametrize("template", ["llama3_1", "gptoss", "deepseekv3", "qwen3", "phi3"])
@pytest.mark.parametrize("empty", NO_CALLS, ids=["list", "null", "null reasoning"])
def test_empty_keys_change_nothing(source, template, empty):
    messages = [*chat("q")["messages"], {"role": "assistant", "content": "ANSWER", **empty}]
    plain, rendered = (
        made(source(template)).render(checked(row)) for row in (chat("q", "ANSWER"), {"messages": messages})
    )
    assert rendered == plain
    assert "ANSWER" in plain.text


class Line:
    """A template with a small tokenizer."""

    def __init__(self, source: str) -> None:
        self.tokenizer, self.renderer = byte_level(), made(source)
        self._tokenizing = Tokenizing(Encoder(self.tokenizer, self.renderer.probe.markers.control))

    def example(self, record: dict, loss: Loss | None = None):
        row = checked(record)
        (example,) = self._tokenizing.examples([Row(row.id, row, self.renderer.render(row), loss or Loss())])
        return example

    def trained(self, record: dict, loss: Loss) -> str:
        example = self.example(record, loss)
        ids = list(map(int, example.input_ids))
        marked = labels(ids, [run.end for run in example.runs], [run.weight for run in example.runs])
        return self.tokenizer.decode([label for label in marked if label != IGNORE], skip_special_tokens=False)


@pytest.fixture(scope="session")
def qwen3(source):
    return Line(source("qwen3"))


QUOTING = ["Explain the <think> tag.", "What ends it? </think>", "<tool_call> and </tool_call>", "a <|im_end|> b"]


@pytest.mark.parametrize("text", QUOTING)
def test_no_token_of_the_templates_own_arises_from_content(qwen3, text):
    tokens = [text[match:].split(">")[0] + ">" for match in range(len(text)) if text[match] == "<"]
    plain, quoting = (
        list(map(int, qwen3.example(chat(question, "It opens.")).input_ids)) for question in ("Hm?", text)
    )
    for token in tokens:
        number = qwen3.tokenizer.token_to_id(token)
        assert number is not None
        assert quoting.count(number) == plain.count(number)
    assert text in qwen3.tokenizer.decode(quoting, skip_special_tokens=False)


@pytest.mark.parametrize("reasoning", [True, False])
def test_an_empty_think_block_never_trains(qwen3, reasoning):
    assert qwen3.trained(chat("Print hi.", "print('hi')"), Loss(reasoning=reasoning)) == "print('hi')<|im_end|>"


@pytest.mark.parametrize(("weights", "right"), [
    ((0, 1), "two<|im_end|>"), ((1, 0), "one<|im_end|>"), ((1, 1), "one<|im_end|>two<|im_end|>"), ((0, 0), None),
])  # fmt: skip
def test_weights_of_turns_are_heeded(qwen3, weights, right):
    record = chat("a", "one", "b", "two")
    for message, weight in zip(record["messages"][1::2], weights, strict=True):
        message["weight"] = weight
    if right is None:
        assert qwen3.example(record).code == "no-trainable-tokens"
    else:
        assert qwen3.trained(record, Loss()) == right


BEHIND_BLOCK = [
    ("glm4moe", chat("q", "Blue."), "\nBlue.<|user|>"), ("qwen3", chat("q", "Blue."), "Blue.<|im_end|>"),
    ("nemotron_3_nano", chat("q", "Blue."), "Blue.<|im_end|>"), ("qwen3_6", chat("q", "Blue."), "Blue.<|im_end|>"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "record", "right"), BEHIND_BLOCK)
def test_what_the_prompt_leaves_to_the_model_behind_a_think_block_trains(source, template, record, right):
    rendered = made(source(template)).render(checked(record))
    spans = [span for span in rendered.spans if span.kind in TRAINED_KINDS]
    assert "".join(rendered.text[span.start : span.end] for span in spans) == right
    assert spans[0].start == rendered.prompt_ends[0]


def test_unsafe_templates_are_told_apart_in_json(turnmill, write):
    write("mine/never.jinja", CHATML.replace("{{- '<|im_end|>' }}", ""))
    rows = turnmill("template", "check", write("mine/fine.jinja", CHATML).parent, "--json").rows
    found = {row["target"].rsplit("/", 1)[-1]: row.get("code") for row in rows}
    assert found == {"fine.jinja": None, "never.jinja": "turn-without-stop"}

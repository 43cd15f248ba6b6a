from __future__ import annotations

import pytest

from turnmill.dialects import Mapping
from turnmill.dialects.detect import detect
from turnmill.errors import UsageError

PLAIN = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
CALLING = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [{}]}]}
SHAREGPT = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}
SHAREGPT_TWINS = {"conversations": [{"role": "human", "content": "q"}]}
SHAREGPT_MESSAGES = {"messages": SHAREGPT["conversations"]}
BLOCKS = {"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}
CHANNELS = {"messages": [{"role": "developer", "content": "d"}, {"role": "assistant", "channel": "final"}]}
ALPACA = {"instruction": "i", "input": "", "output": "o"}


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ([PLAIN], "openai"),
        ([PLAIN, CALLING], "openai"),
        ([{"messages": []}, {"messages": None}, {}], "openai"),
        ([SHAREGPT], "sharegpt"),
        ([SHAREGPT_TWINS], "sharegpt"),
        ([SHAREGPT_MESSAGES], "sharegpt"),
        ([PLAIN, SHAREGPT_MESSAGES], "sharegpt"),
        ([PLAIN | SHAREGPT], "sharegpt"),
        ([ALPACA], "alpaca"),
        ([ALPACA | {"label": "class 3"}], "alpaca"),
        ([{"instruction": "i", "context": "c", "response": "r"}], "alpaca"),
        ([{"instruction": "i", "response": "r"}, {"instruction": "i", "input": "c", "response": "r"}], "alpaca"),
        ([{"instruction": "i", "response": "r"}], "prompt-response"),
        ([{"question": "q", "answer": "a"}], "prompt-response"),
        ([{"prompt": [], "completion": []}], "prompt-response"),
        ([PLAIN | {"question": "q", "answer": "a"}], "openai"),
        ([{"conversation": PLAIN["messages"]}], "openai"),
        ([{"conversation": SHAREGPT["conversations"]}], "sharegpt"),
        ([PLAIN, BLOCKS], "anthropic"),
        ([PLAIN | {"system": [{"type": "text", "text": "s"}]}], "anthropic"),
        ([PLAIN | {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}], "anthropic"),
        ([PLAIN, CHANNELS], "harmony"),
        ([{"text": "<|start|>user<|message|>q<|end|>"}], "harmony"),
        ([{"messages": "<|start|>user<|message|>q<|end|>"}], "harmony"),
    ],
)
def test_tells_a_dialect_by_the_keys_that_only_it_has(sample, name):
    assert detect(sample, Mapping()).name == name


@pytest.mark.parametrize(
    ("record", "mapping", "name"),
    [
        ({"dialog": SHAREGPT["conversations"]}, Mapping({"messages": "dialog"}), "sharegpt"),
        ({"dialog": PLAIN["messages"]}, Mapping({"messages": "dialog"}), "openai"),
        (SHAREGPT | {"messages": PLAIN["messages"]}, Mapping({"messages": "messages"}), "openai"),
        ({"prompt": "p", "response": "r"}, Mapping({"instruction": "prompt", "output": "response"}), "alpaca"),
        ({"q": "p", "a": "r"}, Mapping({"prompt": "q", "response": "a"}), "prompt-response"),
        ({"query": "p", "answers": "[]"}, Mapping({"calls": "answers"}), "prompt-response"),
        ({"conversation": [{"input": "q", "output": "a"}]}, Mapping({"history": "conversation"}), "prompt-response"),
        ({"dump": "<|start|>user"}, Mapping({"messages": "dump"}), "harmony"),
    ],
)
def test_looks_where_the_mapping_says(record, mapping, name):
    assert detect([record], mapping).name == name


def test_says_what_it_saw():
    assert detect([SHAREGPT, SHAREGPT], Mapping()).why == "conversations in 2 of 2 rows"


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ([CALLING, SHAREGPT], "two dialects"),
        ([CALLING, SHAREGPT_MESSAGES], "two dialects"),
        ([PLAIN, ALPACA], "two dialects"),
        ([CALLING, CHANNELS], "two dialects"),
        ([CALLING, BLOCKS], "two dialects"),
        ([ALPACA, {"question": "q", "answer": "a"}], "two dialects"),
        ([{"question": "q", "reply": "r"}], "question, reply"),
        ([{"question": "q", "response_j": "a", "response_k": "b"}], "preference pairs"),
        ([{"prompt": "p", "completion": "c", "label": True}], "--dialect prompt-response"),
        ([{}], "expected messages"),
        ([{"prompt": "p", "chosen": "a", "rejected": "b"}], "preference pairs"),
        ([SHAREGPT | {"chosen": {}, "rejected": {}}], "--dialect sharegpt"),
        ([{"chosen_messages": [], "rejected_messages": []}], "preference pairs"),
        ([PLAIN | {"label": True}], "--dialect openai"),
        ([PLAIN, PLAIN | {"label": False}], "KTO"),
    ],
)
def test_refuses_what_it_cannot_tell(sample, said):
    with pytest.raises(UsageError, match=said) as caught:
        detect(sample, Mapping())
    assert caught.value.next_step

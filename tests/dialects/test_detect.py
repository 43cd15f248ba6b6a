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
        ([{"question": "q", "reply": "r"}], "question, reply"),
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

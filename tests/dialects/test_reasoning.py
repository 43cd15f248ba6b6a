"""Reasoning out of fields and think blocks, and the recorded content that is kept beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.dialects import Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.dialects.reasoning import closer, split_think
from turnmill.options import DEFAULT_THINK_TAGS

TAGS = st.sampled_from(DEFAULT_THINK_TAGS)
PLAIN = st.text(alphabet=st.characters(blacklist_characters="<>[]◁▷"))


def read(content, reading: Reading | None = None, **fields):
    record = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content, **fields}]}
    return convert(record, dialects.get("openai"), reading or Reading())


@pytest.mark.parametrize(
    ("opener", "closes"),
    [
        ("<think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|start_think|>", "<|end_think|>"),
    ],
)
def test_closers(opener, closes):
    assert closer(opener) == closes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<think>\nhm\n</think>\n\n  a\n", [["analysis", "hm"], ["final", "  a\n"]]),
        ("\n<think> hm </think>a", [["analysis", " hm "], ["final", "a"]]),
        ("[THINK]hm[/THINK]a", [["analysis", "hm"], ["final", "a"]]),
        ("◁think▷hm◁/think▷a", [["analysis", "hm"], ["final", "a"]]),
        ("<|start_think|>hm<|end_think|>a", [["analysis", "hm"], ["final", "a"]]),
        ("<think>x<think>y</think>z</think>a", [["analysis", "x<think>y</think>z"], ["final", "a"]]),
        ("<think>hm</think>a<think>b</think>", [["analysis", "hm"], ["final", "a<think>b</think>"]]),
        ("<think>\n\n</think>\n\na", [["final", "a"]]),
        ("<think>hm</think>\n", [["analysis", "hm"]]),
        ("<think>hm, no end", [["final", "<think>hm, no end"]]),
        ("no start</think>a", [["final", "no start</think>a"]]),
        ("a <think>hm</think>", [["final", "a <think>hm</think>"]]),
        ("<thinking>hm</thinking>a", [["final", "<thinking>hm</thinking>a"]]),
    ],
)
def test_a_leading_block_becomes_reasoning(content, said):
    conversation = read(content)
    assert neutral_turns(conversation)[1:] == said
    taken_out = said[-1][1] != content
    assert conversation.verbatim == ({1: content} if taken_out else {})


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "think"])
def test_every_field_of_reasoning_is_read_as_it_is(key):
    assert neutral_turns(read("a", **{key: "\n hm \n"}))[1:] == [["analysis", "\n hm \n"], ["final", "a"]]


@pytest.mark.parametrize(
    ("content", "field", "said", "counter"),
    [
        ("<think>block</think>a", "field", [["analysis", "field"], ["final", "a"]], "read/think-block-beside-field"),
        ("a", " \n", [["final", "a"]], "read/empty-think"),
        ("<think> </think>a", None, [["final", "a"]], "read/empty-think"),
        ("a </think>", None, [["final", "a </think>"]], "read/think-tag-in-text"),
    ],
)
def test_what_becomes_of_doubtful_reasoning_is_counted(content, field, said, counter):
    reading = Reading()
    assert neutral_turns(read(content, reading, reasoning=field))[1:] == said
    assert reading.counts[counter] == 1


def test_a_block_beside_a_field_is_kept_verbatim():
    content = "<think>block</think>a"
    assert read(content, reasoning="field").verbatim == {1: content}


def test_a_block_may_lead_to_a_call():
    call = {"function": {"name": "f", "arguments": {}}}
    assert neutral_turns(read("<think>hm</think>\n\n", tool_calls=[call]))[1:] == [
        ["analysis", "hm"],
        ["call", "f", {}],
    ]


def test_users_may_write_think_blocks():
    record = {"messages": [{"role": "user", "content": "<think>x</think>y"}, {"role": "assistant", "content": "a"}]}
    conversation = convert(record, dialects.get("openai"), Reading())
    assert neutral_turns(conversation)[0] == ["user", "<think>x</think>y"]


def test_tags_are_the_sources_own():
    reading = Reading(think_tags=("<mull>",))
    assert neutral_turns(read("<mull>hm</mull>a", reading))[1:] == [["analysis", "hm"], ["final", "a"]]
    assert neutral_turns(read("<think>hm</think>a", reading))[1:] == [["final", "<think>hm</think>a"]]


@given(TAGS, PLAIN, PLAIN)
def test_only_newlines_at_the_edges_of_a_block_go(opener, inside, answer):
    block = split_think(f"{opener}{inside}{closer(opener)}{answer}", DEFAULT_THINK_TAGS)
    assert block == (inside.strip("\r\n"), answer.lstrip("\r\n"))

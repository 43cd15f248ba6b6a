"""Other libraries' ids and labels are ours, but for differences that the docs explain."""

import re

import pytest

pytestmark = pytest.mark.oracles


@pytest.fixture(scope="module")
def renderers_found():
    from oracle_renderers import findings

    return findings()


@pytest.fixture(scope="module")
def harmony_found():
    from build_oracles_page import HARMONY
    from oracle_harmony import find_harmony

    return [find_harmony(name) for name in HARMONY]


@pytest.fixture(scope="module")
def tags_found():
    from build_oracles_page import tag_findings

    return tag_findings()


def test_every_difference_of_renderers_is_explained(renderers_found):
    from oracle_reasons import reason_of

    assert sum(one.compared for one in renderers_found) > 600
    for one in renderers_found:
        unexplained = [pair for pair in one.differences if reason_of(one.template, *pair) is None]
        assert not unexplained, one.template


@pytest.mark.parametrize("template", ["gemma4_v5", "llama3_2", "meta-llama-Llama-3.2-3B-Instruct"])
def test_families_without_think_blocks_are_the_same(renderers_found, template):
    (one,) = [one for one in renderers_found if one.template == template]
    assert one.equal == one.compared > 10


def test_harmony_reads_back_every_turn_that_our_own_template_trains(harmony_found):
    own = harmony_found[0]
    assert len(own.read_back) == own.compared > 20


def test_harmony_writes_what_our_own_template_writes(harmony_found):
    own = harmony_found[0]
    assert len(own.equal) > 12
    tools = re.compile(r"<\|start\|>developer<\|message\|># Tools.*?<\|end\|>", re.DOTALL)
    for probe, (ours, theirs) in own.other_text.items():
        moved = re.sub(r"<\|channel\|>commentary( to=\S+) ", r"\1<|channel|>commentary ", tools.sub("", ours))
        assert moved == theirs, probe


def test_what_harmony_does_not_read_back_is_reasoning_of_earlier_turns(harmony_found):
    assert {channel for one in harmony_found for turns in one.others.values() for channel, *_ in turns} == {"analysis"}


def test_every_difference_of_generation_tags_is_explained(tags_found):
    from oracle_reasons import tag_reason_of

    assert sum(one.compared for one in tags_found) > 700
    for one in tags_found:
        assert not [pair for pair in one.differences if tag_reason_of(pair[1]) is None], one.template


def test_the_docs_say_what_was_found(renderers_found, harmony_found, tags_found):
    from build_oracles_page import PAGE, page

    assert PAGE.read_text("utf-8") == "\n".join(page(renderers_found, harmony_found, tags_found)) + "\n"

"""Public templates: our text is transformers', and a judge who knows only words and stops finds no wrong character."""

import pytest

import corpus
from build_corpus_page import FORMS, PAGE, page
from probes import PROBES

ESCAPES_HTML = "meetkai-functionary-medium-v3.1"
"""Its text is followed by differences, not by tracked strings."""
REFUSED = {
    "CohereForAI-c4ai-command-r-plus-tool_use": "a tool call has no stop token",
    "fireworks-ai-llama-3-firefunction-v2": "'functions' is undefined",
    "llama-cpp-rwkv-world": "a last turn has no stop token",
    "upstage-Solar-Open-100B": "a last turn ends with '<|end|>'",
}
CALL_STOPS = {
    "glm4moe": ("<|user|>", "<|observation|>", "<|user|>"),
    "GLM-4.6": ("<|user|>", "<|observation|>", "<|user|>"),
    "gemma4_v5": ("<turn|>", "<|tool_response>", "<turn|>"),
    "google-gemma-4-31B-it": ("<turn|>", "<|tool_response>", "<turn|>"),
    "gptoss": ("<|end|>", "<|call|>", "<|return|>"),
    "upstage-Solar-Open-100B": ("<|end|>", "<|calls|>", "<|end|>"),
    "meetkai-functionary-medium-v3.1": ("<|eot_id|>", "<|eom_id|>", "<|eot_id|>"),
    "Apertus-8B-Instruct": ("<|assistant_end|>", "<|tools_suffix|>", "<|assistant_end|>"),
}


def check(finding: corpus.Finding) -> None:
    assert finding.wrong == []
    assert finding.compared >= 2 * len(PROBES)
    assert not finding.different or finding.name == ESCAPES_HTML
    assert REFUSED.get(finding.name, "") in finding.refusal
    assert bool(finding.refusal) == (finding.name in REFUSED)
    assert finding.judged or finding.refusal
    if finding.name in CALL_STOPS:
        assert finding.stops == CALL_STOPS[finding.name]


def test_there_are_142_of_them_and_enough_probes():
    assert len(corpus.paths()) == 142
    assert len(PROBES) >= 21


@pytest.mark.parametrize("name", corpus.QUICK)
def test_a_template_of_each_way(name):
    check(corpus.find(name, corpus.paths()[name]))


@pytest.mark.slow
def test_every_template_in_every_form_is_as_the_docs_say():
    findings = [corpus.find(stem, path, FORMS) for stem, path in corpus.paths().items()]
    for finding in findings:
        check(finding)
    assert sum(finding.judged for finding in findings) > 2500
    assert sum(finding.edges for finding in findings) > 3500
    assert PAGE.read_text("utf-8") == "\n".join(page(findings)) + "\n"

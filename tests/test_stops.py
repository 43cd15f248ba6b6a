from __future__ import annotations

from pathlib import Path

import pytest

from turnmill.stops import STOPS, stops_of


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("cohere2", "<|END_OF_TURN_TOKEN|>"),
        ("deepseekv3", "<｜end▁of▁sentence｜>"),
        ("gemma3", "<end_of_turn>"),
        ("gemma4_v5", "<turn|>"),
        ("gemma4_v5", "<|tool_response>"),
        ("glm4moe", "<|user|>"),
        ("glm4moe", "<|observation|>"),
        ("gptoss", "<|call|>"),
        ("gptoss", "<|return|>"),
        ("lfm2", "<|im_end|>"),
        ("llama3", "<|eot_id|>"),
        ("llama3_1", "<|eom_id|>"),
        ("llava_next", "</s>"),
        ("muse_glimmer", "<|eot|>"),
        ("nemotron_3_nano", "<|im_end|>"),
        ("phi3", "<|end|>"),
        ("qwen3", "<|im_end|>"),
        ("smolvlm", "<end_of_utterance>"),
    ],
)
def test_the_stops_of_a_family(trl_templates: Path, name: str, stop: str) -> None:
    template = (trl_templates / f"{name}.jinja").read_text("utf-8")
    assert stop in stops_of(template).tokens


def test_every_public_template_has_stops(trl_templates: Path) -> None:
    files = sorted(trl_templates.glob("*.jinja"))
    assert len(files) == 72
    assert [path.name for path in files if not stops_of(path.read_text("utf-8")).tokens] == []


def test_an_unknown_template_stops_at_its_eos_token() -> None:
    assert stops_of("{{ messages }}", "</s>").tokens == {"</s>"}
    assert stops_of("{{ messages }}").tokens == frozenset()


def test_every_row_has_a_source() -> None:
    assert all(row.source and row.markers and row.tokens for row in STOPS)

"""transformers, asked which tokens its generation tags train: `return_assistant_tokens_mask`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

import corpus
from oracle_rows import Difference, Labelled, Ours
from tests_support import TRANSFORMERS_TOKENS, pinned_clock
from tokenizers_of_tests import byte_level
from turnmill.conversation import Checked
from turnmill.options import Render
from turnmill.rendering.form import write
from turnmill.rendering.renderer import Renderer
from turnmill.stops import stops_of

TAG = re.compile(r"\{%-?\s*generation\b")


@dataclass
class TagFinding:
    """What was found of one template with generation tags."""

    template: str
    compared: int = 0
    equal: int = 0
    differences: list[tuple[str, Difference]] = field(default_factory=list)


def tagged() -> dict[str, Path]:
    """Name → file of each public template with generation tags."""
    return {name: path for name, path in corpus.paths().items() if TAG.search(path.read_text("utf-8"))}


def find_tags(name: str, source: str, tokens: dict[str, str] = TRANSFORMERS_TOKENS) -> TagFinding:
    """What transformers and our line train of each probe that the template can say."""
    stops = stops_of(source, tokens["eos_token"]).tokens
    renderer = Renderer(source, tokens, stops, None, Render(), name, accelerate=False)
    tokenizer = byte_level()
    tokenizer.add_special_tokens([*renderer.probe.markers.control, *tokens.values()])
    theirs, ours = PreTrainedTokenizerFast(tokenizer_object=tokenizer), Ours(renderer, tokenizer)
    finding = TagFinding(name)
    for probe, row, mine in ours.probes():
        finding.compared += 1
        asked = _asked(theirs, renderer, row, tokens)
        finding.equal += mine == asked
        finding.differences += [(probe, one) for one in ours.differences(mine, asked)]
    return finding


def _asked(tokenizer: Any, renderer: Renderer, row: Checked, tokens: dict[str, str]) -> Labelled:
    written = write(row, renderer.probe.form, None, Counter())
    options = {**tokens, **renderer.kwargs_of(row)}
    with pinned_clock():
        answer = tokenizer.apply_chat_template(
            written.dicts, tools=written.tools, chat_template=renderer.template.source, tokenize=True,
            return_dict=True, return_assistant_tokens_mask=True, **options,
        )  # fmt: skip
    return Labelled(answer["input_ids"], [bool(value) for value in answer["assistant_masks"]])

"""Renders all rows with one template, by turnmill with spans or by transformers without; no tokenizer.

python bench/render_rates.py ROWS.jsonl TEMPLATE.jinja turnmill | unaccelerated | transformers
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measuring

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def plain_render(source: str, data: Path) -> tuple[list[Any], Callable[[Any], str]]:
    """Rows as transformers takes them, and its render."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **SPECIAL_TOKENS)
    tokenizer.chat_template = source
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    for row in rows:
        row["tools"] = json.loads(row["tools"]) if row.get("tools") else None
        for call in (call for message in row["messages"] for call in message.get("tool_calls", ())):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])

    def render(row: Any) -> str:
        made: str = tokenizer.apply_chat_template(
            row["messages"], tools=row["tools"], tokenize=False, enable_thinking=False
        )
        return made

    return rows, render


def our_render(source: str, data: Path, accelerate: bool) -> tuple[list[Any], Callable[[Any], str], Any]:
    """Checked rows, our render with spans, and the renderer."""
    from turnmill.config import load
    from turnmill.options import Render
    from turnmill.rendering.renderer import Renderer
    from turnmill.stops import stops_of
    from turnmill.verbs import check
    from turnmill.verbs.read import open_sources

    today = datetime.datetime.now().date().isoformat()
    stops = stops_of(source, SPECIAL_TOKENS["eos_token"]).tokens
    renderer = Renderer(source, SPECIAL_TOKENS, stops, None, Render(date=today, add_stop=False), accelerate=accelerate)
    config, _ = load(None, [("workers", "1")], [str(data)])
    tasks = [task for opened in open_sources(config) for task in check.tasks_of(opened, config)]
    found = [outcome.checked for task in tasks for outcome in check.outcomes(task, Counter())]
    return found, lambda row: renderer.render(row).text, renderer


def texts_of(rows: list[Any], render: Callable[[Any], str]) -> list[str]:
    """The texts; "" where the template refuses a row."""
    texts = []
    for row in rows:
        try:
            texts.append(render(row))
        except Exception:  # whatever a template or a renderer says no with
            texts.append("")
    return texts


def main(data: str, template: str, who: str) -> None:
    """Measure, and print what was found."""
    source = Path(template).read_text("utf-8")
    renderer = None
    if who == "transformers":
        rows, render = plain_render(source, Path(data))
    else:
        rows, render, renderer = our_render(source, Path(data), who == "turnmill")
    figures: dict[str, measuring.Figures] = {}
    with measuring.timed(figures, "render"):
        texts = texts_of(rows, render)
    served = renderer.fills.served / len(rows) if renderer is not None and renderer.fills is not None else 0.0
    digests = [hashlib.sha256(text.encode()).hexdigest()[:12] if text else "" for text in texts]
    measuring.answer(len(rows), figures, replayed=served, said=sum(map(bool, texts)), texts=digests)


if __name__ == "__main__":
    main(*sys.argv[1:])

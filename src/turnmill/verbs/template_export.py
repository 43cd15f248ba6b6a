"""template export: one of our own chat templates beside a tokenizer, so that training and serving use the same text."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from turnmill.errors import UnknownName, UsageError, shell_word
from turnmill.models import OWN_TEMPLATES, own_templates
from turnmill.options import Model
from turnmill.verbs.template import check_template

COPIED = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt", "tokenizer.model", "config.json", "generation_config.json",
)  # fmt: skip
"""What makes a directory a tokenizer's, and says where generation ends."""
TEMPLATE = "chat_template.jinja"
NOTES = "SERVING.md"

HERMES = "Calls are JSON objects with `name` and `arguments` between `<tool_call>` and `</tool_call>` (Hermes style)."


@dataclass(frozen=True, slots=True)
class Serving:
    """How servers read what a model writes in one of our templates."""

    calls: str
    """How a call stands in the text."""
    call_parser: str
    """vLLM's `--tool-call-parser`."""
    reasoning_parser: str | None
    """vLLM's `--reasoning-parser`; None where none knows the tags, or none fits every model."""
    reasoning: str
    """How reasoning stands in the text."""
    reasoning_note: str = ""
    """What else to know of it."""


SERVING = {
    "chatml": Serving(
        HERMES,
        "hermes",
        None,
        "between `<think>` and `</think>`",
        "Where every row has reasoning, and `<think>` and `</think>` are tokens of the vocabulary, add "
        "`--reasoning-parser deepseek_r1`: it takes an answer without a block for reasoning, and vLLM does not start "
        "without the tokens. Else reasoning stays in the text.",
    ),
    "llama3": Serving(
        HERMES,
        "hermes",
        None,
        "between `<|start_think|>` and `<|end_think|>`",
        "vLLM has no reasoning parser for these tags: it stays in the text.",
    ),
    "gemma4": Serving(
        HERMES,
        "hermes",
        "gemma4",
        "between `<|channel>thought` and `<channel|>`",
        "The parser `gemma4` reads reasoning alone here: calls are in Hermes style, not in Gemma's own.",
    ),
    "harmony": Serving(
        "Calls are messages to `functions.NAME` in the commentary channel; their text is JSON.",
        "openai",
        "openai_gptoss",
        "in the analysis channel",
    ),
}


def export(name: str, to: Path, tokenizer: str | None) -> list[Path]:
    """Put one of our templates into a tokenizer directory.

    Args:
        name: of the template.
        to: an existing tokenizer directory, or, with `tokenizer`, the new directory to make.
        tokenizer: the model directory, or `smollm2`, whose tokenizer files are copied; None where `to` has its own.

    Returns:
        The files written.

    Raises:
        UsageError: no such template, `to` is not as it must be, or the model cannot be used with the template.
        HealthError: a model trained with this template and tokenizer would learn the wrong thing.
    """
    if name not in own_templates():
        raise UnknownName("template", name, own_templates(), next_step="turnmill template export chatml --to DIR")
    if tokenizer is None:
        _require_tokenizer(to, name)
        check_template(str(to), Model(template=name))
        return _written(to, name)
    report = check_template(tokenizer, Model(template=name))
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(
            f"{str(to)!r} is there already: expected a new directory for a copy of the tokenizer of {tokenizer}",
            next_step=f"turnmill template export {name} --to {shell_word(str(to))}",
        )
    path = report.model.tokenizer_path
    if path is None:
        raise UsageError(f"{tokenizer} has no tokenizer.json", next_step="--model smollm2")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=to.parent, prefix=f".{to.name}."))
    try:
        copied = copy_tokenizer(path.parent, draft)
        written = [*copied, *_written(draft, name)]
        draft.chmod(0o755)
        draft.replace(to)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [to / file.name for file in written]


def _require_tokenizer(to: Path, name: str) -> None:
    if not (to / "tokenizer.json").is_file():
        raise UsageError(
            f"{str(to)!r} holds no tokenizer.json: expected a tokenizer directory, or --model to copy one from",
            next_step=f"turnmill template export {name} --to {shell_word(str(to))} --model smollm2",
        )
    if (to / TEMPLATE).exists():
        raise UsageError(
            f"{str(to / TEMPLATE)!r} is there already, and is not written over",
            next_step=f"mv {shell_word(str(to / TEMPLATE))} {shell_word(str(to / 'chat_template.old.jinja'))}",
        )


def copy_tokenizer(source: Path, draft: Path) -> list[Path]:
    """The tokenizer's files; its configuration without a chat template of its own."""
    copied = []
    for name in COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, draft / name)
            copied.append(draft / name)
    config = draft / "tokenizer_config.json"
    if config.is_file():
        value = json.loads(config.read_text("utf-8"))
        value.pop("chat_template", None)
        config.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return copied


def _written(directory: Path, name: str) -> list[Path]:
    """The template and the notes, each whole or not at all."""
    source = (OWN_TEMPLATES / f"{name}.jinja").read_bytes()
    files = {TEMPLATE: source, NOTES: notes(name).encode()}
    for file, content in files.items():
        draft = directory / f".{file}.draft"
        draft.write_bytes(content)
        draft.replace(directory / file)
    return [directory / file for file in files]


def notes(name: str) -> str:
    """How to serve a model trained with one of our templates."""
    serving = SERVING[name]
    vllm = f"vllm serve MODEL --chat-template {TEMPLATE} --enable-auto-tool-choice"
    vllm += f" --tool-call-parser {serving.call_parser}"
    reasons = serving.reasoning_parser
    return "\n".join(
        (
            f"# Serving with turnmill's {name} template",
            "",
            f"`{TEMPLATE}` is the template that the training rows were rendered with. Serve with it, and no other.",
            "",
            f"- {serving.calls}",
            f"- Reasoning stands {serving.reasoning}.",
            f"- vLLM: `{vllm}{f' --reasoning-parser {reasons}' if reasons else ''}`",
            *([f"- {serving.reasoning_note}"] if serving.reasoning_note else []),
            f"- llama.cpp: `llama-server -m MODEL.gguf --jinja --chat-template-file {TEMPLATE}`",
            "- Every token that ends a turn must stand in `eos_token_id` of `generation_config.json`.",
            "",
        )
    )

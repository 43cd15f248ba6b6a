"""A dataset's card: where its rows come from, what of them trains, what was lost, and their licence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnmill.errors import UsageError, quote

LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]{1,62}")
UNKNOWN_LICENCE = "not stated"
SIGNED = re.compile(r"<!-- written by turnmill: ([0-9a-f]{16}) -->\n?\Z")


class Form(NamedTuple):
    """The shape that the data have there."""

    title: str
    files: Mapping[str, int]
    """File → rows."""
    loading: str
    """How to load it, in Markdown."""
    configs: Sequence[tuple[str, Mapping[str, str]]] = ()
    """Name and split → files of each part that a viewer shows."""
    lost: Mapping[str, int] = {}
    """What this form cannot say → how often."""


def checked_licence(text: str) -> str:
    """A licence's identifier, as hubs take it: `apache-2.0`, `cc-by-4.0`, `other`.

    Raises:
        UsageError: it is none.
    """
    licence = text.strip().lower()
    if not LICENCE.fullmatch(licence):
        what = f"{quote(text)} is no licence's identifier; expected one like apache-2.0, cc-by-4.0, mit, other"
        raise UsageError(what, next_step="--license cc-by-4.0")
    return licence


def card(manifest: Mapping[str, Any], report: Mapping[str, Any], form: Form, licence: str | None = None) -> str:
    """The card in Markdown, signed: a card that somebody edited can be told from it.

    Args:
        manifest: of the prepared folder.
        report: its census.
        form: the shape that the data have there.
        licence: of the data; None: nobody said.
    """
    parts = (
        _head(form, licence), _files(form), _provenance(manifest, report), _trains(manifest, report), _left(report),
        _lost(form), ["## How to load it", "", form.loading, ""], _made_by(manifest),
    )  # fmt: skip
    text = "\n".join(line for part in parts for line in part) + "\n"
    return f"{text}\n<!-- written by turnmill: {_signature(text)} -->\n"


def is_ours(text: str) -> bool:
    """Whether a card is as turnmill wrote it."""
    found = SIGNED.search(text)
    return found is not None and found[1] == _signature(text[: found.start()].removesuffix("\n"))


def licence_of(text: str) -> str | None:
    """The licence that a card's head names."""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    found = re.search(r"^license: *(\S+)$", head[1], re.MULTILINE) if head else None
    return found[1] if found else None


def _signature(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _head(form: Form, licence: str | None) -> Iterator[str]:
    yield "---"
    if licence is not None:
        yield f"license: {licence}"
    yield "tags: [chat, sft, turnmill]"
    if form.configs:
        yield "configs:"
    for name, splits in form.configs:
        yield f"- config_name: {name}"
        yield "  data_files:"
        for split, files in splits.items():
            yield f"  - split: {split}"
            yield f"    path: {files}"
    yield from ("---", f"# {form.title}", "")
    yield from (f"Licence: {licence or UNKNOWN_LICENCE}.", "")


def _files(form: Form) -> Iterator[str]:
    yield from ("| file | rows |", "|---|---:|")
    yield from (f"| `{name}` | {rows:,} |" for name, rows in form.files.items())
    yield ""


def _provenance(manifest: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Where the rows come from", "", "| source | read | accepted | held out | left |")
    yield "|---|---:|---:|---:|---:|"
    for name, source in report["per_source"].items():
        rows = source["rows"]
        left = rows["read"] - rows["accepted"] - rows["eval"]
        yield f"| {_cell(name)} | {rows['read']:,} | {rows['accepted']:,} | {rows['eval']:,} | {left:,} |"
    yield from ("", "| file | dialect | sha256 |", "|---|---|---|")
    for name, source in manifest["sources"].items():
        for file in source["files"]:
            dialect = source["dialects"].get(file["name"], "")
            yield f"| {_cell(name)}/{_cell(file['name'])} | {dialect} | `{file['sha256'][:16]}…` |"
    yield ""


def _trains(manifest: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[str]:
    trained: dict[str, int] = report["trained_tokens"]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in trained.items() if kind != "total")
    yield from ("## What trains", "")
    yield f"{trained['total']:,} of {report['tokens']['total']:,} tokens: {kinds}."
    template, model = manifest["template"], manifest["model"]
    stops = ", ".join(f"`{token}`" for token in template["eos"])
    yield f"Rendered for {_cell(model['name'])} with {_cell(template['origin'])}; turns end with {stops}."
    yield f"Labels: {manifest['labels']}. Loss weights: {manifest['loss_weights']}."
    yield from ("", "| source | turns | reasoning | results of tools | weights of turns |", "|---|---|---|---|---|")
    for name, recipe in manifest["recipe"].items():
        loss = recipe["loss"]
        trains = ["trains" if loss[option] else "context" for option in ("reasoning", "observations")]
        yield f"| {_cell(name)} | {loss['turns']} | {' | '.join(trains)} | {loss['scaling']} |"
    yield ""


def _left(report: Mapping[str, Any]) -> Iterator[str]:
    if not report["codes"]:
        return
    yield from ("## Rows that were left out", "", "| code | rows |", "|---|---:|")
    yield from (f"| `{code}` | {count:,} |" for code, count in report["codes"].items())
    yield ""


def _lost(form: Form) -> Iterator[str]:
    if not form.lost:
        return
    yield from ("## What this form cannot say", "")
    yield from (f"- {count:,} {what}" for what, count in form.lost.items())
    yield ""


def _made_by(manifest: Mapping[str, Any]) -> Iterator[str]:
    made_by, step = manifest["made_by"]["turnmill"], manifest["steps"][-1]["fingerprint"]
    yield f"Made by turnmill {made_by} from step `{step[:16]}`, cut at {manifest['max_tokens']:,} tokens."


def _cell(text: str) -> str:
    """A name of others as it may stand in a table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")

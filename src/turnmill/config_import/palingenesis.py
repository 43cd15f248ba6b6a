"""The YAML of palingenesis: its keys whose verbs exist here, each with ours and with what it was when left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from turnmill.config_import.imported import Imported
from turnmill.errors import UsageError, quote

Read = Callable[[Any], Any]


def _as_is(value: Any) -> Any:
    return value


def _switch(value: Any) -> bool:
    """A truth value, which may be text there."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes")
    return bool(value)


def _turns(value: Any) -> str:
    return "last" if _switch(value) else "all"


def _own_turns(value: Any) -> str | None:
    """Of a source; None where it leaves that to the whole run."""
    return None if value is None else _turns(value)


def _floor(value: Any) -> float | None:
    return None if value is None else float(value)


def _scaling(value: Any) -> str:
    return str(value).replace("_", "-")


def _strategy(value: Any) -> str:
    return str(value).replace("_", "-")


def _budget(value: Any) -> int | None:
    """Theirs is 0 where there is none."""
    return None if value is None or int(value) <= 0 else int(value)


def _optimizer(value: Any) -> str:
    """The name that transformers has for it."""
    return OPTIMIZERS[str(value)]


def _checkpointing(value: Any) -> bool:
    """Theirs is none, selective or full."""
    return value not in (None, False, "none")


def _rate(value: Any) -> float | None:
    return None if value is None else float(value)


def _dtype(value: Any) -> str:
    if value is None:
        return "auto"
    return "bfloat16" if _switch(value) else "float32"


def _perplexity_of(value: Any) -> str:
    return "full" if value == "full" else "trained"


def _think_tags(value: Any) -> Any:
    """Our list of openers for their pair of delimiters, None for the default."""
    if value is None:
        return None
    from turnmill.dialects.reasoning import closer

    opener, closing = value if isinstance(value, list) and len(value) == 2 else (None, None)
    if not isinstance(opener, str) or not opener or closer(opener) != closing:
        raise UsageError(f"think_tags are {quote(value)}; expected an opening tag and its closing one")
    return [opener]


@dataclass(frozen=True, slots=True)
class OldKey:
    """One key there."""

    old: str
    """`section.option`; of a source `sources.option`."""
    ours: str
    """Dotted path of our field; of a source without `sources.`."""
    default: Any
    """What it was when left out."""
    same: Any
    """What ours is when left out: such a value needs no line."""
    read: Read = _as_is
    values: tuple[Any, ...] = ()
    """Those of theirs that are ours, too; none: every one."""


OPTIMIZERS = {
    "adamw": "adamw_torch", "adamw8bit": "adamw_bnb_8bit", "lion8bit": "lion_8bit",
    "paged_adamw8bit": "paged_adamw_8bit",
}  # fmt: skip
"""Theirs → the name that transformers has for it."""

KEYS = (
    OldKey("data.seed", "seed", 42, 0, int),
    OldKey("model.name_or_path", "model.name_or_path", None, None),
    OldKey("data.think_tags", "read.think_tags", None, None, _think_tags),
    OldKey("preprocess.eval_holdout", "split.rows", 0, 0, int),
    OldKey("data.chat_template_kwargs", "render.template_kwargs", {}, {}),
    OldKey("data.last_turn_only", "loss.turns", False, "all", _turns),
    OldKey("data.train_on_reasoning", "loss.reasoning", True, True, _switch),
    OldKey("data.include_observations", "loss.observations", False, False, _switch),
    OldKey("data.turn_scaling", "loss.scaling", "uniform", "uniform", _scaling),
    OldKey("data.max_seq_length", "fit.max_tokens", 8192, None, int),
    OldKey("data.packing", "pack.on", False, True, _switch),
    OldKey("preprocess.enabled", "score.on", False, False, _switch),
    OldKey("preprocess.max_batch_tokens", "score.max_batch_tokens", None, None, _as_is),
    OldKey("preprocess.strategy", "select.strategy", "random", "random", _strategy),
    OldKey("preprocess.budget", "select.rows", None, None, _budget),
    OldKey("preprocess.min_ppl", "select.min_perplexity", 1.5, 1.5, float),
    OldKey("preprocess.max_ppl", "select.max_perplexity", 500.0, 500.0, lambda value: max(0.0, float(value))),
    OldKey("preprocess.filter_score", "select.perplexity_of", "response", "trained", _perplexity_of),
    OldKey("preprocess.group_field", "select.group_field", None, None, lambda value: value or None),
    OldKey("preprocess.max_samples", "limit", None, None, _budget),
    OldKey("preprocess.output_dir", "train.data", None, None),
    OldKey("train.output_dir", "train.output", None, None),
    OldKey("train.epochs", "train.epochs", 1, 1, int),
    OldKey("train.max_steps", "train.max_steps", -1, None, _budget),
    OldKey("train.exact_steps", "train.exact_steps", False, False, _switch),
    OldKey("train.per_device_batch_size", "train.batch_size", 1, 1, int),
    OldKey("train.gradient_accumulation_steps", "train.gradient_accumulation_steps", 16, 16, int),
    OldKey("train.learning_rate", "train.learning_rate", None, None, _rate),
    OldKey("train.min_learning_rate", "train.min_learning_rate", None, None, _rate),
    OldKey("train.lr_scheduler", "train.schedule", "cosine", "cosine", str, ("cosine", "linear", "constant")),
    OldKey("train.warmup_ratio", "train.warmup_ratio", 0.05, 0.05, float),
    OldKey("train.optimizer", "train.optimizer", "adamw", "adamw_torch", _optimizer, tuple(OPTIMIZERS)),
    OldKey("train.weight_decay", "train.weight_decay", 0.1, 0.1, float),
    OldKey("train.max_grad_norm", "train.max_grad_norm", 1.0, 1.0, float),
    OldKey("train.gradient_checkpointing", "train.gradient_checkpointing", None, False, _checkpointing),
    OldKey("train.bf16", "train.dtype", None, "auto", _dtype),
    OldKey("train.save_steps", "train.save_every", 500, 500, int),
    OldKey("train.logging_steps", "train.log_every", 1, 1, int),
    OldKey("model.attn_implementation", "train.attention", None, "auto", lambda value: value or "auto"),
    OldKey("data.num_workers", "train.loader_workers", 0, 0, int),
    OldKey("data.eval_every", "train.eval_every", 100, 100, int),
    OldKey("data.eval_dataset", "evaluate.eval_dataset", None, None, lambda value: value or None),
)
"""Of the whole run, in the order of our sections."""

SOURCE_KEYS = (
    OldKey("sources.name", "name", None, None),
    OldKey("sources.dataset", "data", None, None, lambda value: [value]),
    OldKey("sources.messages_field", "columns.messages", "messages", "messages"),
    OldKey("sources.tools_field", "columns.tools", "tools", "tools"),
    OldKey("sources.chat_template_kwargs", "template_kwargs", {}, {}),
    OldKey("sources.last_turn_only", "loss.turns", None, None, _own_turns),
)
"""Of an entry of `data.sources`; one data set stands in the same keys of `data`."""

EVAL_KEYS = (
    OldKey("eval_sources.name", "name", None, None),
    OldKey("eval_sources.dataset", "data", None, None, lambda value: [value]),
    OldKey("eval_sources.weight", "weight", 1.0, 1.0, float),
    OldKey("eval_sources.samples", "samples", 100, None, _budget),
    OldKey("eval_sources.regression_floor", "regression_floor", None, None, _floor),
    OldKey("eval_sources.messages_field", "columns.messages", "messages", "messages"),
    OldKey("eval_sources.text_field", "columns.text", "text", "text"),
    OldKey("eval_sources.last_turn_only", "loss.turns", None, None, _own_turns),
)
"""Of an entry of `data.eval_sources`."""

ONE_SOURCE = ("dataset", "messages_field", "tools_field")
MODES: dict[str, dict[str, str]] = {"sft": {}, "pretrain": {"mode": "text"}}
"""`sources.mode` → what the source says here."""

SECTIONS = ("model", "data", "train", "preprocess")
LOCAL = (".jsonl", ".json", ".parquet")
"""Ends of a `dataset` that is a file; others may be names on a hub."""


def import_palingenesis(tree: dict[str, Any]) -> Imported:
    """Our config for theirs; what has no counterpart yet becomes a note.

    Raises:
        UsageError: none of their sections, or a value that is none of theirs.
    """
    if not any(isinstance(tree.get(section), dict) for section in SECTIONS):
        expected = f"expected base_model and datasets (Axolotl), or one of {', '.join(SECTIONS)} (palingenesis)"
        advice = "of LLaMA-Factory, the dataset_info.json is read"
        raise UsageError(f"no config that is known: {expected}; {advice}", next_step="turnmill config import --help")
    imported = Imported()
    given = {f"{section}.{key}": value for section, values in tree.items() for key, value in _items(values)}
    for key in KEYS:
        if key.values and given.get(key.old, key.default) not in key.values:
            continue  # which leaves it to the notes
        value = _read(key, given.pop(key.old, key.default))
        if value != key.same:
            imported.put(key.ours, value)
    sources, held_out = list(_sources(given, imported)), list(_eval_sources(given, imported))
    if sources:
        imported.put("sources", sources)
    if held_out:
        imported.put("evaluate.eval_sources", held_out)
    imported.notes += [f"{old}: {quote(value)} is not yet read" for old, value in given.items()]
    return imported


def _items(values: Any) -> Iterator[tuple[str, Any]]:
    yield from values.items() if isinstance(values, dict) else [("", values)]


def _read(key: OldKey, value: Any) -> Any:
    try:
        return key.read(value)
    except (TypeError, ValueError):
        raise UsageError(f"{key.old} is {quote(value)}; expected a value like {key.default!r}") from None


def _sources(given: dict[str, Any], imported: Imported) -> Iterator[dict[str, Any]]:
    """The data sets: of `data.sources`, else the one of `data`."""
    entries = given.pop("data.sources", None)
    if not entries:
        one = {option: given.pop(f"data.{option}") for option in ONE_SOURCE if f"data.{option}" in given}
        entries = [one] if one.get("dataset") else []
    yield from _entries(entries, SOURCE_KEYS, imported)


def _eval_sources(given: dict[str, Any], imported: Imported) -> Iterator[dict[str, Any]]:
    """The held-out sets of `data.eval_sources`."""
    yield from _entries(given.pop("data.eval_sources", None) or [], EVAL_KEYS, imported)


def _entries(entries: Any, keys: tuple[OldKey, ...], imported: Imported) -> Iterator[dict[str, Any]]:
    """What each entry of a list of data sets is here; its section is that of the keys."""
    section = keys[0].old.partition(".")[0]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and entry.get("dataset") for entry in entries):
        raise UsageError(f"data.{section} is {quote(entries)}; expected a list of entries with a dataset")
    for entry in entries:
        name = entry.get("name") or PurePath(str(entry["dataset"])).name.partition(".")[0]
        mode = entry.get("mode", "sft")
        if mode in MODES:
            named = {key: value for key, value in entry.items() if key != "mode"} | {"name": name}
            yield _source(named, keys, imported) | MODES[mode]
        else:
            imported.notes.append(
                f"{name}: {section}.mode {quote(entry['mode'])} is not yet read; the source is left out"
            )


def _source(entry: dict[str, Any], keys: tuple[OldKey, ...], imported: Imported) -> dict[str, Any]:
    source, section = Imported(), keys[0].old.partition(".")[0]
    left = {f"{section}.{option}": value for option, value in entry.items()}
    for key in keys:
        value = _read(key, left.pop(key.old, key.default))
        if value != key.same:
            source.put(key.ours, value)
    name = source.tree["name"]
    if not str(entry["dataset"]).endswith(LOCAL):
        imported.notes.append(f"{name}: {quote(entry['dataset'])} may be a name on a hub: give its files")
    imported.notes += [f"{name}: {old} {quote(value)} is not yet read" for old, value in left.items()]
    return source.tree


def counterpart(dotted: str) -> str | None:
    """Our field for one of their keys (`data.max_seq_length`, or `max_seq_length` alone), None where there is none."""
    old = {key.old: key.ours for key in KEYS} | {key.old: f"sources.{key.ours}" for key in SOURCE_KEYS}
    old |= {key.old: f"evaluate.eval_sources.{key.ours}" for key in EVAL_KEYS}
    bare = {key.rpartition(".")[2]: ours for key, ours in reversed(old.items())}
    bare = {name: ours for name, ours in bare.items() if name != ours.rpartition(".")[2]}  # the same word says nothing
    words = [word for word in dotted.split(".") if not word.isdecimal()]
    return old.get(".".join(words[-2:])) or bare.get(words[-1])

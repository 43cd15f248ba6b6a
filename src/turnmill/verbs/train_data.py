"""What is trained on: a prepared folder that is whole, that is what its config says, and that the model can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill import smollm2
from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.examples import Examples
from turnmill.files.packed import trained_weights
from turnmill.files.prepared import PreparedData
from turnmill.files.stores import is_url
from turnmill.models import open_model
from turnmill.options import KEEP_ALL, Model
from turnmill.verbs.read import open_sources
from turnmill.verbs.recipes import data_of

if TYPE_CHECKING:
    from turnmill.config import Config

DATA_SECTIONS = (
    "seed", "limit", "read", "check", "filter", "dedup", "decontaminate", "split", "render", "loss", "fit", "select",
    "mix", "pack",
)  # fmt: skip
"""What of a config decides what a prepared folder holds, beside its sources and its model."""
UNTRACKED = {"render": ("on_unsayable",), "read": ("keep_columns",), "select": ("control",)}
"""Fields that do not decide what trains."""
CHECKED_EXAMPLES = 1_000


def open_data(folder: Path, again: str) -> PreparedData:
    """A prepared folder, once every file is what its manifest lists.

    Args:
        folder: OUT.
        again: the command that makes it.

    Raises:
        StaleError: it is not there, not prepared, or changed.
    """
    try:
        data = PreparedData(folder)
        data.epochs_recipe  # noqa: B018  # says so where it was prepared too long ago
    except (UsageError, StaleError) as problem:
        raise StaleError(f"train reads prepared data alone: {problem.message}", next_step=again) from problem
    return data


def require_config(data: PreparedData, config: Config, again: str) -> list[str]:
    """Refuse a folder that was made of other files or with other options than a config says.

    Args:
        data: what is trained on.
        config: with the sources that the folder is to be made of.
        again: the command that makes it.

    Returns:
        What could not be compared, in words.

    Raises:
        StaleError: it is not what the config makes now.
    """
    differs = list(_other_options(data, config))
    notes: list[str] = []
    if any(is_url(path) for path in data_of(config)):
        notes.append("the sources lie in stores: they are not compared with what was prepared")
    else:
        try:
            differs += _other_files(data, config)
        except UsageError as problem:
            notes.append(f"the sources are not compared with what was prepared: {problem.message}")
    if differs:
        what = f"{data.folder} is not what the config makes now:\n" + "\n".join(f"  {line}" for line in differs)
        raise StaleError(what, next_step=again)
    return notes


def _other_options(data: PreparedData, config: Config) -> Iterator[str]:
    try:
        held: dict[str, Any] = json.loads((data.folder / "run.json").read_text("utf-8"))["config"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    now = config.model_dump(mode="json")
    for section in DATA_SECTIONS:
        untracked = UNTRACKED.get(section, ())
        yield from _differences(held.get(section), now[section], section, untracked)
    template = held.get("model", {}).get("template")
    yield from _differences(template, now["model"]["template"], "model.template", ())
    sources = {source["name"]: source for source in held.get("sources", [])}
    for source in now["sources"]:
        if source["name"] not in sources:
            yield f"sources.{source['name']}: none was prepared"
        yield from _differences(sources.pop(source["name"], None), source, f"sources.{source['name']}", ("data",))
    yield from (f"sources.{name}: prepared, and not in the config" for name in sources)


def _differences(held: Any, now: Any, name: str, untracked: tuple[str, ...]) -> Iterator[str]:
    """A line for each field that both know and that is another now."""
    if isinstance(held, dict) and isinstance(now, dict):
        for key in now:
            if key in held and key not in untracked:
                yield from _differences(held[key], now[key], f"{name}.{key}", ())
    elif held is not None and held != now and now != list(KEEP_ALL):
        yield f"{name}: prepared with {json.dumps(held)}, now {json.dumps(now)}"


def _other_files(data: PreparedData, config: Config) -> list[str]:
    """A line for each source whose files are others now."""
    held: dict[str, Any] = data.manifest["sources"]
    found = []
    for opened in open_sources(config):
        name = opened.source.name
        before = sorted(file["sha256"] for file in held.get(name, {"files": []})["files"])
        if sorted(str(file.sha256) for file in opened.plan.files) != before:
            found.append(f"sources.{name}: its files are not those that were prepared")
    return found


def model_directory(config: Config, data: PreparedData) -> Path:
    """Where the model lies that is trained, with its weights.

    Raises:
        UsageError: no such directory, or no model in it.
    """
    name = config.train.model or config.model.name_or_path or data.manifest["model"]["name"]
    if name == smollm2.NAME:
        return smollm2.weights_directory()
    directory = Path(name).expanduser().absolute()  # adapters say where their model lies, wherever they are read
    if not (directory / "config.json").is_file():
        what = f"{directory} holds no config.json; expected a model directory with weights, or {smollm2.NAME}"
        raise UsageError(what, next_step="--train.model DIR")
    return directory


def require_tokenizer(directory: Path, data: PreparedData, again: str) -> list[str]:
    """Refuse a model whose tokenizer is not that of the data.

    Returns:
        What to know of its template, in words.

    Raises:
        StaleError: the same text has other ids there.
    """
    trained = data.manifest["template"]["text"]
    model = open_model(Model(name_or_path=str(directory), template="chatml"))
    if model.tokenizer_sha256 != data.manifest["model"]["tokenizer_sha256"]:
        what = f"{directory} has another tokenizer than the model that {data.folder} was prepared for"
        raise StaleError(f"{what} ({data.manifest['model']['name']}): its ids mean other tokens", next_step=again)
    own = model.templates.get("default")
    origin = data.manifest["template"]["origin"]
    if own is None:
        return [f"the model has no chat template: the trained one ({origin}) is saved with it"]
    return [] if own == trained else [f"the model's own chat template is another: the trained one ({origin}) is saved"]


def require_trained(data: PreparedData) -> None:
    """Refuse data of which no token is learned.

    Raises:
        UsageError: all labels are ignored.
    """
    examples = data.examples()
    for start in range(0, len(examples), CHECKED_EXAMPLES):
        laid = examples.laid_out(range(start, min(start + CHECKED_EXAMPLES, len(examples))))
        if trained_weights(laid).any():
            return
    what = f"no token of {data.folder} is learned: every label of its {len(examples):,} examples is ignored"
    raise UsageError(what, next_step=f"turnmill explain {shell_word(data.folder)} 0")


def bounds_of(examples: Examples) -> tuple[int, int]:
    """The greatest token id of some examples, and the tokens of the longest; -1 and 0 without any."""
    import pyarrow.compute as pc

    found = (pc.max(batch.column("input_ids").flatten()).as_py() for batch in examples.batches())
    greatest = max((token for token in found if token is not None), default=-1)
    return greatest, max(map(int, examples.lengths()), default=0)


def facts_of(data: PreparedData) -> dict[str, Json]:
    """What a trained model says of its data."""
    manifest = data.manifest
    return {
        "folder": str(data.folder), "fingerprint": manifest["fingerprint"],
        "made_by": manifest["made_by"]["turnmill"], "max_tokens": manifest["max_tokens"],
        "rows": manifest["counts"]["rows"], "trained_tokens": manifest["counts"]["trained_tokens"],
        "template": manifest["template"]["origin"],
    }  # fmt: skip

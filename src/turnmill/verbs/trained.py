"""What `train` publishes: the weights, the tokenizer with the template that was trained, the metrics and a report."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.files.inventory import json_file
from turnmill.files.publish import publish
from turnmill.report.training_page import training_page
from turnmill.training.checkpoints import STATE
from turnmill.training.journal import METRICS, read_metrics
from turnmill.verbs import train_data
from turnmill.verbs.template_export import TEMPLATE, copy_tokenizer
from turnmill.verbs.train import KIND, Trained

SUMMARY = "summary.json"
PAGE = "report.html"
RUNS = "runs"
"""Where tensorboard's files lie."""
OF_A_CHECKPOINT = (
    "optimizer.pt", "scheduler.pt", "scaler.pt", "trainer_state.json", "training_args.bin", "README.md", STATE,
)  # fmt: skip
"""Files that only a run that goes on needs."""
OF_A_MODEL = ("config.json", "generation_config.json")
"""Files that the weights bring along, as they were trained."""


def publish_trained(trained: Trained) -> dict[str, Json]:
    """Publish the best weights whole, throw the checkpoints away, and give the answer."""
    place = trained.plan.place
    chosen = trained.watch.checkpoints.of_step(chosen_step(trained))
    metrics = read_metrics(place.work / METRICS)
    summary = summary_of(trained, metrics)
    with tempfile.TemporaryDirectory(prefix="tokenizer.", dir=place.work) as scratch:
        contents: dict[str, Path | bytes] = {**_tokenizer(trained, Path(scratch)), **_weights(chosen)}
        contents |= {f"{RUNS}/{name}": path for name, path in _below(place.work / RUNS).items()}
        contents[METRICS] = place.work / METRICS
        contents[SUMMARY] = json_file(summary)
        contents[PAGE] = training_page(summary, metrics).encode("utf-8")
        publish(contents, place.output, about=_about(trained, summary), unlisted={"run.json": _run(trained)})
    shutil.rmtree(place.work)
    return {"output": str(place.output), **summary}


def chosen_step(trained: Trained) -> int:
    """The step whose weights are published: the best evaluated one, else the last."""
    best = trained.watch.standing.best_step
    return trained.watch.step if best is None else best


def _tokenizer(trained: Trained, scratch: Path) -> dict[str, Path | bytes]:
    """The files of the model's tokenizer, byte for byte, with the template that was trained as its only one."""
    copied = copy_tokenizer(trained.plan.directory, scratch)
    files: dict[str, Path | bytes] = {path.name: path for path in copied if path.name not in OF_A_MODEL}
    template: str = trained.plan.data.manifest["template"]["text"]
    return {**files, TEMPLATE: template.encode("utf-8", "surrogatepass")}


def _weights(checkpoint: Path) -> dict[str, Path | bytes]:
    """What of a checkpoint a model is loaded from; its tokenizer files are left to the model's own.

    Raises:
        UsageError: it is not there.
    """
    if not (checkpoint / STATE).is_file():
        what = f"{checkpoint} is not there: its weights were to be published"
        raise UsageError(what, next_step=f"ls {shell_word(checkpoint.parent)}")
    wanted = (".safetensors", ".bin", ".json")
    tokenizers = ("tokenizer", "special_tokens", "added_tokens", "chat_template", "vocab", "rng_state")
    return {
        name: path
        for name, path in _below(checkpoint).items()
        if path.suffix in wanted and name not in OF_A_CHECKPOINT and not name.startswith(tokenizers)
    }


def _below(folder: Path) -> dict[str, Path]:
    """Every file below a folder by its path there; none where there is no such folder."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def summary_of(trained: Trained, metrics: list[dict[str, Json]]) -> dict[str, Any]:
    """What `summary.json` holds, and the answer of `train --json`."""
    plan, watch = trained.plan, trained.watch
    losses = [line["loss"] for line in metrics if "loss" in line]
    standing = watch.standing
    trains, total = trained.parameters
    return {
        "steps": watch.step,
        "epochs": round(watch.loader.progress, 6),
        "horizon": trained.schedule.horizon,
        "ended": watch.ended,
        "loss": _ends(losses) if losses else None,
        "evaluated": standing.best_step is not None,
        "best": None if standing.best_step is None else {"step": standing.best_step, "loss": standing.best_loss},
        "evaluations": [line for line in metrics if "eval/loss" in line],
        "trainer": plan.options.trainer,
        "method": plan.options.method,
        "learning_rate": {"highest": trained.schedule.highest, "lowest": trained.schedule.lowest},
        "dtype": plan.options.dtype,
        "device": plan.options.device,
        "ranks": plan.ranks.total,
        "packing": {"layout": trained.layout, "reason": trained.reason},
        "data": train_data.facts_of(plan.data),
        "model": {"directory": str(plan.directory), "parameters": total, "trained_parameters": trains},
    }


def _about(trained: Trained, summary: dict[str, Any]) -> dict[str, Json]:
    """What the manifest says beside its files."""
    plan = trained.plan
    return {
        "kind": KIND,
        "recipe": plan.recipe,
        "step": chosen_step(trained),
        "ended": summary["ended"],
        "template": {name: plan.data.manifest["template"][name] for name in ("origin", "eos")},
    }


def _run(trained: Trained) -> bytes:
    """`run.json`: when, where, how long and with which packages; no comparison reads it."""
    from importlib import metadata

    names = ("torch", "transformers", "accelerate", "peft", "trl", "datasets")
    found = {name: _version(metadata, name) for name in names}
    return json_file(
        {
            "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": round(trained.seconds, 3),
            "host": platform.node(),
            "process": os.getpid(),
            "packages": {name: version for name, version in found.items() if version},
        }
    )


def _version(metadata: Any, name: str) -> str | None:
    try:
        return str(metadata.version(name))
    except metadata.PackageNotFoundError:
        return None


def _ends(losses: Sequence[float]) -> dict[str, float]:
    """Means over the first and the last tenth of the steps: one step alone hangs on what its rows happen to be."""
    tenth = max(1, len(losses) // 10)
    return {"first": fmean(losses[:tenth]), "last": fmean(losses[-tenth:])}

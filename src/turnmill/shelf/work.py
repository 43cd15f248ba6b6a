"""The work of a job on this machine: commands, one after the other, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from turnmill.commands import Running
from turnmill.errors import UnknownName, UsageError
from turnmill.shelf.background import Background
from turnmill.shelf.job_folder import JobFolder, make_steps
from turnmill.shelf.tables import Job

GRACE_S = 20.0
"""For a command to end by itself."""
SECRETS = ("TURNMILL_SIDECAR_SECRET", "TURNMILL_TOKEN", "TURNMILL_DATABASE", "PGPASSWORD")
"""Of the environment: no command of a job inherits them."""
MAX_ANSWER_BYTES = 1 << 20
"""Of a command's answer in JSON."""
ADAPTERS = "adapter_config.json"
"""Of a directory of adapters, which change the weights of another model."""
SAID_BYTES = 4096
"""The end of a log that is looked at for what went wrong."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How work ended."""

    status: str
    """`done`, `failed` or `cancelled`."""
    error: str | None = None
    result: dict[str, Any] = field(default_factory=dict)


class Work(Protocol):
    """What a worker does for a job; nothing of it waits long."""

    def step(self) -> Ended | None:
        """Go on; gives how it ended, once it has."""

    def progress(self) -> dict[str, Any] | None:
        """How far it is."""

    def cancel(self) -> None:
        """End it, for good."""

    def leave(self) -> None:
        """Have nothing more to do with it: another worker takes it up."""


@dataclass(frozen=True, slots=True)
class Task:
    """A command, and what it is called in the progress."""

    name: str
    arguments: Callable[[], Sequence[str]]
    """Asked for when it is begun: they may hang on what the ones before it made."""


class Commands:
    """Work that is commands.

    Args:
        folder: of the job.
        tasks: one after the other; the first that fails ends the work.
        before: brings what the tasks need; called once, before the first, and may take long.
    """

    def __init__(self, folder: JobFolder, tasks: Sequence[Task], before: Callable[[], None] | None = None) -> None:
        self._folder = folder
        self._tasks = list(tasks)
        self._before = before
        self._at = 0
        self._running: Running | None = None
        self._bringing: Background[None] | None = None

    def step(self) -> Ended | None:
        """Begin the next command where one has ended."""
        if self._running is not None:
            code = self._running.ended()
            if code is None:
                return None
            self._running = None
            if code:
                return Ended("failed", self._why(code))
            self._at += 1
        if self._at == len(self._tasks):
            return Ended("done", None, self._result())
        if self._before is not None and not self._is_brought(self._before):
            return None
        self._begin(self._tasks[self._at])
        return None

    def _is_brought(self, before: Callable[[], None]) -> bool:
        """Whether what the tasks need is there; begun at the first look."""
        if self._bringing is None:
            self._bringing = Background(before)
        if not self._bringing.is_done:
            return False
        self._bringing.result()
        self._before = None
        return True

    def _begin(self, task: Task) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
        arguments = [sys.executable, "-m", "turnmill", *task.arguments()]
        with self._folder.log.open("a") as log:
            log.write(f"--- {task.name}\n")
        self._running = Running(arguments, self._folder.path, self._folder.log, environment)

    def progress(self) -> dict[str, Any] | None:
        """Which of the commands runs."""
        at = min(self._at, len(self._tasks) - 1)
        return {"task": self._tasks[at].name, "number": at + 1, "of": len(self._tasks)}

    def cancel(self) -> None:
        """End the command that runs."""
        if self._running is not None:
            self._running.stop(GRACE_S)
            self._running = None

    leave = cancel

    def _why(self, code: int) -> str:
        """What the command said last."""
        words = _end_of(self._folder.log)
        said = next((line for line in reversed(words) if line.startswith("turnmill: ")), words[-1] if words else "")
        said = said.removeprefix("turnmill: ").replace(f"{self._folder.path}/", "")
        return f"{self._tasks[self._at].name} ended with exit code {code}: {said}"

    def _result(self) -> dict[str, Any]:
        """The answer of the last command, which is its last line that is JSON; its paths begin at the job's folder."""
        for line in reversed(_end_of(self._folder.log, MAX_ANSWER_BYTES)):
            if line.startswith("{"):
                try:
                    answer: dict[str, Any] = json.loads(line.replace(f"{self._folder.path}/", ""))
                except ValueError:
                    continue
                return answer
        return {}


def _end_of(log: Path, size: int = SAID_BYTES) -> list[str]:
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - size))
        return file.read().decode("utf-8", "replace").split("\n")


def tasks_of(job: Job, folder: JobFolder, models: Mapping[str, Path]) -> list[Task]:
    """The commands of a job that is done on this machine.

    Args:
        job: of any kind but `train`.
        folder: of the job.
        models: name → directory.

    Raises:
        UsageError: the job names no model, or one that is not there.
    """
    options = job.options
    base = model_named(models, options.get("model"))
    config = _write_config(job, folder, base)
    steps = make_steps(folder.path.parent)
    prepared = ["prepare", str(config), "--output", str(folder.prepared), "--cache", str(steps), "--json"]
    prepare = Task("prepare", lambda: prepared)
    if job.kind == "prepare":
        return [prepare]
    return [prepare, Task(job.kind, lambda: _arguments(job, folder, base))]


def model_named(models: Mapping[str, Path], name: str | None) -> Path:
    """The directory of a model; without a name, of the only one.

    Raises:
        UsageError: there is none of that name, or not just one.
    """
    if name is None:
        if len(models) != 1:
            what = f"the job names no model, and there are {len(models)}"
            raise UsageError(f"{what}; expected one of {', '.join(sorted(models)) or 'none'}")
        return next(iter(models.values()))
    if name not in models:
        raise UnknownName("model", name, models)
    return models[name]


def _write_config(job: Job, folder: JobFolder, model: Path) -> Path:
    """The config that the rows are prepared by; JSON is YAML, too."""
    recipe, options = folder.recipe(), job.options
    source = {"name": job.dataset, "data": [str(folder.dataset)], "dialect": recipe["dialect"]}
    config: dict[str, Any] = {"seed": options.get("seed", 0), "model": {"name_or_path": str(model)}}
    config["sources"] = [source]
    if "max_tokens" in options:
        config["fit"] = {"max_tokens": options["max_tokens"]}
    if "strategy" in options:
        config["select"] = {"strategy": options["strategy"], **_selected(options)}
    held = recipe["splits"].get("eval")
    if held is not None:
        config["split"] = {"fraction": held} if held < 1 else {"rows": held}
    path = folder.path / "config.yaml"
    path.write_text(json.dumps(config, indent=2))
    return path


def _selected(options: Mapping[str, Any]) -> dict[str, Any]:
    """How many rows a strategy chooses, and of which."""
    names = {"select_rows": "rows", "max_perplexity": "max_perplexity"}
    return {field: options[name] for name, field in names.items() if name in options}


def _arguments(job: Job, folder: JobFolder, base: Path) -> list[str]:
    """Of the command that looks at the prepared dataset, or at a model with it."""
    options, prepared = job.options, str(folder.prepared)
    answer = ["--output", str(folder.output), "--json"]
    if job.kind == "export":
        return ["export", prepared, "--to", options["to"], *answer]
    model = [str(folder.model if "job" in options else base)]
    if "job" in options and (folder.model / ADAPTERS).exists():
        model += ["--base", str(base)]
    if job.kind == "evaluate":
        return ["evaluate", *model, "--data", f"{job.dataset}={prepared}#train", *_flags(options, "samples"), *answer]
    return ["audit", *model, prepared, *_flags(options, "samples", "seed", "max_new_tokens"), *answer]


def _flags(options: Mapping[str, Any], *names: str) -> list[str]:
    """Options of a job as those of a command."""
    given = [name for name in names if name in options]
    return [word for name in given for word in (f"--{name.replace('_', '-')}", str(options[name]))]

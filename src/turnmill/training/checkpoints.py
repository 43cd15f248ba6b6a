"""The checkpoints of one run: whole or not there, and refused by any other run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.disk import sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import json_file

PREFIX = "checkpoint-"
"""As transformers names its own."""
REPLACED = "replaced-"
"""A checkpoint while another one of its step takes its place."""
STATE = "turnmill.json"
"""What we know of a checkpoint: of which run it is, and where it stands."""


class Checkpoints:
    """The folder of a run that is not published yet.

    A trainer writes `draft/checkpoint-N`; `commit` renames it into place once it is whole.

    Args:
        folder: of the run.
        recipe: all that can change a loss; a checkpoint of another recipe is of another run.
    """

    def __init__(self, folder: Path, recipe: dict[str, Json]) -> None:
        self.folder, self._recipe = folder, recipe

    @property
    def draft(self) -> Path:
        """Where a checkpoint is written."""
        return self.folder / "draft"

    def begin(self) -> None:
        """Make the folder, and undo what an interrupted save left."""
        with writing(self.folder):
            shutil.rmtree(self.draft, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            for replaced in self.folder.glob(f"{REPLACED}*"):
                target = self.folder / f"{PREFIX}{replaced.name.removeprefix(REPLACED)}"
                if target.exists():
                    shutil.rmtree(replaced)
                else:
                    os.rename(replaced, target)

    def all(self) -> list[Path]:
        """The whole ones, in the order of their steps."""
        found = [path for path in self.folder.glob(f"{PREFIX}*") if (path / STATE).is_file()]
        return sorted(found, key=step_of)

    def commit(self, step: int, state: dict[str, Json]) -> Path:
        """Put a checkpoint in its place, in place of one of the same step.

        Args:
            step: optimizer steps behind it.
            state: where the run stands.
        """
        drafted, target = self.draft / f"{PREFIX}{step}", self.folder / f"{PREFIX}{step}"
        with writing(self.folder):
            write_whole(drafted / STATE, json_file({"recipe": self._recipe, "state": state}))
            sync_tree(drafted)
            replaced = self.folder / f"{REPLACED}{step}"
            if target.exists():
                os.rename(target, replaced)
            os.rename(drafted, target)
            sync_names(self.folder)
            shutil.rmtree(replaced, ignore_errors=True)
        return target

    def state_of(self, checkpoint: Path) -> dict[str, Any]:
        """Where the run stood at a checkpoint.

        Raises:
            UsageError: it is none, or not whole, or the best one that it names is not there.
            StaleError: it is of other data, another model or other options.
        """
        try:
            held = msgspec.json.decode((checkpoint / STATE).read_bytes())
            recipe, state = held["recipe"], held["state"]
        except (OSError, msgspec.DecodeError, KeyError, TypeError) as problem:
            what = f"{checkpoint} is no checkpoint of turnmill's: {STATE} cannot be read"
            raise UsageError(what, next_step=f"ls {shell_word(checkpoint.parent)}") from problem
        differs = differences(recipe, self._recipe)
        if differs:
            what = f"{checkpoint} is of another run:\n" + "\n".join(f"  {line}" for line in differs)
            raise StaleError(what, next_step=f"mv {shell_word(self.folder)} {shell_word(f'{self.folder}.old')}")
        best = state.get("best")
        if best and not (self.of_step(best[0]) / STATE).is_file():
            what = f"{checkpoint}: its best weights are of step {best[0]}, and {self.of_step(best[0])} is not there"
            raise UsageError(what, next_step=f"ls {shell_word(checkpoint.parent)}")
        return dict(state)

    def rotate(self, keep: int, best: int | None, step: int) -> None:
        """Leave the last ones and the best one; a run that went back left the course of those behind it.

        Args:
            keep: how many of the last.
            best: step of the best one.
            step: of the run.
        """
        found = self.all()
        kept = [path for path in found if step_of(path) <= step][-keep:]
        for path in found:
            if path not in kept and step_of(path) != best:
                shutil.rmtree(path)

    def of_step(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.folder / f"{PREFIX}{step}"


def step_of(checkpoint: Path) -> int:
    """Optimizer steps behind a checkpoint; 0 for a name that says none."""
    number = checkpoint.name.removeprefix(PREFIX)
    return int(number) if number.isdecimal() else 0


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What two recipes have otherwise, a line each: `train.epochs: 2 there, 3 here`."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = dict.fromkeys([*there, *here])
        return [
            line
            for key in keys
            for line in differences(there.get(key), here.get(key), f"{name}.{key}" if name else str(key))
        ]
    return [] if there == here else [f"{name}: {there} there, {here} here"]

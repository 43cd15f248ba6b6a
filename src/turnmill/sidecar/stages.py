"""What a run does: `prepare`, then `train`, as somebody would type them; what is published is not done again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from turnmill.files.inventory import is_published
from turnmill.sidecar.crew import Stage
from turnmill.sidecar.guard import SECRET_VARIABLE
from turnmill.sidecar.runs import CONFIG, PREPARED, TRAINED, work_of
from turnmill.training.checkpoints import Checkpoints

TURNMILL = (sys.executable, "-P", "-m", "turnmill")
"""The command line of this installation; no module beside the data is taken for one of ours."""
PYTHON_PATH = "PYTHONPATH"


def stages_of(folder: Path) -> Iterator[Stage]:
    """What is left to do for the run in a directory; training goes on from its last checkpoint."""
    if not is_published(folder / PREPARED):
        yield Stage("preparing", (*TURNMILL, "prepare", CONFIG, "--output", PREPARED))
    if not is_published(folder / TRAINED):
        goes_on = bool(Checkpoints(work_of(folder), {}).all())
        yield Stage("training", (*TURNMILL, "train", CONFIG, "--output", TRAINED, *(["--resume"] * goes_on)))


def environment_of(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a run's processes: that of the sidecar, without its secret."""
    kept = {name: value for name, value in own.items() if name != SECRET_VARIABLE}
    if kept.get(PYTHON_PATH):  # they work in the run's directory
        kept[PYTHON_PATH] = os.pathsep.join(map(os.path.abspath, kept[PYTHON_PATH].split(os.pathsep)))
    return kept

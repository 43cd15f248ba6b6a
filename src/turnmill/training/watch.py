"""Who watches a run: logs its metrics, evaluates, finds the best checkpoint, and says when to save and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from turnmill.conversation import Json
from turnmill.errors import HealthError
from turnmill.training.checkpoints import Checkpoints
from turnmill.training.journal import Journal
from turnmill.training.step_loader import StepLoader

Evaluate = Callable[[Any], dict[str, float]]
"""A model → its metrics, `eval/loss` among them; called on every rank at once."""
LOSS = "eval/loss"


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often what is done, in optimizer steps, and when a run ends."""

    save_every: int
    keep_checkpoints: int
    eval_every: int
    """0: never."""
    patience: int | None
    """Evaluations in a row without a new best one; None: any number."""
    max_steps: int | None


@dataclass
class Standing:
    """Where a run stands in its search for the best checkpoint."""

    best_step: int | None = None
    best_loss: float = math.inf
    without_best: int = 0
    """Evaluations in a row."""

    def take(self, step: int, loss: float) -> bool:
        """Whether an evaluation is the best one so far."""
        if loss < self.best_loss:
            self.best_step, self.best_loss, self.without_best = step, loss, 0
            return True
        self.without_best += 1
        return False


@dataclass
class Decision:
    """What is to be done behind a step."""

    evaluate: bool = False
    save: bool = False
    stop: bool = False


@dataclass
class Watch:
    """Told of every step by a trainer, and tells it what to do.

    Args:
        loader: of this rank.
        checkpoints: of the run.
        rhythm: how often what is done.
        journal: where metrics go; None on ranks that write nothing.
        evaluate: measures a model; None: there is nothing to measure it on.
        progress: told of the steps that were done, and of the last loss.

    Attributes:
        standing: of the search for the best checkpoint.
        stops: whether somebody asked the run to stop.
        step: optimizer steps that were done.
        last: loss of the last step that was logged.
    """

    loader: StepLoader
    checkpoints: Checkpoints
    rhythm: Rhythm
    journal: Journal | None
    evaluate: Evaluate | None = None
    progress: Callable[[int, float], None] = lambda _, __: None
    notice: Callable[[str], None] = lambda _: None
    standing: Standing = field(default_factory=Standing)
    stops: bool = False
    step: int = 0
    owes_evaluation: bool = False
    """Whether the run was stopped where it would have been evaluated: that comes first when it goes on."""
    last: float = math.nan
    ended: str = "data"
    """Why the run ended: `data`, `max_steps`, `patience` or `interrupted`."""
    started: float = field(default_factory=time.monotonic)

    def behind(self, step: int, *, stops: bool) -> Decision:
        """What to do behind a step.

        Args:
            step: optimizer steps that were done, this one too.
            stops: whether any rank was asked to stop.
        """
        self.step = step
        rhythm, decision = self.rhythm, Decision()
        at_end = self.loader.is_end or (rhythm.max_steps is not None and step >= rhythm.max_steps)
        if self.loader.is_epoch_end:
            self._end_epoch()
        if self.evaluate is not None and rhythm.eval_every and (at_end or step % rhythm.eval_every == 0):
            decision.evaluate = at_end or not stops  # nobody goes on with a run that is over
            self.owes_evaluation = not decision.evaluate
        decision.save = at_end or stops or step % rhythm.save_every == 0
        decision.stop = at_end or stops
        if stops and not at_end:
            self.ended = "interrupted"
        elif at_end and not self.loader.is_end:
            self.ended = "max_steps"
        return decision

    def _end_epoch(self) -> None:
        epoch, count = self.loader.epoch + 1, self.loader.micro_batches
        self._write(step=self.step, epoch=epoch, micro_batches=count)
        self.notice(f"epoch {epoch} had {count:,} micro-batches")

    def logged(self, values: dict[str, float]) -> None:
        """Take in what a trainer logged of its last steps: `loss`, `grad_norm`, `learning_rate`.

        Raises:
            HealthError: the loss is no number.
        """
        self.last = values["loss"]
        seconds = round(time.monotonic() - self.started, 3)
        self._write(step=self.step, epoch=round(self.loader.progress, 6), **values, seconds=seconds)
        self.progress(self.step, self.last)
        if not math.isfinite(self.last):
            what = f"the loss is {self.last} at step {self.step}: the weights are of no use from there on"
            raise HealthError(what, next_step="--train.learning_rate 1e-5")

    def evaluated(self, metrics: dict[str, float]) -> Decision:
        """Take in an evaluation; whether it is the best so far (save), and whether there were enough others (stop)."""
        if math.isfinite(self.last):
            metrics = {**metrics, "eval/gap": metrics[LOSS] - self.last}
        self.owes_evaluation = False
        best = self.standing.take(self.step, metrics[LOSS])
        self._write(step=self.step, epoch=round(self.loader.progress, 6), **metrics, best=best)
        self.notice(f"step {self.step:,}: {LOSS} {metrics[LOSS]:.4f}{' (the best so far)' if best else ''}")
        patience = self.rhythm.patience
        is_over = patience is not None and self.standing.without_best >= patience
        if is_over:
            self.ended = "patience"
        return Decision(save=best or is_over, stop=is_over)

    def saved(self) -> None:
        """Put the checkpoint that a trainer drafted in its place."""
        self.checkpoints.commit(self.step, self.state_dict())
        self.checkpoints.rotate(self.rhythm.keep_checkpoints, self.standing.best_step, self.step)

    def state_dict(self) -> dict[str, Json]:
        """Where the run stands: small, JSON."""
        standing = self.standing
        found = math.isfinite(standing.best_loss)
        best: Json = [standing.best_step, standing.best_loss, standing.without_best] if found else None
        return {
            "step": self.step, "loader": self.loader.state_dict(), "best": best,
            "owes_evaluation": self.owes_evaluation, "last": self.last if math.isfinite(self.last) else None,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a run stood.

        Raises:
            StaleError: it learned from other data.
        """
        self.step = state["step"]
        self.loader.load_state_dict(state["loader"])
        self.owes_evaluation = state["owes_evaluation"]
        self.last = math.nan if state["last"] is None else state["last"]
        if state["best"] is not None:
            self.standing = Standing(*state["best"])

    @property
    def is_over(self) -> bool:
        """Whether the run that goes on had only to be published; `ended` says then why it ended."""
        patience, max_steps = self.rhythm.patience, self.rhythm.max_steps
        if max_steps is not None and self.step >= max_steps:
            self.ended = "max_steps"
        elif patience is not None and self.standing.without_best >= patience:
            self.ended = "patience"
        else:
            return self.loader.is_over
        return True

    def _write(self, **values: Json) -> None:
        if self.journal is not None:
            self.journal.write(**values)

"""A prepared folder, read back: conversations, examples and packs, each as it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from turnmill import options
from turnmill.conversation import Checked, Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.canonical import readmit
from turnmill.files.examples import Examples
from turnmill.files.inventory import verify
from turnmill.files.packed import map_plan
from turnmill.files.quarantine import Left, iterate
from turnmill.files.selection import SELECTION, train_ranks
from turnmill.files.tables import batches
from turnmill.mix import stored as stored_share
from turnmill.rendered import Example

if TYPE_CHECKING:
    from datasets import Dataset

    from turnmill.tokens.epochs import Epochs
    from turnmill.tokens.pack import Plan

Side = Literal["train", "eval", "control"]
"""`control`: a random choice of the same size beside a selection."""


@dataclass(frozen=True, slots=True)
class Pack:
    """One packed row: whole examples, end to end."""

    numbers: tuple[int, ...]
    """Of its examples, in order."""
    input_ids: list[int]
    labels: list[int]
    """Not shifted; -100 = ignored; the first of every example is ignored."""
    seq_lengths: list[int]
    """Tokens of each example."""
    row_ids: list[str]
    loss_weights: list[float] | None = None
    """Where any weight is neither 0 nor 1."""


class PreparedData:
    """What `prepare` published.

    Args:
        folder: OUT.
        whole: compare every file's hash with the manifest; False compares sizes alone.

    Attributes:
        folder: OUT.
        manifest: what it says of itself.

    Raises:
        UsageError: there is no manifest, or it is not a prepared folder's.
        StaleError: a file is missing or changed.
    """

    def __init__(self, folder: str | Path, *, whole: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = verify(self.folder, whole=whole)
        if self.manifest.get("kind") != "prepared":
            raise UsageError(
                f"{self.folder} is not what `prepare` published", next_step=f"ls {shell_word(self.folder)}"
            )

    @property
    def report(self) -> dict[str, Json]:
        """The census, as `report.json` holds it."""
        report: dict[str, Json] = msgspec.json.decode((self.folder / "report.json").read_bytes())
        return report

    def _files(self, *parts: str) -> list[Path]:
        """The files of a sub-folder that the manifest lists, in order."""
        prefix = "/".join(parts) + "/"
        listed = (entry["path"] for entry in self.manifest["files"])
        return [self.folder / path for path in sorted(listed) if path.startswith(prefix)]

    def conversation_files(self, side: Side = "train") -> list[Path]:
        """The canonical Parquet files of the rows behind the examples, in order."""
        return self._files("conversations", side)

    def conversations(self, side: Side = "train") -> Iterator[Checked]:
        """The rows behind the examples, in the order they were read."""
        for path in self.conversation_files(side):
            for batch in batches(path):
                yield from readmit(batch)

    def examples(self, side: Side = "train") -> Examples:
        """The examples by number: a sequence over memory-mapped files."""
        return Examples(self._files(side, "examples"))

    def plan(self, side: Side = "train", epoch: int = 0) -> list[list[int]]:
        """The packs of an epoch as example numbers, stored or made now; none where the side is empty."""
        return self.packs_of(side, epoch).lists()

    def packs_of(self, side: Side, epoch: int) -> Plan:
        """The same as arrays: mapped where they are stored, made now where they are not."""
        from turnmill.tokens.pack import plan_of

        files = self._files(side, "plans")
        stored = [path for path in files if path.stem == f"epoch-{epoch:04d}"]
        if stored:
            return map_plan(stored[0])
        return self.epochs(side).plan(epoch) if files else plan_of([])

    @property
    def epochs_recipe(self) -> dict[str, Any]:
        """What the manifest says of epochs: `{"seed", "pack", "ordered", "mix"}`.

        Raises:
            StaleError: an earlier version published the folder, and says nothing.
        """
        said: dict[str, Any] | None = self.manifest.get("epochs")
        if said is None:
            what = f"{self.folder} was prepared by a version that did not say how its epochs are made"
            raise StaleError(what, next_step=f"turnmill prepare DATA --output {shell_word(self.folder)}")
        return said

    def epochs(self, side: Side = "train") -> Epochs:
        """What every epoch of a side is made of."""
        from turnmill.tokens.epochs import Epochs

        said = self.epochs_recipe
        mixed = said["mix"].get(side)
        return Epochs(
            lengths=self.examples(side).lengths(),
            max_tokens=self.manifest["max_tokens"],
            pack=msgspec.convert(said["pack"], options.Pack),
            seed=said["seed"],
            mixed=None if mixed is None else [stored_share(share) for share in mixed],
            ranks=train_ranks(self.folder / SELECTION) if said["ordered"] and side == "train" else None,
        )

    def packs(self, side: Side = "train") -> Iterator[Pack]:
        """The packed rows of epoch 0, in order, as they are stored.

        Raises:
            UsageError: they were not written (`pack.materialise: false`).
        """
        files = self._files(side, "packed")
        plan = iter(self.plan(side))
        if not files and len(self.examples(side)):
            raise UsageError(f"{self.folder} holds no packed rows", next_step="--pack.materialise true")
        for path in files:
            for batch in batches(path):
                for number in range(batch.num_rows):  # one at a time: as Python numbers a batch is large
                    (row,) = batch.slice(number, 1).to_pylist()
                    yield Pack(numbers=tuple(next(plan)), **row)

    def left(self) -> Iterator[Left]:
        """The rows that left, duplicates too."""
        yield from iterate(self.left_files())

    def left_files(self) -> list[Path]:
        """The files of the rows that left, duplicates last."""
        return [path for name in ("quarantine", "duplicates") for path in self._files(name)]

    def to_datasets(self, side: Side = "train") -> Dataset:
        """The packed rows as a `datasets.Dataset`.

        Raises:
            UsageError: `datasets` is not installed, or there are no packed rows.
        """
        try:
            from datasets import load_dataset
        except ImportError:
            raise UsageError("`datasets` is not installed", next_step="pip install datasets") from None
        files = [str(path) for path in self._files(side, "packed")]
        if not files:
            raise UsageError(f"{self.folder} holds no packed rows of {side!r}", next_step="--pack.materialise true")
        return load_dataset("parquet", data_files=files, split="train")

    def __iter__(self) -> Iterator[Example]:
        """The training examples in order."""
        examples = self.examples()
        return (examples[number] for number in range(len(examples)))

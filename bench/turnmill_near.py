"""turnmill's near-duplicates, in memory or as the steps of `prepare`.

python bench/turnmill_near.py TEXTS.jsonl [memory | steps]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import measuring
import numpy as np

from turnmill.conversation import Checked, Conversation, Message
from turnmill.dedup import Entry, Near, Place, near_duplicates
from turnmill.dedup.near import Comparing, Sketcher
from turnmill.files.tables import BATCH_ROWS
from turnmill.options import Filter
from turnmill.options import Near as Options
from turnmill.verbs import filter, near
from turnmill.verbs.check import conversation_writer

OPTIONS = Options()


def in_memory(texts: Sequence[str]) -> list[int]:
    """Numbers of the texts that leave."""
    sketcher = Sketcher(OPTIONS.threshold, OPTIONS.ngram)
    sketches = [sketcher(texts[start : start + BATCH_ROWS]) for start in range(0, len(texts), BATCH_ROWS)]
    sets = [sketch.set_of(number) for sketch in sketches for number in range(len(sketch.digests))]
    numbers = np.repeat(np.arange(len(texts)), sketcher.bands.number)
    keys = np.concatenate([sketch.keys for sketch in sketches]).ravel()
    digests = np.concatenate([sketch.digests for sketch in sketches])
    pairs = Comparing(sets.__getitem__, OPTIONS.threshold).pairs(keys, numbers, digests[numbers])
    paired = {number for pair in pairs for number in pair[:2]}
    entries = [Entry(str(number), "", Place(0, "", number), "", number) for number in paired]
    return [one.entry.row for one in near_duplicates(entries, Near(pairs, {number: number for number in paired}))]


def stored(texts: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """The texts as rows behind check and filter."""
    with conversation_writer(folder / "rows.parquet", ()) as out:
        for number, text in enumerate(texts):
            question, _, answer = text.partition(" ")
            messages = (Message("user", question, None), Message("assistant", answer, "final"))
            meta = {"source_file": "texts", "source_line": number + 1, "row": number}
            out.write(Checked(Conversation(messages, source="texts", meta=meta)))
    filter.run_shard(filter.FilterTask(str(folder / "rows.parquet"), Filter(use=()), None, ""), folder)
    return [str(folder / "rows.parquet")], [str(folder / filter.INDEX)]


def by_steps(files: list[str], indexes: list[str], folder: Path) -> Near:
    """What dedup is told."""
    shards: list[str] = []
    for number, task in enumerate(near.signature_tasks(files, indexes, OPTIONS)):
        place = folder / f"signatures-{number}"
        place.mkdir()
        near.sign_shard(task, place)
        shards.append(str(place))
    rows = sum(near.array_length(Path(shard) / "rows.bin") for shard in shards)
    pairs: list[str] = []
    for ranged in near.pair_tasks(tuple(shards), OPTIONS, rows):
        place = folder / f"pairs-{ranged.part}"
        place.mkdir()
        near.pair_shard(ranged, place)
        pairs.append(str(place / near.PAIRS))
    return near.read_known(near.NearFiles("", tuple(shards), tuple(pairs)))


def main(data: str, manner: str = "memory") -> None:
    """Measure, and print what was found."""
    given = [json.loads(line) for line in Path(data).read_text().splitlines()]
    texts = [one["text"] for one in given]
    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        places = stored(texts, Path(scratch)) if manner == "steps" else ([], [])
        with measuring.timed(figures, "near"):
            if manner == "steps":
                left = [pair.second for pair in by_steps(*places, Path(scratch)).pairs]
            else:
                left = in_memory(texts)
    measuring.answer(len(texts), figures, **measuring.found(set(left), [one["similarity"] for one in given]))


if __name__ == "__main__":
    main(*sys.argv[1:])

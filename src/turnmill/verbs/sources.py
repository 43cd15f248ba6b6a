"""sources: public datasets as artifacts: what there is, run, and held against what was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Filtered
from turnmill.sources import PinnedSource, sources
from turnmill.steps.build import INLINE, Engine
from turnmill.steps.graph import Node, check_outcomes, run
from turnmill.verbs import check, steps
from turnmill.verbs.check import CheckTask, Outcome
from turnmill.verbs.source_steps import SourceNodes

KEPT = "rows/kept"
"""Counter of the chats that stay."""


class Shown(NamedTuple):
    """One record of a source, as it was published and as it was read."""

    source_file: str
    source_line: int
    original: str
    """JSON text."""
    turns: list[list[Json]] | None
    """None where it left."""
    why: str | None
    """Code and message of a row that left."""


class Verified(NamedTuple):
    """A source held against what was published."""

    stages: list[tuple[str, int]]
    """What is counted → rows, in the order of the line."""
    codes: dict[str, int]
    """Of rows that left."""
    lost: int
    """Records that no count explains: 0 unless something is broken."""
    shown: list[Shown]


def described(key: str) -> dict[str, Json]:
    """What a source is, for `sources list` and `show`."""
    source: PinnedSource = sources.get(key)()
    return {
        "name": key.rpartition(":")[2],
        "summary": sources.summary(key),
        "url": source.pin.url,
        "files": list(source.pin.files),
        "withheld_prompts": source.withheld.pin.url if source.withheld else None,
        "dialect": source.dialect,
        "repairs": list(source.repairs),
        "columns": list(source.keep_columns),
        "tokens": source.tokens,
        "licence": source.licence,
        "version": sources.identity(key),
    }


def mix_entries(keys: Sequence[str], folders: Mapping[str, Path]) -> list[dict[str, Json]]:
    """The `sources` of a config that trains on several: data where they are built, weight by tokens."""
    found: list[dict[str, Json]] = []
    for key in keys:
        name = key.rpartition(":")[2]
        entry: dict[str, Json] = {"name": name, "data": [str(folders[key])], "weight": sources.get(key)().tokens}
        found.append(entry)
    return found


def verify(key: str, nodes: SourceNodes, cache: Path, rows: int, engine: Engine = INLINE) -> Verified:
    """Read a source again, count what becomes of every record, and show some beside their originals.

    Args:
        key: of the source.
        nodes: its graph; what it needs of files is fetched, what is built of it is compared.
        cache: where finished steps lie.
        rows: how many rows are shown, of those that stay and of those that leave each.
        engine: what fetches.
    """
    needed = [node for node in (nodes.download, nodes.prompts) if node is not None]
    check_outcomes(run(needed, cache, engine=engine))
    tasks: Sequence[CheckTask] = nodes.checked.plan(tuple(need.folder(cache) for need in nodes.checked.needs))
    codes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    shown: dict[bool, list[Shown]] = {True: [], False: []}
    for outcome in _outcomes(tasks, counts):
        stays = outcome.checked is not None
        counts["read"] += 1
        counts["rejected"] += not stays and not isinstance(outcome.fault, Filtered)
        counts["filtered at reading"] += isinstance(outcome.fault, Filtered)
        counts["checked"] += stays
        if outcome.fault is not None:
            codes[outcome.fault.code] += 1
        if len(shown[stays]) < rows:
            shown[stays].append(_shown(outcome))
    stages = [(name, counts[name]) for name in ("read", "rejected", "filtered at reading", "checked")]
    stages += list(_built_stages(nodes, cache))
    lost = counts["read"] - counts["rejected"] - counts["filtered at reading"] - counts["checked"]
    return Verified(stages, dict(codes.most_common()), lost + _lost_later(nodes, cache), [*shown[True], *shown[False]])


def _outcomes(tasks: Sequence[CheckTask], counts: Counter[str]) -> Iterator[Outcome]:
    for task in tasks:
        yield from check.outcomes(task, counts)


def _shown(outcome: Outcome) -> Shown:
    record, fault = outcome.record, outcome.fault
    original = record.raw.decode("utf-8", "backslashreplace")
    turns = neutral_turns(outcome.checked) if outcome.checked is not None else None
    return Shown(record.source_file, record.source_line, original, turns, str(fault) if fault else None)


def _built_stages(nodes: SourceNodes, cache: Path) -> Iterator[tuple[str, int]]:
    """Counts of what is built behind check."""
    wanted = [
        (nodes.filtered, "stalled", "rows/stalled"), (nodes.filtered, "filtered", "rows/filtered"),
        (nodes.duplicates, "duplicate", "rows/duplicate"), (nodes.conversations, "chats", "rows/kept"),
        (nodes.rendered, "not rendered", "rows/rejected"), (nodes.rendered, "rendered", "rows/accepted"),
        (nodes.normalized, "repeated texts", "normalize/duplicates"),
        (nodes.normalized, "texts", "normalize/unique"),
    ]  # fmt: skip
    for node, word, counter in wanted:
        if node.is_built(cache):
            yield word, _count(node, cache, counter)


def _lost_later(nodes: SourceNodes, cache: Path) -> int:
    """Rows that went into a built step and did not come out, nor are counted as leaving."""
    lost = 0
    if nodes.conversations.is_built(cache):
        left = sum(_count(nodes.filtered, cache, f"rows/{word}") for word in ("stalled", "filtered"))
        left += _count(nodes.duplicates, cache, "rows/duplicate")
        lost += abs(_count(nodes.checked, cache, "rows/checked") - left - _count(nodes.conversations, cache, KEPT))
    if nodes.rendered.is_built(cache):
        said = sum(_count(nodes.rendered, cache, f"rows/{word}") for word in ("accepted", "rejected"))
        lost += abs(_count(nodes.conversations, cache, KEPT) - said)
    if nodes.normalized.is_built(cache):
        said = sum(_count(nodes.normalized, cache, f"normalize/{word}") for word in ("unique", "duplicates"))
        lost += abs(_count(nodes.rendered, cache, "rows/accepted") - said)
    return lost


def _count(node: Node, cache: Path, counter: str) -> int:
    found = steps.counters_of(node, cache).get(counter, 0)
    return found if isinstance(found, int) else 0

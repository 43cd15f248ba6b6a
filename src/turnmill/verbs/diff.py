"""diff: what another run of `prepare` did otherwise, row by row: from one OUT to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.conversation import Checked, Json, Message
from turnmill.errors import UsageError, quote
from turnmill.files.canonical import readmit
from turnmill.files.disk import beside, write_whole, writing
from turnmill.files.prepared import PreparedData
from turnmill.files.row_keys import SIDES, RowKeys, matched, place_digests, row_keys, stored_at
from turnmill.files.tables import batches

Numbers = NDArray[np.int64]
SHOWN = 5
"""Rows of each class that are named, where nothing else is asked for."""
CLASSES = ("removed", "added", "text", "tokens", "labels", "moved")
"""What can become of a row: gone; new; another text under the same id of its source; the same conversation as other
tokens; the same tokens with other labels or weights; the same on another side."""
LEFT_COLUMNS = ["source", "source_file", "source_line", "code"]
CONTEXT_CHARACTERS = 12
"""Shown before the first character that differs."""
EMPTY: tuple[Json, ...] = (None, {}, [], "")


class Changes(NamedTuple):
    """Places of rows in the keys of A and of B."""

    removed: Numbers
    """In A."""
    added: Numbers
    """In B."""
    text: tuple[Numbers, Numbers]
    kept: tuple[Numbers, Numbers]
    """The same conversation on both sides, whatever else changed."""
    tokens: Numbers
    """Places in `kept`, as the next two."""
    labels: Numbers
    moved: Numbers


def diff(first: Path, second: Path, *, shown: int = SHOWN) -> dict[str, Json]:
    """What B has otherwise than A: the answer of `turnmill diff --json`.

    Args:
        first: A, a prepared folder.
        second: B, likewise.
        shown: rows of each class that are named.

    Raises:
        UsageError: not a prepared folder.
        StaleError: a file is missing or changed.
    """
    a, b = PreparedData(first), PreparedData(second)
    keys = row_keys(a), row_keys(b)
    changes = _changes(*keys)
    counts = _counts(changes)
    codes = _codes(a, b)
    left = _left_for(b, keys[0].places[changes.removed]), _left_for(a, keys[1].places[changes.added])
    return {
        "a": {"name": str(first), "fingerprint": a.manifest["fingerprint"], **_sizes(keys[0])},
        "b": {"name": str(second), "fingerprint": b.manifest["fingerprint"], **_sizes(keys[1])},
        "same": not any(counts[name] for name in CLASSES) and all(before == after for before, after in codes.values()),
        "rows": counts,
        "moved": _moves(changes, *keys),
        "removed_with": left[0],
        "added_had": left[1],
        "codes": codes,
        "sources": _sources(changes, *keys),
        "options": _options(a, b),
        "data": _changed(_data(a), _data(b)),
        "versions": _changed(_versions(a), _versions(b)),
        "shown": _shown(changes, keys, (a, b), shown),
    }


def write_page(page: str, path: Path) -> None:
    """Write the HTML page, whole or not at all.

    Raises:
        UsageError: the place cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected a file to write", next_step="--html diff.html")
    draft = beside(path, "draft")
    with writing(path):
        try:
            write_whole(draft, page.encode("utf-8"))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def _changes(a: RowKeys, b: RowKeys) -> Changes:
    """By id first; of what is left, by the row's id in its source."""
    kept = matched(a.ids, b.ids)
    rest_a, rest_b = _rest(len(a.ids), kept[0]), _rest(len(b.ids), kept[1])
    named_a, named_b = (
        rest[keys.names[rest].any(axis=1)] for keys, rest in ((a, rest_a), (b, rest_b))
    )  # all zeros: it has no id there
    pairs = matched(a.names[named_a], b.names[named_b])
    text = named_a[pairs[0]], named_b[pairs[1]]
    tokens = a.token_digests[kept[0]] != b.token_digests[kept[1]]
    labels = ~tokens & (a.weight_digests[kept[0]] != b.weight_digests[kept[1]])
    moved = a.sides[kept[0]] != b.sides[kept[1]]
    found = (np.flatnonzero(which) for which in (tokens, labels, moved))
    return Changes(np.setdiff1d(rest_a, text[0]), np.setdiff1d(rest_b, text[1]), text, kept, *found)


def _rest(rows: int, taken: Numbers) -> Numbers:
    free = np.ones(rows, np.bool_)
    free[taken] = False
    return np.flatnonzero(free)


def _counts(changes: Changes) -> dict[str, int]:
    """Rows of each class; `same`: those of which nothing changed."""
    touched = np.unique(np.concatenate([changes.tokens, changes.labels, changes.moved]))
    counts = {name: len(getattr(changes, name)) for name in CLASSES if name != "text"}
    return {"same": len(changes.kept[0]) - len(touched), **counts, "text": len(changes.text[0])}


def _moves(changes: Changes, a: RowKeys, b: RowKeys) -> dict[str, int]:
    """`train to eval` → rows."""
    before, after = a.sides[changes.kept[0][changes.moved]], b.sides[changes.kept[1][changes.moved]]
    return dict(Counter(f"{SIDES[x]} to {SIDES[y]}" for x, y in zip(before, after, strict=True)))


def _sizes(keys: RowKeys) -> dict[str, Json]:
    return {side: _size(keys, keys.sides == number) for number, side in enumerate(SIDES)}


def _size(keys: RowKeys, which: NDArray[np.bool_]) -> dict[str, Json]:
    tokens, trained = int(keys.tokens[which].sum()), int(keys.trained[which].sum())
    share = round(trained / tokens, 4) if tokens else 0.0
    return {"rows": int(which.sum()), "tokens": tokens, "trained_tokens": trained, "trained_share": share}


def _sources(changes: Changes, a: RowKeys, b: RowKeys) -> dict[str, Json]:
    """Source → its training rows on both sides, its share of the trained tokens, and what became of its rows."""
    touched = {"removed": (a, changes.removed), "added": (b, changes.added), "text": (b, changes.text[1])}
    for name in ("tokens", "labels", "moved"):
        touched[name] = (b, changes.kept[1][getattr(changes, name)])
    found: dict[str, Json] = {}
    for name in dict.fromkeys([*a.source_names, *b.source_names]):
        found[name] = {side: _of_source(keys, name) for side, keys in (("a", a), ("b", b))}
        for what, (keys, rows) in touched.items():
            found[name][what] = int((keys.sources[rows] == _number(keys, name)).sum())
    return found


def _of_source(keys: RowKeys, name: str) -> dict[str, Json]:
    trains = keys.sides == SIDES.index("train")
    size = _size(keys, trains & (keys.sources == _number(keys, name)))
    whole = int(keys.trained[trains].sum())
    return {**size, "share": round(size["trained_tokens"] / whole, 4) if whole else 0.0}


def _number(keys: RowKeys, name: str) -> int:
    return keys.source_names.index(name) if name in keys.source_names else -1


def _codes(a: PreparedData, b: PreparedData) -> dict[str, list[int]]:
    """Code → how often in A and in B, the most first."""
    before, after = a.report["codes"], b.report["codes"]
    found = {code: [before.get(code, 0), after.get(code, 0)] for code in sorted({*before, *after})}
    return dict(sorted(found.items(), key=lambda item: -max(item[1])))


def _left_for(data: PreparedData, places: NDArray[np.uint64]) -> dict[str, Json]:
    """`{"codes": code → rows, "not_read": rows}`: what became of rows in the folder that lacks them, by their places.

    Of several rows of one place each counts.
    """
    wanted, rows_of = np.unique(places, return_counts=True)
    found: Counter[str] = Counter()
    seen = np.zeros(len(wanted), np.bool_)
    for path in data.left_files():
        for batch in batches(path, LEFT_COLUMNS):
            digests = place_digests(batch)
            at = np.minimum(np.searchsorted(wanted, digests), max(len(wanted) - 1, 0))
            codes = batch.column("code").to_pylist()
            for hit in np.flatnonzero(wanted[at] == digests).tolist() if len(wanted) else ():
                if not seen[at[hit]]:
                    seen[at[hit]] = True
                    found[codes[hit]] += int(rows_of[at[hit]])
    return {"codes": dict(found.most_common()), "not_read": int(rows_of[~seen].sum())}


def _options(a: PreparedData, b: PreparedData) -> dict[str, list[Json]]:
    """Dotted path → the value in A and in B, of every option that differs; null where a side has no such option."""
    configs = _config(a), _config(b)
    if configs[0] is None or configs[1] is None:  # it was not copied with the folder: the manifest says most of it
        recipes = [{"recipe": x.manifest["recipe"], "epochs": x.manifest.get("epochs")} for x in (a, b)]
        return _changed(_flat(recipes[0]), _flat(recipes[1]))
    return _changed(_flat(configs[0]), _flat(configs[1]))


def _config(data: PreparedData) -> dict[str, Any] | None:
    """The config that `run.json` holds, its sources by name."""
    path = data.folder / "run.json"
    if not path.is_file():
        return None
    config: dict[str, Any] = msgspec.json.decode(path.read_bytes())["config"]
    return {**config, "sources": {source["name"]: source for source in config["sources"]}}


def _flat(value: Any, path: str = "") -> dict[str, Json]:
    """Dotted path → value; lists are values."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        inner: found
        for key, below in value.items()
        for inner, found in _flat(below, f"{path}.{key}" if path else key).items()
    }


def _data(data: PreparedData) -> dict[str, Json]:
    """`source/file` → the beginning of its hash."""
    sources = data.manifest["sources"]
    return {f"{name}/{file['name']}": file["sha256"][:12] for name, one in sources.items() for file in one["files"]}


def _versions(data: PreparedData) -> dict[str, Json]:
    """What else the bytes depend on: the model's tokenizer and template, the steps, the libraries."""
    manifest = data.manifest
    return {
        "tokenizer": manifest["model"]["tokenizer_sha256"][:12] if manifest["model"]["tokenizer_sha256"] else None,
        "template": xxhash.xxh3_64_hexdigest((manifest["template"]["text"] or "").encode("utf-8")),
        **{f"step {step['name']}": step["version"] for step in manifest["steps"]},
        **manifest["made_by"],
    }


def _changed(before: dict[str, Json], after: dict[str, Json]) -> dict[str, list[Json]]:
    """Path → the value before and after, of those that differ; an empty one says as much as none."""
    paths = dict.fromkeys([*before, *after])
    found = {
        path: [None if value in EMPTY else value for value in (before.get(path), after.get(path))] for path in paths
    }
    return {path: values for path, values in found.items() if values[0] != values[1]}


def _shown(
    changes: Changes, keys: tuple[RowKeys, RowKeys], data: tuple[PreparedData, PreparedData], count: int
) -> dict[str, list[dict[str, Json]]]:
    """The first rows of each class, in the order of B (of A where they are gone)."""
    pairs: dict[str, tuple[Numbers | None, Numbers | None]] = {
        "removed": (changes.removed, None), "added": (None, changes.added), "text": changes.text,
    }  # fmt: skip
    for name in ("tokens", "labels", "moved"):
        which = getattr(changes, name)
        pairs[name] = (changes.kept[0][which], changes.kept[1][which])
    chosen = {name: [_first(rows, by, count) for rows in by] for name, by in pairs.items()}
    rows = [_stored(one, [number for both in chosen.values() for number in both[side]])
            for side, one in enumerate(data)]  # fmt: skip
    return {
        name: [_said(rows, keys, pair) for pair in _zipped(both) if pair != (None, None)]
        for name, both in chosen.items()
    }


def _first(rows: Numbers | None, by: Sequence[Numbers | None], count: int) -> list[int]:
    """The first of a class's rows, in the order in which B, or A alone, holds them."""
    if rows is None:
        return []
    order = next(column for column in reversed(by) if column is not None)
    found: list[int] = rows[np.argsort(order, kind="stable")[:count]].tolist()
    return found


def _zipped(both: Sequence[list[int]]) -> Iterator[tuple[int | None, int | None]]:
    before, after = both
    for number in range(max(len(before), len(after))):
        yield (before[number] if before else None), (after[number] if after else None)


def _stored(data: PreparedData, numbers: Sequence[int]) -> dict[int, Checked]:
    files = [path for side in SIDES for path in data.conversation_files(side)]
    return {number: readmit(batch)[0] for number, batch in stored_at(files, sorted(set(numbers)))}


def _said(
    rows: Sequence[dict[int, Checked]], keys: tuple[RowKeys, RowKeys], pair: tuple[int | None, int | None]
) -> dict[str, Json]:
    """One row: what it is called, where it stands, how many tokens train, and where its text first differs."""
    places = [(side, number) for side, number in enumerate(pair) if number is not None]
    row = rows[places[-1][0]][places[-1][1]]
    said: dict[str, Json] = {
        "id": row.id, "source": row.source, "source_id": row.source_id,
        "source_file": row.meta.get("source_file"), "source_line": row.meta.get("source_line"),
    }  # fmt: skip
    for side, number in places:
        own = keys[side]
        trains = {"tokens": int(own.tokens[number]), "trained_tokens": int(own.trained[number])}
        said["ab"[side]] = {"side": SIDES[own.sides[number]], **trains}
    if len(places) == 2:
        before, after = (rows[side][number] for side, number in places)
        said["difference"] = first_difference(before, after) if before.id != after.id else None
    return said


def first_difference(before: Checked, after: Checked) -> dict[str, Json]:
    """`{"message", "a", "b"}`: the first message of two conversations that differs, at most 80 characters of each."""
    for ours, theirs in zip_longest(before.messages, after.messages):
        if ours is None or theirs is None or _seen(ours) != _seen(theirs):
            texts = [None if one is None else one.text for one in (ours, theirs)]
            start = max(0, _shared(*(text or "" for text in texts)) - CONTEXT_CHARACTERS)
            a, b = (None if text is None else quote(text[start:]) for text in texts)
            return {"message": (theirs or ours).recorded, "a": a, "b": b}
    return {"message": None, "a": "tools or template arguments", "b": "tools or template arguments"}


def _seen(message: Message) -> tuple[str | None, ...]:
    """What the id takes of a message."""
    return message.role, message.text, message.channel, message.name, message.recipient


def _shared(a: str, b: str) -> int:
    """Characters that two texts begin with."""
    return next((number for number, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

"""The steps of a public dataset: fetched, read, checked, each chat once, rendered, and as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.dialects import dialects
from turnmill.errors import HealthError, shell_word
from turnmill.files.canonical import schema as canonical_schema
from turnmill.files.download import Wanted, fetch, partial_name, wanted_files
from turnmill.files.plan import SHARD_BYTES
from turnmill.files.plan import plan as planned_source
from turnmill.files.storage import sha256_of
from turnmill.files.stores import is_url
from turnmill.files.tables import BatchWriter, batches
from turnmill.files.texts import template_of
from turnmill.options import Check, Dedup, Filter, Health, Read, Source
from turnmill.repairs import repairs
from turnmill.sources import Pin, PinnedSource, sources
from turnmill.steps.build import Finished
from turnmill.steps.graph import Node
from turnmill.steps.shards import RESULT, ShardResult, shard_folder, sums
from turnmill.steps.step import Step
from turnmill.verbs import check, dedup, filter, normalize, prompts, render
from turnmill.verbs.prepare import check_sayable
from turnmill.verbs.read import limited
from turnmill.verbs.render import Wording, template_alone

DOWNLOAD_VERSION = CONVERSATIONS_VERSION = 1
SOURCE_VERSION = 1
"""Of how a source's rows are read: beside `check.VERSION`."""
DEFAULT_WORDING = template_alone("chatml")


class Chats(msgspec.Struct, frozen=True):
    """The structured conversations of a source: `read_artifact(folder, Chats)`."""

    files: tuple[str, ...]
    """Canonical Parquet, relative to the artifact's folder, in order."""
    rows: int
    read: int
    """Records of the source."""


class Texts(msgspec.Struct, frozen=True):
    """Rendered or normalised texts of a source: `read_artifact(folder, Texts)`."""

    files: tuple[str, ...]
    """Parquet `id, text`, relative to the artifact's folder, in order."""
    rows: int
    template: str
    """Hex sha256 of the template."""


class SourceNodes(NamedTuple):
    """The nodes of one source."""

    download: Node
    prompts: Node | None
    checked: Node
    filtered: Node
    duplicates: Node
    conversations: Node
    """The structured chats, each once."""
    rendered: Node
    """`id, text`; ids and repeated texts kept."""
    normalized: Node
    """`id, text, source_id`: id by content, each text once."""

    @property
    def named(self) -> dict[str, Node]:
        """Stage → its node, in order."""
        return {node.name.rpartition("/")[2]: node for node in self if node is not None}


class Limits(NamedTuple):
    """How much of a source is taken."""

    rows: int | None = None
    """At most so many records, of its first file alone; None: all of it."""


def nodes_of(key: str, wording: Wording = DEFAULT_WORDING, limits: Limits = Limits()) -> SourceNodes:  # noqa: B008  # immutable
    """The graph of a source.

    Args:
        key: name of the source, or `path/to/mine.py:function`.
        wording: what its conversations are rendered with.
        limits: how much of it is taken.

    Raises:
        UnknownName: no such source.
    """
    source, name = sources.get(key)(), key.rpartition(":")[2]
    download = _download_node(f"{name}/download", source.pin, limits)
    restored = None
    if source.withheld is not None:
        fetched = _download_node(f"{name}/prompts-download", source.withheld.pin, Limits())
        restored = _prompts_node(key, name, fetched, download)
    checked = _check_node(key, name, source, download, restored, limits)
    filtered = _filter_node(name, checked)
    duplicates = _dedup_node(name, checked, filtered)
    conversations = _conversations_node(name, source, checked, filtered, duplicates)
    rendered = _render_node(name, conversations, wording)
    return SourceNodes(
        download, restored, checked, filtered, duplicates, conversations, rendered, _normalize_node(name, rendered)
    )


def shard_files(folder: Path, name: str) -> list[Path]:
    """That file of every shard of a finished step, in order."""
    return [shard / name for shard in sorted(shard_folder(folder, 0).parent.iterdir())]


def downloaded(folder: Path) -> list[tuple[str, str]]:
    """Path and name of each file that a download step brought, in order."""
    found = []
    for shard in sorted(shard_folder(folder, 0).parent.iterdir()):
        (path,) = (path for path in shard.rglob("*") if path.is_file() and path != shard / RESULT)
        found.append((str(path), path.relative_to(shard).as_posix()))
    return found


def _download_node(name: str, pin: Pin, limits: Limits) -> Node:
    hashes = dict(pin.sha256)
    if not is_url(pin.url):
        hashes = {one.name: sha256_of(one.path) for one in wanted_files(pin.url, pin.files, hashes)}
    params: dict[str, Json] = {"files": list(pin.files), "sha256": dict(sorted(hashes.items()))}
    if is_url(pin.url):
        params["url"] = pin.url
    if limits.rows is not None:
        params["first_file"] = True

    def plan(_: tuple[Path, ...]) -> list[Wanted]:
        found = wanted_files(pin.url, pin.files, hashes)
        return found if limits.rows is None else found[:1]

    return Node(name, Step("download", DOWNLOAD_VERSION, params, ()), plan, fetch_shard)


def fetch_shard(wanted: Wanted, folder: Path) -> ShardResult:
    """Fetch one file into its shard; what is not yet whole outlives a run, beside the steps."""
    cache = folder.parents[2]
    size = fetch(wanted, folder / wanted.name, cache / ".downloads" / partial_name(wanted))
    return ShardResult({"download/files": 1, "download/bytes": size})


def _prompts_node(key: str, name: str, fetched: Node, download: Node) -> Node:
    params: dict[str, Json] = {"source": sources.identity(key)}
    step = Step("prompts", prompts.VERSION, params, (fetched.step.fingerprint, download.step.fingerprint))

    def plan(folders: tuple[Path, ...]) -> list[prompts.PromptsTask]:
        holding, withholding = (tuple(downloaded(folder)) for folder in folders)
        return [prompts.PromptsTask(key, withholding, holding)]

    return Node(f"{name}/prompts", step, plan, prompts.run_shard, needs=(fetched, download))


def _check_node(
    key: str, name: str, source: PinnedSource, download: Node, restored: Node | None, limits: Limits
) -> Node:
    read = Read(keep_columns=source.keep_columns)
    mapped = Source(
        name=name, data=(), dialect=source.dialect, columns=source.columns, tags=source.tags, roles=source.roles,
        repairs=source.repairs,
    )  # fmt: skip
    for repair in source.repairs:
        repairs.get(repair)
    params: dict[str, Json] = {
        "source": sources.identity(key),
        "version": SOURCE_VERSION,
        "dialect": dialects.identity(source.dialect),
        "mapping": {key: getattr(source, key) for key in ("columns", "tags", "roles")},
        "repairs": [repairs.identity(repair) for repair in source.repairs],
        "keep_columns": list(source.keep_columns),
        "fractional": source.fractional,
        "shard_bytes": SHARD_BYTES,
        "limit": limits.rows,
    }
    needs = (download,) if restored is None else (download, restored)
    step = Step("check", check.VERSION, params, tuple(need.step.fingerprint for need in needs))

    def plan(folders: tuple[Path, ...]) -> list[check.CheckTask]:
        known = str(shard_folder(folders[1], 0) / prompts.PROMPTS) if restored is not None else ""
        found = limited(planned_source(name, downloaded(folders[0]), read), limits.rows)
        return [
            check.CheckTask(
                shard, source.dialect, mapped, read, Check(), source.fractional, step.fingerprint, key, known
            )
            for shard in found.shards
        ]

    def finish(_: Path, results: Sequence[ShardResult]) -> Mapping[str, Json]:
        check.check_health(name, sums(results), Health(), f"turnmill sources verify {shell_word(key)}")
        check.check_fatal([fault for result in results for fault in result.extra["fatal"]], read)
        return {}

    return Node(f"{name}/check", step, plan, check.run_shard, needs, finish)


def _filter_node(name: str, checked: Node) -> Node:
    options = filter.settled(Filter())
    step = filter.step_of(checked.step, options, None)

    def plan(folders: tuple[Path, ...]) -> list[filter.FilterTask]:
        paths = shard_files(folders[0], check.CONVERSATIONS)
        return [filter.FilterTask(str(path), options, None, step.fingerprint) for path in paths]

    return Node(f"{name}/filter", step, plan, filter.run_shard, (checked,))


def _dedup_node(name: str, checked: Node, filtered: Node) -> Node:
    made = dedup.step_of([filtered.step], Dedup())
    step = Step(made.name, made.version, made.params, (checked.step.fingerprint, *made.inputs))

    def plan(folders: tuple[Path, ...]) -> list[dedup.DedupTask]:
        conversations, indexes = _paired(folders)
        return [dedup.DedupTask(indexes, conversations, (name,), Dedup(), step.fingerprint)]

    return Node(f"{name}/dedup", step, plan, dedup.run_shard, (checked, filtered))


def _paired(folders: tuple[Path, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of checked rows, and the index of each."""
    names = (check.CONVERSATIONS, filter.INDEX)
    conversations, indexes = (
        tuple(map(str, shard_files(folder, file))) for folder, file in zip(folders, names, strict=False)
    )
    return conversations, indexes


class KeptTask(NamedTuple):
    """One file of checked rows."""

    conversations: str
    indexed: str
    duplicates: str
    keep_columns: tuple[str, ...]


def _conversations_node(name: str, source: PinnedSource, checked: Node, filtered: Node, duplicates: Node) -> Node:
    needs = (checked, filtered, duplicates)
    step = Step("conversations", CONVERSATIONS_VERSION, {}, tuple(need.step.fingerprint for need in needs))
    columns = check.kept_columns(Read(keep_columns=source.keep_columns))

    def plan(folders: tuple[Path, ...]) -> list[KeptTask]:
        (lost,) = shard_files(folders[2], dedup.DUPLICATES)
        return [KeptTask(*pair, str(lost), columns) for pair in zip(*_paired(folders), strict=True)]

    def finish(draft: Path, results: Sequence[ShardResult]) -> Finished:
        counts = sums(results)
        if not counts.get("rows/kept"):
            raise HealthError(f"source {name!r}: not one chat is left", next_step=f"turnmill sources verify {name}")
        return Finished({}, Chats(_files(results, check.CONVERSATIONS), counts["rows/kept"], counts["rows/checked"]))

    return Node(f"{name}/conversations", step, plan, keep_shard, needs, finish)


def keep_shard(task: KeptTask, folder: Path) -> ShardResult:
    """Write the rows of a file that neither a filter nor dedup let go."""
    out = BatchWriter(folder / check.CONVERSATIONS, canonical_schema(task.keep_columns))
    counts: Counter[str] = Counter()
    index_batches = list(batches(Path(task.indexed), ["row", "kept"]))
    ends = (index_batches[0]["row"][0].as_py(), index_batches[-1]["row"][-1].as_py()) if index_batches else (0, 0)
    lost = dedup.lost_rows(Path(task.duplicates), *ends)
    for batch, index in zip(batches(Path(task.conversations)), index_batches, strict=True):
        rows = zip(index.column("row").to_pylist(), index.column("kept").to_pylist(), strict=True)
        kept = [place for place, (row, stays) in enumerate(rows) if stays and row not in lost]
        counts.update({"rows/checked": batch.num_rows, "rows/kept": len(kept)})
        out.write(batch, kept)
    out.close()
    return ShardResult(dict(counts))


def _files(results: Sequence[ShardResult], name: str) -> tuple[str, ...]:
    return tuple(f"shards/{number:05d}/{name}" for number in range(len(results)))


def _render_node(name: str, conversations: Node, wording: Wording) -> Node:
    step = render.step_of(conversations.step, wording)
    template = render.template_digest(render.model_of(wording))

    def plan(folders: tuple[Path, ...]) -> list[render.RenderTask]:
        return render.tasks_of(shard_files(folders[0], check.CONVERSATIONS), wording, step.fingerprint)

    def finish(_: Path, results: Sequence[ShardResult]) -> Finished:
        counts = sums(results)
        check_sayable(name, counts, wording.render, wording.model.template or wording.model.name_or_path or "")
        return Finished({}, Texts(_files(results, render.TEXTS), counts.get("rows/accepted", 0), template))

    return Node(f"{name}/rendered", step, plan, render.run_shard, (conversations,), finish)


def _normalize_node(name: str, rendered: Node) -> Node:
    step = normalize.step_of(rendered.step)

    def plan(folders: tuple[Path, ...]) -> list[normalize.NormalizeTask]:
        return [normalize.NormalizeTask(tuple(map(str, shard_files(folders[0], render.TEXTS))))]

    def finish(draft: Path, results: Sequence[ShardResult]) -> Finished:
        template = template_of(shard_folder(draft, 0) / normalize.TEXTS) or ""
        return Finished({}, Texts(_files(results, normalize.TEXTS), sums(results).get("normalize/unique", 0), template))

    return Node(f"{name}/normalized", step, plan, normalize.run_shard, (rendered,), finish)

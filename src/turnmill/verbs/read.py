"""read: a source's files, cut into shards, each file with its dialect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnmill.config_import.dataset_info import PLACES
from turnmill.conversation import PROVENANCE, Conversation, Json
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.canonical import ALWAYS_KEPT
from turnmill.dialects.detect import TEXT, Detected, detect
from turnmill.dialects.sessions import TRACE_COLUMNS, has_trace_columns, is_session, session_of, tell_session
from turnmill.errors import Rejected, StaleError, UsageError, shell_word
from turnmill.files.foreign import FIRST_RECORDS, refuse_other_formats
from turnmill.files.plan import SHARD_BYTES, first_records, plan, row_groups, whole_file
from turnmill.files.read import records
from turnmill.files.record import Shard, SourceFile, SourcePlan
from turnmill.files.stores import is_url
from turnmill.files.texts import template_of
from turnmill.options import KEEP_ALL, Read, Source
from turnmill.repairs import repairs

if TYPE_CHECKING:
    from turnmill.config import Config

UNCOUNTED = 1 << 60
"""More records than any file has."""
SAMPLE_RECORDS = 100
"""Good records of a file that `auto` looks at."""


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source whose files were found, hashed, counted and told apart."""

    source: Source
    plan: SourcePlan
    dialects: dict[str, str]
    """File name → dialect."""
    reasons: dict[str, str]
    """File name → why `auto` chose its dialect; nothing where it was given."""


def open_sources(config: Config, *, shard_bytes: int = SHARD_BYTES, is_hashed: bool = True) -> list[OpenSource]:
    """Every source of the config, rows numbered through all of them.

    Args:
        config: of the run.
        shard_bytes: about how much of a file one shard holds.
        is_hashed: False where no step is made of the files.

    Raises:
        UsageError: nothing found, a file is unreadable or empty, or its dialect cannot be told.
    """
    opened: list[OpenSource] = []
    first_row = 0
    for source in config.sources:
        for name in source.repairs:
            repairs.get(name)
        own = config.of(source)
        whys: dict[str, str] = {}
        found = plan(
            source.name,
            source.data,
            own.read,
            first_row=first_row,
            shard_bytes=shard_bytes,
            is_hashed=is_hashed,
            session_of=partial(_session_of, source, whys),
        )
        found = limited(found, own.limit)
        opened.append(_with_dialects(source, found, own.read, whys))
        first_row += sum(shard.rows for shard in found.shards)
    refuse_mixed_templates(opened)
    return opened


def open_uncounted(source: Source, path: str, name: str, read: Read) -> OpenSource:
    """One local file as a source whose records nobody has counted: for whoever reads on from any place in it.

    Only its beginning is read. It is one shard with an end to its records that is never reached; a Parquet file, which
    knows its rows, is a shard for each row group.

    Args:
        source: how its rows are read.
        path: of the file.
        name: that it is called by.
        read: how it is read.

    Raises:
        UsageError: it is unreadable or empty, or its dialect cannot be told.
    """
    whys: dict[str, str] = {}
    whole = whole_file(source.name, path, name, 0)
    if whole.layout == "parquet":
        shards = list(row_groups(whole, 0))
    else:
        session = _session_of(source, whys, partial(first_records, whole, read)) or ""
        shards = [msgspec.structs.replace(whole, session=session, rows=UNCOUNTED)]
    return _with_dialects(source, SourcePlan(source.name, (), tuple(shards)), read, whys)


def refuse_mixed_templates(opened: Sequence[OpenSource]) -> None:
    """Refuse rendered texts of two templates in one run: a model would learn two ways to say one thing.

    Raises:
        StaleError: two files of texts name two templates.
    """
    first: SourceFile | None = None
    template: str | None = None
    for file in (file for one in opened for file in one.plan.files if one.dialects.get(file.name) == TEXT):
        if file.layout != "parquet" or file.compression != "none" or is_url(file.path):
            continue
        found = template_of(Path(file.path))
        if found is None:
            continue
        if first is not None and found != template:
            what = f"{first.name} was rendered with the template {template:.12}…, {file.name} with {found:.12}…"
            raise StaleError(
                f"{what}; expected texts of one template", next_step="turnmill render DATA --template NAME --output OUT"
            )
        first, template = file, found


def _session_of(source: Source, whys: dict[str, str], first_records: Callable[[], list[dict[str, Json]]]) -> str | None:
    """The session dialect of a file, where the source names one or lets it be told; `whys` takes what told it."""
    if source.mode == TEXT:
        return None
    if source.dialect != "auto":
        is_one = session_of(source.dialect) is not None and is_session(source.dialect, first_records())
        return source.dialect if is_one else None
    told = tell_session(first_records())
    if told is None:
        return None
    whys[told.name] = told.why
    return told.name


def limited(found: SourcePlan, limit: int | None) -> SourcePlan:
    """The plan with at most `limit` rows."""
    if limit is None:
        return found
    left = limit
    shards: list[Shard] = []
    for shard in found.shards:
        rows = min(left, shard.rows)
        if rows:
            shards.append(msgspec.structs.replace(shard, rows=rows))
        left -= rows
    return msgspec.structs.replace(found, shards=tuple(shards))


def with_columns_named(config: Config, opened: Sequence[OpenSource]) -> Config:
    """The config with `read.keep_columns: all` as the names of the columns that it keeps, sorted.

    Every record is parsed for it, and one of each make (the same columns with something in them) converted.
    """
    if config.read.keep_columns != KEEP_ALL:
        return with_trace_columns(config, opened)
    names = sorted({name for source in opened for name in _undeclared(source, config.of(source.source))})
    return config.model_copy(update={"read": dataclasses.replace(config.read, keep_columns=tuple(names))})


def with_trace_columns(config: Config, opened: Sequence[OpenSource]) -> Config:
    """The config with the columns that link and describe agents' runs kept, where any file holds some."""
    if not any(has_trace_columns(name) for source in opened for name in set(source.dialects.values())):
        return config
    names = tuple(dict.fromkeys((*config.read.keep_columns, *TRACE_COLUMNS)))
    return config.model_copy(update={"read": dataclasses.replace(config.read, keep_columns=names)})


def _undeclared(opened: OpenSource, config: Config) -> set[str]:
    """The columns of a source that its dialects leave."""
    found: set[str] = set()
    done: set[tuple[str, frozenset[str]]] = set()
    reading = Reading(mapping_of(opened.source), config.read.think_tags, True, KEEP_ALL)
    for shard in opened.plan.shards:
        name = opened.dialects[shard.name]
        for value in _good(shard, config.read):
            make = (name, frozenset(key for key, held in value.items() if held is not None))
            if make in done:
                continue
            try:
                conversation = convert(value, dialects.get(name), reading)
            except Rejected:
                continue
            done.add(make)
            found |= set(kept_annotations(conversation, KEEP_ALL))
    return found


def kept_annotations(conversation: Conversation, keep_columns: Sequence[str]) -> list[str]:
    """The kept columns that a row has, in the order of the names, or as it holds them where all are kept."""
    if keep_columns == KEEP_ALL:
        return [name for name in conversation.meta if name not in PROVENANCE and name not in ALWAYS_KEPT]
    return [name for name in keep_columns if name in conversation.meta]


def mapping_of(source: Source) -> Mapping:
    """How the source names its fields."""
    return Mapping(columns=source.columns, tags=source.tags, roles=source.roles)


def _with_dialects(source: Source, found: SourcePlan, read: Read, whys: dict[str, str]) -> OpenSource:
    names: dict[str, Shard] = {}
    for shard in found.shards:
        names.setdefault(shard.name, shard)
    for shard in (shard for shard in names.values() if shard.layout == "lines" and not shard.session):
        refuse_other_formats(shard, list(islice(records(shard, read), min(shard.rows, FIRST_RECORDS))))
    if source.dialect != "auto" or source.mode == TEXT:
        given = TEXT if source.mode == TEXT else source.dialect
        dialects.get(given)
        return OpenSource(source, found, dict.fromkeys(names, given), {})
    told: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name, shard in names.items():
        if shard.session:
            told[name], reasons[name] = shard.session, whys[shard.session]
            continue
        sample = list(islice(_good(shard, read), SAMPLE_RECORDS))
        if sample:
            _refuse_catalogue(shard, sample)
            told[name], reasons[name] = _detected(name, sample, source)
        else:
            told[name] = "openai"  # no record can be read: every row leaves with its own code
    return OpenSource(source, found, told, reasons)


def _refuse_catalogue(shard: Shard, sample: list[dict[str, Json]]) -> None:
    """Refuse a `dataset_info.json` of LLaMA-Factory: it says where chats are, and holds none."""
    entries = [entry for record in sample for entry in record.values()]
    if entries and all(isinstance(entry, dict) and entry.keys() & PLACES for entry in entries):
        message = f"{shard.name}: a list of data sets, as LLaMA-Factory's dataset_info.json, not data"
        raise UsageError(message, next_step=f"turnmill config import {shell_word(shard.path)} > run.yaml")


def _detected(name: str, sample: list[dict[str, Json]], source: Source) -> Detected:
    try:
        detected = detect(sample, mapping_of(source))
    except UsageError as fault:
        raise UsageError(f"{name}: {fault.message}", next_step=fault.next_step) from fault
    if detected.name == TEXT and source.mode == "chat":
        message = f"{name}: raw texts ({detected.why}), and mode of source {source.name!r} is chat"
        raise UsageError(message, next_step=f"--sources.{source.name}.mode text")
    return detected


def _good(shard: Shard, read: Read) -> Iterator[dict[str, Json]]:
    for record in records(shard, read):
        if record.value is not None:
            yield record.value

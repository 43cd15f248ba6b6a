"""What `prepare` publishes: OUT's files, its manifest, its report, and the answer of `prepare --json`."""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmill.config import effective_fingerprint
from turnmill.conversation import Json
from turnmill.errors import quote, redacted
from turnmill.files.inventory import json_file, rows_of
from turnmill.files.publish import publish
from turnmill.files.selection import SELECTION
from turnmill.files.stores import is_url
from turnmill.files.tables import batches
from turnmill.report.census import SourceCensus, census
from turnmill.report.census_page import census_page
from turnmill.selection import ORDERED
from turnmill.steps.step import Step
from turnmill.verbs import check, dedup
from turnmill.verbs.built import Built
from turnmill.verbs.prepare import Plan, Prepared
from turnmill.verbs.score import scores_file
from turnmill.verbs.tokenize import line_of

KIND = "prepared"
SAMPLES_PER_SOURCE = 3
COUNTED_BY_SELECTION = ("train/", "eval/", "rows/accepted", "rows/eval")
"""Counters that hold for the rows that were selected, where any were."""
ROWS_PER_CODE = 3
"""Rows of each code and source that the report quotes."""


def publish_prepared(plan: Plan, prepared: Prepared, output: Path, started: float) -> dict[str, Json]:
    """Publish OUT whole and give the answer.

    Args:
        plan: of the run.
        prepared: its steps.
        output: OUT.
        started: `time.time()` when the run began.
    """
    report = census(source_censuses(plan, prepared)) | beside_census(plan, prepared)
    answer = answer_of(output, report, prepared, plan)
    reports: dict[str, Path | bytes] = {
        "report.json": json_file(report),
        "report.html": census_page(report).encode("utf-8"),
    }
    contents = {**files_of(prepared, plan), **reports}
    publish(contents, output, about=about(plan, prepared, answer), unlisted={"run.json": _run(plan, started)})
    return answer


def beside_census(plan: Plan, prepared: Prepared) -> dict[str, Json]:
    """What the report says beside the counts: the limit, what the template cannot say, and some rows that left."""
    paths = [path for one in _leaving(prepared) for path in one.file(check.QUARANTINE)]
    return {
        "max_tokens": plan.max_tokens,
        "template_says": _says(plan),
        "left_rows": left_rows(paths, [*prepared.checks]),
        "show_left": "turnmill quarantine show OUT",
        "selection": None if prepared.selection is None else _selection(plan, prepared.selection),
    }


def _selection(plan: Plan, selection: Built) -> dict[str, Json]:
    """Strategy, budget, and the pool before and after."""
    options = plan.config.select
    budget = {"rows": options.rows} if options.tokens is None else {"trained_tokens": options.tokens}
    return {"strategy": options.strategy, "budget": budget, **selection.results[0].extra["facts"]}


def _says(plan: Plan) -> dict[str, Json]:
    probe = line_of(next(iter(plan.recipes.values()))).renderer.probe
    return {verdict.name: verdict.said or verdict.why for verdict in probe.verdicts}


def left_rows(paths: Iterable[Path], sources: Sequence[str]) -> list[dict[str, Json]]:
    """The first `ROWS_PER_CODE` rows of each code and source, 80 characters of each.

    Args:
        paths: files of rows that left, in order.
        sources: names, in order.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found: list[dict[str, Json]] = []
    for path in paths:
        for batch in batches(path):
            for row in batch.select(["source", "source_file", "source_line", "code", "record"]).to_pylist():
                key = (row["code"], row["source"])
                seen[key] += 1
                if seen[key] <= ROWS_PER_CODE:
                    place = f"{row['source_file']}:{row['source_line']}"
                    quoted = quote(row["record"] or "")
                    found.append({"code": key[0], "source": key[1], "place": place, "quoted": quoted})
    order = {name: number for number, name in enumerate(sources)}
    return sorted(found, key=lambda row: (row["code"], order.get(row["source"], 0)))


def files_of(prepared: Prepared, plan: Plan) -> dict[str, Path | bytes]:
    """Path in OUT → the step file that it is."""
    contents: dict[str, Path | bytes] = {}
    for number, side in enumerate(prepared.sides):
        if not prepared.pack.counters.get(f"{side}/packs"):
            continue
        _number(contents, f"{side}/examples/part-{{:05d}}.arrow", prepared.examples, f"{side}.arrow")
        _number(contents, f"conversations/{side}/part-{{:05d}}.parquet", prepared.examples, f"{side}.parquet")
        folder = prepared.pack.file("")[number]
        for path in sorted((folder / "plans").iterdir()):
            contents[f"{side}/plans/{path.name}"] = path
        for path in sorted((folder / "packed").glob("*.parquet")):
            contents[f"{side}/packed/{path.name}"] = path
    _number(contents, "quarantine/part-{:05d}.parquet", dict(enumerate(_leaving(prepared))), check.QUARANTINE)
    _number(contents, "scores/train-{:05d}.parquet", prepared.scores, scores_file("train"))
    _number(contents, "scores/eval-{:05d}.parquet", prepared.scores, scores_file("eval"))
    if prepared.selection is not None:
        contents[SELECTION] = prepared.selection.file(SELECTION)[0]
    contents["duplicates/part-00000.parquet"] = prepared.dedup.file(dedup.DUPLICATES)[0]
    return contents


def _leaving(prepared: Prepared) -> list[Built]:
    """The steps that put rows into quarantine, in the order of the line."""
    steps = [prepared.checks, prepared.filters, prepared.decontaminated, prepared.tokenized]
    if prepared.selection is not None:
        steps.append(prepared.examples)
    return [built for by_source in steps for built in by_source.values()]


def _number(contents: dict[str, Path | bytes], pattern: str, built: dict[Any, Built], name: str) -> None:
    """Files of that name of all steps and shards, numbered through; empty ones are left out but for the first."""
    paths = [path for one in built.values() for path in one.file(name)]
    if not paths:
        return
    full = [path for path in paths if rows_of(path)] or paths[:1]
    contents.update({pattern.format(number): path for number, path in enumerate(full)})


def source_censuses(plan: Plan, prepared: Prepared) -> list[SourceCensus]:
    """What each source gave, over all steps."""
    lengths = prepared.pack.results[0].extra["lengths"]
    found = []
    for name, checked in prepared.checks.items():
        counters: Counter[str] = Counter()
        for built in (checked, prepared.filters[name]):
            counters.update(built.counters)
        if name in prepared.decontaminated:
            counters.update(prepared.decontaminated[name].counters)
        counters.update(_of_examples(prepared, name))
        counters.update(prepared.dedup.results[0].extra["by_source"].get(name, {}))
        samples = [sample for result in prepared.examples[name].results for sample in result.extra["samples"]]
        expanded = [length for length, count in lengths.get(name, []) for _ in range(count)]
        found.append(SourceCensus(name, dict(counters), expanded, samples[:SAMPLES_PER_SOURCE]))
    return found


def _of_examples(prepared: Prepared, name: str) -> Counter[str]:
    """Counters of a source's examples: what `tokenize` counted, of the rows that were selected where any were."""
    made = Counter(prepared.tokenized[name].counters)
    if prepared.selection is None:
        return made
    kept = {key: n for key, n in made.items() if not key.startswith(COUNTED_BY_SELECTION)}
    scored = prepared.scores[name].counters if name in prepared.scores else {}
    return Counter(kept) + Counter(prepared.examples[name].counters) + Counter(scored)


def answer_of(output: Path, report: dict[str, Any], prepared: Prepared, plan: Plan) -> dict[str, Json]:
    """The answer of `prepare --json`."""
    counters = prepared.pack.counters
    packs, tokens = counters["train/packs"], counters["train/packed-tokens"]
    return {
        "output": str(output),
        "rows": report["rows"],
        "codes": report["codes"],
        "repairs": report["repairs"],
        "examples": sum(one.counters.get("train/examples", 0) for one in prepared.examples.values()),
        "packs": packs,
        "tokens": tokens,
        "trained_tokens": report["trained_tokens"]["total"],
        "fill": round(tokens / (packs * plan.max_tokens), 6) if packs else 0.0,
        "per_source": report["per_source"],
    }


def about(plan: Plan, prepared: Prepared, answer: dict[str, Json]) -> dict[str, Json]:
    """What OUT's manifest says beside its files: the same for the same bytes and options, wherever it lies."""
    template = {
        "origin": plan.model.template_origin,
        "text": plan.model.template,
        "eos": sorted(plan.model.eos),
        "eos_origin": plan.model.eos_origin,
        "says": _says(plan),
    }
    weighted = any(result.extra["weighted"] for result in prepared.pack.results)
    return {
        "kind": KIND,
        "fingerprint": prepared.pack.step.fingerprint,
        "model": {"name": plan.model.name, "tokenizer_sha256": plan.model.tokenizer_sha256},
        "template": template,
        "recipe": {name: msgspec.to_builtins(dataclasses.asdict(recipe)) for name, recipe in plan.recipes.items()},
        "max_tokens": plan.max_tokens,
        "epochs": _epochs(plan, prepared),
        "labels": "not shifted; -100 = ignored",
        "loss_weights": "written: a trainer that reads labels alone (TRL) ignores them" if weighted else "all 0 or 1",
        "sources": {
            opened.source.name: {"dialects": opened.dialects, "files": [_file(file) for file in opened.plan.files]}
            for opened in plan.sources
        },
        **({"evaluation": [_file(file) for file in plan.evaluation.plan.files]} if plan.evaluation else {}),
        "steps": [_step(built.step) for built in prepared.steps],
        "selection": None if prepared.selection is None else _selection(plan, prepared.selection),
        "history": {name: part["history"] for name, part in answer["per_source"].items()},
        "counts": {key: value for key, value in answer.items() if key not in ("output", "per_source")},
    }


def _epochs(plan: Plan, prepared: Prepared) -> dict[str, Json]:
    """All that a reader needs to make the plan of any epoch."""
    config = plan.config
    mixed = {side: result.extra["mix"] for side, result in zip(prepared.sides, prepared.pack.results, strict=True)}
    return {
        "seed": config.seed,
        "pack": msgspec.to_builtins(dataclasses.asdict(config.pack)),
        "ordered": prepared.selection is not None and config.select.strategy == ORDERED,
        "mix": {side: shares for side, shares in mixed.items() if shares is not None},
    }


def _file(file: Any) -> dict[str, Json]:
    return {"name": file.name, "sha256": file.sha256, "bytes": file.bytes, "rows": file.rows}


def _step(step: Step) -> dict[str, Json]:
    return {"name": step.name, "version": step.version, "fingerprint": step.fingerprint}


def _run(plan: Plan, started: float) -> bytes:
    """`run.json`: when, where and how long; no comparison reads it."""
    return json_file(
        {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(max(0.0, time.time() - started), 3),  # a clock may be set back
            "host": platform.node(),
            "process": os.getpid(),
            "config": _without_credentials(plan.config.model_dump(mode="json")),
            "remote_files": _remote_files(plan),
            "config_fingerprint": effective_fingerprint(plan.config),
            "warnings": plan.warnings,
        }
    )


def _remote_files(plan: Plan) -> dict[str, Json]:
    """Source → name → URL of the files that were read from stores, with the commit where the store has commits."""
    found = {opened.source.name: [file for file in opened.plan.files if is_url(file.path)] for opened in plan.sources}
    return {name: {file.name: redacted(file.path) for file in files} for name, files in found.items() if files}


def _without_credentials(config: dict[str, Any]) -> dict[str, Json]:
    """The config with the URLs of its sources as they may be shown."""
    sources = [{**source, "data": [redacted(item) for item in source["data"]]} for source in config["sources"]]
    against = [redacted(item) for item in config["decontaminate"]["against"]]
    return {**config, "sources": sources, "decontaminate": {**config["decontaminate"], "against": against}}

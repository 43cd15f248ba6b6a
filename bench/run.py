"""Tables: prepare beside its peers, one process beside two, turnmill's stages, and rendering beside transformers'.

python bench/run.py [--rows 2000] [--large 20000] [--processes 20000] [--rounds 3] [--only NAME...] [--no-peers]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import environments
from generate import SEED, write
from models import MODELS, TEMPLATES, model_directory, template_path
from turnmill_options import MODES

BENCH = Path(__file__).parent
RESULTS = BENCH / "results"
REFERENCE = "TRL"
STAGES = ("read + check", "render", "tokenize", "pack")
Runs = dict[str, list[dict[str, Any]]]


class Contender(NamedTuple):
    """What prepares the rows."""

    name: str
    environment: str
    """"" is turnmill's own."""
    script: str
    arguments: tuple[str, ...] = ()


OURS = tuple(Contender(f"turnmill, {mode}", "", "turnmill_prepare.py", (mode,)) for mode in MODES)
PROCESSES = (1, 2)
PEERS = (
    Contender(REFERENCE, "trl", "peers/trl_sft.py", ("1",)),
    Contender("TRL, 2 processes", "trl", "peers/trl_sft.py", ("2",)),
    Contender("LLaMA-Factory", "llamafactory", "peers/llamafactory_sft.py", ("1",)),
    Contender("Axolotl", "axolotl", "peers/axolotl_preprocess.py"),
    Contender("datasets.map", "trl", "peers/datasets_map.py"),
)


def rows_file(rows: int) -> Path:
    """The rows, made once."""
    path = RESULTS / f"rows-{SEED}-{rows}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, rows)
    return path


def measured(environment: str, script: str, *arguments: object) -> dict[str, Any]:
    """What one run in a process of its own prints."""
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    own = {} if environment else {"PYTHONPATH": str(BENCH.parent / "src")}
    python = environments.python_of(environment) if environment else sys.executable
    command = list(map(str, (python, BENCH / script, *arguments)))
    done = subprocess.run(
        command, env={**os.environ, **offline, **own}, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "load": os.getloadavg()[0]}


def rate(runs: list[dict[str, Any]], stage: str, clock: str = "cpu_s", rows: int | None = None) -> float:
    """Conversations per second of a stage: the median of the runs."""
    return median((rows or run["rows"]) / run["stages"][stage][clock] for run in runs)


def table(*columns: str) -> None:
    """The head of a table."""
    print(f"\n| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}", flush=True)


def line(*cells: object) -> None:
    """A line of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def compare(contenders: list[Contender], data: Path, model: Path, rounds: int) -> Runs:
    """All of them by turns."""
    runs: Runs = {one.name: [] for one in contenders}
    for number in range(rounds):
        for one in contenders:
            print(f"{model.name}, {data.name}, round {number + 1} of {rounds}: {one.name}", file=sys.stderr)
            runs[one.name].append(measured(one.environment, one.script, data, model, *one.arguments))
    return runs


def prepare_table(title: str, runs: Runs) -> None:
    """Who prepares how fast, with how much memory, and what is kept."""
    table(f"prepare: {title}", "per CPU s", "per s", "ratio", "peak MiB", "tokens", "trained", "load")
    base = rate(runs[REFERENCE], "prepare") if REFERENCE in runs else None
    for name, found in runs.items():
        speed = rate(found, "prepare")
        line(
            name,
            f"{speed:,.0f}",
            f"{rate(found, 'prepare', 'wall_s'):,.0f}",
            f"{speed / base:.1f}" if base else "",
            f"{max(run['peak_mib'] for run in found):,}",
            f"{found[0]['tokens']:,}",
            f"{found[0]['trained_tokens']:,}",
            f"{max(run['load'] for run in found):.1f}",
        )


def prepare(chosen: argparse.Namespace, missing: dict[str, str]) -> dict[str, Runs]:
    """Every model with the rows that all prepare; the last with many rows, which turnmill alone prepares."""
    peers = [] if chosen.no_peers else [one for one in PEERS if one.environment not in missing]
    contenders = [one for one in (*OURS, *peers) if not chosen.only or one.name in chosen.only]
    found = {}
    for name in MODELS:
        title = f"{name}, {chosen.rows:,} rows"
        found[title] = compare(
            contenders, rows_file(chosen.rows), model_directory(name, RESULTS / "models"), chosen.rounds
        )
        prepare_table(title, found[title])
    if chosen.large:
        name = list(MODELS)[-1]
        title = f"{name}, {chosen.large:,} rows"
        data, model = rows_file(chosen.large), model_directory(name, RESULTS / "models")
        found[title] = compare(list(OURS), data, model, 1)
        prepare_table(title, found[title])
    return found


def processes(chosen: argparse.Namespace) -> dict[str, Runs]:
    """One and two processes on the same rows, by the clock; each process loads the model for itself."""
    if not chosen.processes:
        return {}
    name = list(MODELS)[-1]
    contenders = [Contender(str(count), "", "turnmill_prepare.py", ("fastokens", str(count))) for count in PROCESSES]
    data, model = rows_file(chosen.processes), model_directory(name, RESULTS / "models")
    found = compare(contenders, data, model, chosen.rounds)
    table(f"prepare: {name}, {chosen.processes:,} rows, processes", "per s", "per CPU s", "ratio by the clock", "load")
    for count, runs in found.items():
        speed, one = (rate(each, "prepare", "wall_s") for each in (runs, found["1"]))
        load = max(run["load"] for run in runs)
        line(count, f"{speed:,.0f}", f"{rate(runs, 'prepare'):,.0f}", f"{speed / one:.2f}", f"{load:.1f}")
    return {name: found}


def stages(chosen: argparse.Namespace) -> dict[str, Runs]:
    """turnmill's stages on their own, on the rows that all prepare."""
    table("stages, conversations per CPU second", "mode", *STAGES[:-1], "replayed", "1 M lengths packed, s", "fill")
    found = {}
    for name in MODELS:
        contenders = [Contender(mode, "", "turnmill_stages.py", (mode,)) for mode in MODES]
        data, model = rows_file(chosen.rows), model_directory(name, RESULTS / "models")
        found[name] = compare(contenders, data, model, chosen.rounds)
        for mode, runs in found[name].items():
            rates = [f"{rate(runs, stage):,.0f}" for stage in STAGES[:-1]]
            packing = median(run["stages"]["pack"]["cpu_s"] for run in runs)
            line(name, mode, *rates, f"{runs[0]['replayed']:.0%}", f"{packing:.2f}", f"{runs[0]['pack_fill']:.3%}")
    return found


def renders(chosen: argparse.Namespace) -> dict[str, Runs]:
    """Rendering alone, on every template."""
    table(
        f"rendering, {chosen.rows:,} rows, per CPU second",
        "with spans", "ratio", "replayed", "not accelerated", "transformers, plain", "rows said", "equal texts",
    )  # fmt: skip
    data, found = rows_file(chosen.rows), {}
    for name in TEMPLATES:
        who = ("turnmill", "unaccelerated", "transformers")
        runs: Runs = {one: [] for one in who}
        for _ in range(chosen.rounds):
            for one in who:
                runs[one].append(measured("", "render_rates.py", data, template_path(name), one))
        ours, plain, theirs = (rate(runs[one], "render") for one in who)
        mine, other = (runs[one][0].pop("texts") for one in ("turnmill", "transformers"))
        both = [(a, b) for a, b in zip(mine, other, strict=True) if a and b]
        equal = f"{sum(a == b for a, b in both):,} of {len(both):,}"
        replayed = f"{runs['turnmill'][0]['replayed']:.0%}"
        line(
            name, f"{ours:,.0f}", f"{ours / theirs:.1f}", replayed, f"{plain:,.0f}", f"{theirs:,.0f}", len(both), equal
        )
        for run in (run for each in runs.values() for run in each):
            run.pop("texts", None)
        found[name] = runs
    return found


def environments_of(chosen: argparse.Namespace) -> list[str]:
    """The environments of the peers that are asked for."""
    if chosen.no_peers:
        return []
    return sorted({one.environment for one in PEERS if not chosen.only or one.name in chosen.only})


def missing_of(asked: Sequence[str]) -> dict[str, str]:
    """Makes environments; those that could not be made, and why."""
    missing = {name: why for name in asked if (why := environments.made(name))}
    for name, why in missing.items():
        print(f"left out: {name}: {why}")
    return missing


def versions(standing: Iterable[str]) -> dict[str, Any]:
    """What was measured, and on what; `standing` are the peers' environments."""
    names = ("fastokens", "jinja2", "msgspec", "numpy", "pyarrow", "tokenizers", "transformers")
    ours = {name: metadata.version(name) for name in names}
    place = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    return {**ours, **place, "peers": {name: environments.versions(name) for name in standing}}


def main() -> None:
    """Measure everything, print the tables, keep the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=2000, help="rows that all prepare")
    options.add_argument("--large", type=int, default=20_000, help="rows that turnmill alone prepares; 0 = none")
    options.add_argument("--processes", type=int, default=20_000, help="rows for one and two processes; 0 = none")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", nargs="+", default=[], metavar="NAME", help="contenders of the first table")
    options.add_argument("--no-peers", action="store_true")
    chosen = options.parse_args()
    asked = environments_of(chosen)
    missing = missing_of(asked)
    measured_on = versions(name for name in asked if name not in missing)
    print(f"median of {chosen.rounds} rounds; {json.dumps(measured_on)}")
    found = {
        "prepare": prepare(chosen, missing),
        "processes": processes(chosen),
        "stages": stages(chosen),
        "render": renders(chosen),
    }
    path = RESULTS / time.strftime("%Y%m%d-%H%M%S.json", time.gmtime())
    path.write_text(json.dumps({"seed": SEED, "versions": measured_on, **found}, indent=1))
    print(f"\nall figures: {path}")


if __name__ == "__main__":
    main()

"""One table: conversations per CPU second of every stage, beside TRL's preparation of the same rows.

python bench/run.py [--rows 2000] [--large 20000] [--rounds 3] [--no-trl]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from generate import SEED, write

BENCH = Path(__file__).parent
ROOT = BENCH.parent
RESULTS = BENCH / "results"
TRL_ENVIRONMENT = ROOT / ".bench-venv"
TRL_PYTHON = TRL_ENVIRONMENT / "bin" / "python"
TRL_REQUIREMENTS = (["torch==2.13.0"], ["trl==1.16.0", "transformers", "datasets"])
"""Installed one list after the other: torch first, as a build for the CPU."""
STAGES = ("read + check", "render", "tokenize", "prepare")
TEMPLATES = ("chatml", "qwen3_training")


def make_trl_environment() -> None:
    """TRL and what it needs, in an environment of its own."""
    if (TRL_ENVIRONMENT / ".installed").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", TRL_ENVIRONMENT], check=True)
    for requirements in TRL_REQUIREMENTS:
        subprocess.run([TRL_PYTHON, "-m", "pip", "install", "--quiet", *requirements], check=True)
    (TRL_ENVIRONMENT / ".installed").touch()


def model_directory(template: str) -> Path:
    """SmolLM2's tokenizer with a template: our own, or one of TRL's with generation tags."""
    sys.path.insert(0, str(ROOT / "tests"))
    from assets import smollm2_directory, trl_templates

    directory = RESULTS / "models" / template
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"):
        shutil.copy(smollm2_directory() / name, directory)
    own = ROOT / "src" / "turnmill" / "rendering" / "templates" / f"{template}.jinja"
    shutil.copy(own if own.exists() else trl_templates() / own.name, directory / "chat_template.jinja")
    return directory


def rows_file(rows: int) -> Path:
    """The rows, made once."""
    path = RESULTS / f"rows-{SEED}-{rows}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, rows)
    return path


def measured(python: str | Path, script: str, data: Path, model: Path) -> dict[str, Any]:
    """What one run in a process of its own prints."""
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(ROOT / "src")}
    command = [python, str(BENCH / script), str(data), str(model)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "load": os.getloadavg()[0]}


def rate(runs: list[dict[str, Any]], stage: str) -> float:
    """Conversations per CPU second: the median of the runs."""
    return median(run["rows"] / run["stages"][stage]["cpu_s"] for run in runs)


def compare(template: str, data: Path, rounds: int, *, with_trl: bool) -> dict[str, list[dict[str, Any]]]:
    """Ours and TRL's by turns."""
    model = model_directory(template)
    runs: dict[str, list[dict[str, Any]]] = {"turnmill": [], "trl": []}
    for number in range(rounds):
        print(f"{template}, {data.name}: round {number + 1} of {rounds}", file=sys.stderr)
        runs["turnmill"].append(measured(sys.executable, "turnmill_stages.py", data, model))
        if with_trl:
            runs["trl"].append(measured(TRL_PYTHON, "trl_preparation.py", data, model))
    return runs


def line(template: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """A line of the table."""
    ours, trl = runs["turnmill"], runs["trl"]
    cells = [f"{rate(ours, stage):,.0f}" for stage in STAGES]
    cells += (
        [f"{rate(trl, 'prepare'):,.0f}", f"{rate(ours, 'prepare') / rate(trl, 'prepare'):.2f}"] if trl else ["", ""]
    )
    cells += [f"{max(run['peak_mib'] for run in ours):,}", f"{max(run['load'] for run in (*ours, *trl)):.1f}"]
    return f"| {template} | {ours[0]['rows']:,} | " + " | ".join(cells) + " |"


def versions() -> dict[str, str]:
    """What was measured, and on what."""
    ours = {name: metadata.version(name) for name in ("tokenizers", "jinja2", "pyarrow", "msgspec", "numpy")}
    place = {"python": platform.python_version(), "cores": str(os.cpu_count()), "machine": platform.machine()}
    if not TRL_PYTHON.exists():
        return {**ours, **place}
    script = (
        "import importlib.metadata as m; print(*[m.version(n) for n in ('trl', 'transformers', 'datasets', 'torch')])"
    )
    found = subprocess.run([TRL_PYTHON, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    return {**ours, **place, **dict(zip(("trl", "transformers", "datasets", "torch"), found, strict=True))}


def tasks(chosen: argparse.Namespace) -> Iterator[tuple[str, int, int, bool]]:
    """Template, rows, rounds, and whether TRL prepares them, too."""
    for template in TEMPLATES:
        yield template, chosen.rows, chosen.rounds, not chosen.no_trl
    if chosen.large:
        yield TEMPLATES[0], chosen.large, 1, False


def main() -> None:
    """Measure everything, print the table, keep the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=2000, help="rows that both prepare")
    options.add_argument("--large", type=int, default=20_000, help="rows that turnmill alone prepares; 0 = none")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--no-trl", action="store_true")
    chosen = options.parse_args()
    if not chosen.no_trl:
        make_trl_environment()
    print(f"conversations per CPU second, one process, median of {chosen.rounds}; {versions()}\n")
    print(f"| template | rows | {' | '.join(STAGES)} | TRL prepare | ratio | peak MiB | load |")
    print("|---|---:|" + "---:|" * (len(STAGES) + 4), flush=True)
    found = []
    for template, rows, rounds, with_trl in tasks(chosen):
        runs = compare(template, rows_file(rows), rounds, with_trl=with_trl)
        print(line(template, runs), flush=True)
        found.append((template, runs))
    kept = {"seed": SEED, "versions": versions(), "runs": [{"template": name, **runs} for name, runs in found]}
    path = RESULTS / time.strftime("%Y%m%d-%H%M%S.json", time.gmtime())
    path.write_text(json.dumps(kept, indent=1))
    print(f"\nall figures: {path}")


if __name__ == "__main__":
    main()

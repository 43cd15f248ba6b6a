"""An environment of its own for every peer: made once, left out with a reason where it cannot be made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1] / ".bench-venvs"
TORCH = ("torch==2.13.0",)
REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "trl": (TORCH, ("trl==1.16.0", "transformers==5.24.0", "datasets==5.2.0")),
    "llamafactory": (TORCH, ("llamafactory==0.9.5",)),
    "near": (("rensa==0.5.0", "datasketch==2.0.0"),),
    "axolotl": (TORCH, ("--no-build-isolation", "axolotl==0.19.0")),
    "swift": (TORCH, ("ms-swift==4.6.0",)),
}
"""Environment → what pip installs, one list after the other: torch first, as a build for the CPU."""
LIMIT_S = 600
"""For one environment."""


def python_of(name: str) -> Path:
    """The interpreter of an environment."""
    return ROOT / name / "bin" / "python"


def made(name: str) -> str:
    """Makes an environment; why it could not be, "" where it stands."""
    done = ROOT / name / ".installed"
    if done.exists():
        return ""
    print(f"installing {name}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", ROOT / name], check=True)
    for requirements in REQUIREMENTS[name]:
        command = [python_of(name), "-m", "pip", "install", "--quiet", *requirements]
        try:
            subprocess.run(command, check=True, timeout=LIMIT_S, stderr=subprocess.PIPE, text=True)
        except subprocess.TimeoutExpired:
            return f"its installation took over {LIMIT_S} s"
        except subprocess.CalledProcessError as failed:
            return f"its installation failed: {(failed.stderr or '').strip().splitlines()[-1:]}"
    done.touch()
    return ""


def versions(name: str) -> list[str]:
    """What stands in an environment, `name==version`."""
    packages = (
        "axolotl", "datasets", "datasketch", "llamafactory", "ms_swift", "rensa", "tokenizers", "torch",
        "transformers", "trl",
    )  # fmt: skip
    found = subprocess.run([python_of(name), "-m", "pip", "freeze"], capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if line.partition("==")[0] in packages]

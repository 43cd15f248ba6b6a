"""A stranger's chat template is probed in a process of its own, which may take little time and memory and open no file.

The bounds of `rendering.limits` hold in every process; these are for the mistakes in them: the operating system keeps
them, whatever the template does. Whoever is given a template by a stranger asks here.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from os import environ

import msgspec

from turnmill.errors import UnsafeTemplate, UsageError
from turnmill.rendering.probe import Probe, probe
from turnmill.rendering.template import Template

OUT_OF_MEMORY = 75
"""Exit code of a process that was given no more memory."""
KEPT_VARIABLES = ("PATH", "PYTHONPATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""What the process is told of the environment: no secrets."""


class Limits(msgspec.Struct, frozen=True):
    """What a probe may take."""

    cpu_s: int = 20
    """Seconds of one core."""
    wall_s: float = 60.0
    """Seconds, with the start of the process."""
    memory_mib: int = 1536
    """Address space, with the half that an idle process takes."""


class Asked(msgspec.Struct, frozen=True):
    """What the process is given."""

    source: str
    special_tokens: dict[str, str]
    stops: tuple[str, ...]
    added: tuple[tuple[str, bool], ...] | None
    date: str
    name: str
    limits: Limits


class Answered(msgspec.Struct, frozen=True):
    """What it gives back: a probe, or the refusal of the template."""

    probe: Probe | None = None
    refusal: str = ""
    next_step: str | None = None
    code: str | None = None
    """What the template would teach wrongly; None where it cannot be used at all."""


def probe_in_subprocess(
    source: str,
    special_tokens: Mapping[str, str],
    stops: Iterable[str],
    added: Iterable[tuple[str, bool]] | None = None,
    *,
    date: str = "2025-01-01",
    name: str = "chat template",
    limits: Limits | None = None,
) -> Probe:
    """What `probe` learns of a template, learned in a limited process.

    Args:
        source: the template's text.
        special_tokens: `bos_token` and the like, by variable name.
        stops: generation eos set.
        added: (text, special) of each added token; None without a tokenizer.
        date: the day its clock shows, ISO 8601.
        name: what to call it in messages.
        limits: what it may take.

    Raises:
        UsageError: the template cannot be used, or went over a limit and was ended.
        UnsafeTemplate: it renders, but would teach the wrong thing.
    """
    limits = limits or Limits()
    listed = None if added is None else tuple(added)
    asked = Asked(source, dict(special_tokens), tuple(stops), listed, date, name, limits)
    answered = msgspec.json.decode(
        answer_of("turnmill.executors.limited", msgspec.json.encode(asked), name, limits), type=Answered
    )
    if answered.probe is None:
        if answered.code is not None:
            raise UnsafeTemplate(answered.code, answered.refusal, next_step=answered.next_step)
        raise UsageError(answered.refusal, next_step=answered.next_step)
    return answered.probe


def answer_of(module: str, asked: bytes, name: str, limits: Limits) -> bytes:
    """What a module that limits itself writes when it is run and given `asked`.

    Args:
        module: calls `hold` before it touches the template.
        asked: for its standard input.
        name: what to call the template in messages.
        limits: that it is to hold.

    Raises:
        UsageError: it went over a limit and was ended.
    """
    # -P: no module of the working directory stands in for one of ours
    command = [sys.executable, "-P", "-m", module]
    kept = {variable: environ[variable] for variable in KEPT_VARIABLES if variable in environ}
    try:
        done = subprocess.run(command, input=asked, env=kept, capture_output=True, timeout=limits.wall_s, check=False)
    except subprocess.TimeoutExpired:
        raise _ended(name, f"it took over {limits.wall_s:g} s") from None
    if done.returncode:
        raise _ended(name, _reason(done.returncode, limits))
    return done.stdout


def _reason(code: int, limits: Limits) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it took over {limits.cpu_s} s of one core"
    if code == OUT_OF_MEMORY:
        return f"it took over {limits.memory_mib} MiB of memory"
    return f"its process ended with code {code}"


def _ended(name: str, why: str) -> UsageError:
    return UsageError(f"{name}: its probe was ended, for {why}", next_step="--template chatml")


def _answer(asked: Asked) -> Answered:
    template = None
    try:
        template = Template(asked.source, asked.special_tokens, asked.date, asked.name)
        return Answered(probe(template, asked.stops, asked.added))
    except UsageError as fault:
        return Answered(None, fault.message, fault.next_step, fault.code if isinstance(fault, UnsafeTemplate) else None)


def hold(limits: Limits) -> None:
    """Bounds that this process cannot lift again."""
    import resource  # not on every system

    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = int(used.ru_utime + used.ru_stime) + 1 + limits.cpu_s
    memory = limits.memory_mib << 20
    bounds = {
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (3, 3),  # what is open stays open, and nothing more is opened
    }
    for bound, values in bounds.items():
        resource.setrlimit(bound, values)


WARM_UP = (
    r"{% for m in messages %}{{ '<|\x7c' + m.role }}{{ m.content }}<|end|>{% endfor %}{{ tools | tojson }}",
    "{{ raise_exception('no') }}",
    "{% for %}",
)
"""Templates that are probed before the bounds hold: what is imported late, also for errors, is imported then."""


def warm_up(limits: Limits) -> None:
    """Import what a probe imports late."""
    for source in WARM_UP:
        _answer(Asked(source, {}, ("<|end|>",), None, "2025-01-01", "warm-up", limits))


def written(answer: Callable[[], msgspec.Struct]) -> int:
    """Write an answer to standard output, for `answer_of`; gives the exit code that says how that went."""
    try:
        encoded = msgspec.json.encode(answer())
    except MemoryError:
        return OUT_OF_MEMORY
    sys.stdout.buffer.write(encoded)
    return 0


def main() -> int:
    """Probes what standard input asks for."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    warm_up(asked.limits)
    hold(asked.limits)
    return written(lambda: _answer(asked))


if __name__ == "__main__":
    sys.exit(main())

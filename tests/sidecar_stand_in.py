"""Commands that stand in for `prepare` and `train` in a run's directory, and a sidecar in front of them."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import uvicorn

from turnmill.http_service import address_of, bound
from turnmill.sidecar.app import create_app
from turnmill.sidecar.crew import Stage
from turnmill.sidecar.service import Settings

ROWS = b'{"instruction": "a", "input": "", "output": "b"}\n{"instruction": "c", "output": "d"}\n'
OTHER_ROWS = b'{"instruction": "e", "output": "f"}\n'
CHATS = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
DEADLINE_S = 60.0

WAITS = """
import os, pathlib
with open("begun", "a") as file:
    file.write(f"{os.getpid()}\\n")
pathlib.Path("seen").write_bytes(b"".join(path.read_bytes() for path in pathlib.Path("data").iterdir()))
open("go").read()  # a pipe: blocks until somebody writes
pathlib.Path("worked").write_text("yes")
"""
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WAITS}"
FAILS = (
    'import sys\nprint("turnmill: the loss is nan", file=sys.stderr)\nprint("--train.learning_rate 1e-5")\nsys.exit(3)'
)


def python(program: str) -> tuple[str, ...]:
    return sys.executable, "-S", "-c", program


def instant(folder: Path) -> Iterator[Stage]:
    """Nothing is done, and that well."""
    yield Stage("preparing", ("true",))
    yield Stage("training", ("true",))


def of(program: str) -> Callable[[Path], Iterator[Stage]]:
    """A training that waits, or fails; it is over when there is a file `worked`."""

    def stages(folder: Path) -> Iterator[Stage]:
        if not (folder / "go").exists():
            os.mkfifo(folder / "go")
        if not (folder / "worked").exists():
            yield Stage("training", python(program))

    return stages


def go(folder: Path) -> None:
    """Let a waiting training end well; blocks until it waits."""
    (folder / "go").write_text("")


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it holds."""
    end, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < end, "it never came to be"
        pause.wait(0.01)
    return found


def job(rows: bytes | None = ROWS, dataset: str = "facts.jsonl", **more: Any) -> dict[str, Any]:
    """The body of a job start."""
    content = {} if rows is None else {"dataset_content": base64.b64encode(rows).decode()}
    return {"dataset": dataset, **content, **more}


def settings(data: Path, **more: Any) -> Settings:
    return Settings(data, **{"models": {"tiny": data}, "stages": instant, "grace_s": 1.0, **more})


@contextmanager
def served(data: Path, secret: str | None = None, place: socket.socket | None = None, **more: Any) -> Iterator[str]:
    """The URL of a sidecar on a socket of this machine."""
    with nullcontext(place) if place else bound("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(create_app(settings(data, **more), secret), log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until(lambda: server.started)
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join()


def stored(data: Path) -> dict[str, bytes]:
    """Every file of the store."""
    return {path.name: path.read_bytes() for path in (data / "datasets").iterdir()}


def state(data: Path, number: str) -> dict[str, Any]:
    return json.loads((data / "runs" / number / "state.json").read_text())

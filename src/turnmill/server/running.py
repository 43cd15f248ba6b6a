"""Running a server and its workers until they are told to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import uvicorn
from fastapi import FastAPI

from turnmill.http_service import bound

BACKLOG = 2048
"""Connections that wait to be taken."""
GRACE_S = 10.0
"""For requests and workers that are at it, once the server is told to stop."""
SWITCH_S = 0.0005
"""How long a thread computes while another one waits: a listing that is scanned must not wait 5 ms for each file."""
LOOK_S = 1.0
"""How often workers are looked at; one that was lost is begun anew."""

Begin = Callable[[], "subprocess.Popen[bytes]"]
"""Begins a worker."""


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens: whoever is told where it is may ask at once; port 0 takes any that is free.

    Raises:
        UsageError: the address cannot be had.
    """
    opened = bound(host, port)
    opened.listen(BACKLOG)
    return opened


def run(
    app: FastAPI, opened: socket.socket, workers: Sequence[Sequence[str]], told: Mapping[str, str] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, with workers beside it.

    Args:
        app: that answers.
        opened: where it listens.
        workers: the arguments of each; one that ends is begun anew.
        told: variables that their environment has besides.
    """
    environment = {**os.environ, **(told or {})}
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()  # what was imported stays: looking through it for garbage would stop every request for 100 ms
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(GRACE_S),
        timeout_keep_alive=30,
    )
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends at them, and then sends them once more
        signal.signal(number, lambda *_: None)
    asyncio.run(_served(uvicorn.Server(config), opened, [partial(_begin, each, environment) for each in workers]))


async def _served(server: uvicorn.Server, opened: socket.socket, workers: Sequence[Begin]) -> None:
    crew = asyncio.create_task(_keep(workers))
    try:
        await server.serve([opened])
    finally:
        crew.cancel()
        with suppress(asyncio.CancelledError):
            await crew


async def _keep(workers: Sequence[Begin]) -> None:
    """Have the workers run, until this is cancelled; then let them give their jobs back."""
    running = [begin() for begin in workers]
    try:
        while True:
            await asyncio.sleep(LOOK_S)
            running = [each if each.poll() is None else workers[at]() for at, each in enumerate(running)]
    finally:
        for each in running:
            each.send_signal(signal.SIGTERM)
        await asyncio.to_thread(_await, running)


def _begin(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A worker in a group of its own: Ctrl-C of the terminal reaches it through the server, its end by the pipe."""
    command = [sys.executable, "-m", "turnmill", "worker", "--beside-server", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def _await(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for each in running:
        try:
            each.wait(3 * GRACE_S)
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()

"""Times a server over loopback: listings and previews of 100 datasets while some change and others are uploaded.

Clients are processes apart from the server; each asks again as soon as it was answered. Prints a table, and writes
results/server.json.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DATASETS = 100
ROWS = 200
"""Of each dataset: some 20 kB."""
LIST = "/v1/training/datasets"
FLOORS_MS = {4: 20.0, 32: 50.0}
"""Clients → the most that 99 of 100 answers may take."""
FLOOR_MIB = 64
UPLOAD_BYTES = 300_000_000
RESULTS = Path(__file__).parent / "results"


def rows(count: int, seed: int) -> bytes:
    return b"".join(
        json.dumps({"instruction": f"What is {seed} + {row}?", "input": "", "output": f"It is {seed + row}."}).encode()
        + b"\n"
        for row in range(count)
    )


def fill(shelf: Path) -> None:
    for number in range(DATASETS):
        folder = shelf / f"d{number:03}"
        folder.mkdir(parents=True)
        folder.joinpath("dataset.toml").write_text(
            f'file = "d{number:03}.jsonl"\ndescription = "Sums"\nversion = "1"\n'
        )
        folder.joinpath(f"d{number:03}.jsonl").write_bytes(rows(ROWS, number))


@contextmanager
def served(place: Path) -> Iterator[tuple[str, int]]:
    """A server; gives where it listens and the id of its process."""
    script = Path(__file__).parents[1] / "tests" / "server_process.py"
    options = json.dumps({"max_bytes": 2 * UPLOAD_BYTES})
    command = [sys.executable, str(script), str(place / "shelf"), str(place / "state.db"), options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip().removeprefix("http://"), process.pid
    finally:
        process.kill()
        process.communicate()


def rss_mib(process: int, field: str = "VmRSS") -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found
    return int(found[1]) / 1024


def forget_peak(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def ask(where: str, clients: int, seconds: float, answers: Any) -> None:
    """So many clients in this process, half of whose questions are listings and half previews."""
    times: dict[str, list[float]] = {"list": [], "preview": []}
    wrong: list[str] = []
    host, _, port = where.partition(":")

    async def client(number: int, until: float) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        turn = number
        while time.monotonic() < until:
            turn += 1
            kind = "list" if turn % 2 else "preview"
            path = LIST if kind == "list" else f"{LIST}/preview?name=d{turn * 7 % DATASETS:03}"
            began = time.perf_counter()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            times[kind].append(time.perf_counter() - began)
            if not head.startswith(b"HTTP/1.1 200"):
                wrong.append(f"{head[:12]!r} {path}")
        writer.close()

    async def all_of_them() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(number, until) for number in range(clients)))

    asyncio.run(all_of_them())
    answers.put((times, wrong))


class Changing:
    """Changes a dataset's file, and uploads one of 100 kB, some times a second, until it is over."""

    def __init__(self, where: str, shelf: Path, per_second: float) -> None:
        self._where, self._shelf, self._pause = where, shelf, 1 / per_second
        self._over = threading.Event()
        self.changed = self.uploaded = 0
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=work) for work in (self._change, self._upload)]

    def __enter__(self) -> Changing:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _change(self) -> None:
        while not self._over.wait(self._pause):
            name = f"d{self.changed * 3 % DATASETS:03}"
            draft = self._shelf / name / "draft"
            draft.write_bytes(rows(ROWS, 1000 + self.changed))
            draft.rename(self._shelf / name / f"{name}.jsonl")
            self.changed += 1

    def _upload(self) -> None:
        while not self._over.wait(self._pause):
            content = rows(1000, self.uploaded)
            status, body = upload(self._where, f"new{self.uploaded % 10}.jsonl", [content], len(content))
            if status != 201:
                self.wrong.append(f"{status} {body[:200]!r}")
            self.uploaded += 1


def upload(where: str, filename: str, chunks: list[bytes], size: int) -> tuple[int, bytes]:
    begin = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'.encode()
    end = b"\r\n--B--\r\n"
    connection = http.client.HTTPConnection(where, timeout=300)
    headers = {"Content-Type": "multipart/form-data; boundary=B", "Content-Length": str(len(begin) + size + len(end))}
    connection.request("POST", LIST, body=iter([begin, *chunks, end]), headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def quantile(times: list[float], share: float) -> float:
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000, 1)


def measured(where: str, shelf: Path, clients: int, seconds: float, per_second: float) -> dict[str, Any]:
    answers: Any = multiprocessing.Queue()
    with Changing(where, shelf, per_second) as changing:
        asking = multiprocessing.Process(target=ask, args=(where, clients, seconds, answers))
        asking.start()
        times, wrong = answers.get()
        asking.join()
    found: dict[str, Any] = {"clients": clients, "changed": changing.changed, "uploaded": changing.uploaded}
    for kind, taken in times.items():
        found[kind] = {"answers": len(taken), "p50_ms": quantile(taken, 0.5), "p99_ms": quantile(taken, 0.99)}
    found["per_second"] = round(sum(map(len, times.values())) / seconds)
    found["wrong"] = [*wrong, *changing.wrong]
    return found


def uploaded_300_mb(where: str, process: int) -> dict[str, Any]:
    line = json.dumps({"instruction": "x" * 400, "input": "", "output": "y" * 550}).encode() + b"\n"
    count = UPLOAD_BYTES // len(line)
    chunk = line * 1000
    chunks = [chunk] * (count // 1000)
    idle = rss_mib(process)
    forget_peak(process)
    began = time.perf_counter()
    status, body = upload(where, "large.jsonl", chunks, len(chunk) * len(chunks))
    took = time.perf_counter() - began
    above = round(rss_mib(process, "VmHWM") - idle, 1)
    assert status == 201, body[:300]
    return {
        "bytes": len(chunk) * len(chunks),
        "seconds": round(took, 1),
        "idle_mib": round(idle),
        "above_idle_mib": above,
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=20.0, help="for each number of clients")
    asked.add_argument("--per-second", type=float, default=2.0, help="changes, and uploads, a second")
    asked.add_argument("--no-upload", action="store_true", help="leave the upload of 300 MB out")
    options = asked.parse_args()
    found: dict[str, Any] = {
        "datasets": DATASETS,
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "runs": [],
    }
    with tempfile.TemporaryDirectory(prefix="turnmill-bench-") as folder:
        place = Path(folder)
        fill(place / "shelf")
        with served(place) as (where, process):
            measured(where, place / "shelf", 4, 2, options.per_second)  # everything was read once
            for clients in FLOORS_MS:
                found["runs"].append(measured(where, place / "shelf", clients, options.seconds, options.per_second))
        if not options.no_upload:
            with served(place) as (where, process):  # one that has not held anything yet
                upload(where, "small.jsonl", [rows(10, 0)], len(rows(10, 0)))
                found["upload"] = uploaded_300_mb(where, process)
    show(found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "server.json").write_text(json.dumps(found, indent=1) + "\n")


def show(found: dict[str, Any]) -> None:
    print("| clients | asked | answers | p50 ms | p99 ms | floor ms |\n|---|---|---|---|---|---|")
    for run in found["runs"]:
        clients, floor = run["clients"], FLOORS_MS[run["clients"]]
        for kind in ("list", "preview"):
            one = run[kind]
            cells = [clients, kind, f"{one['answers']:,}", one["p50_ms"], one["p99_ms"], _kept(one["p99_ms"], floor)]
            print("| " + " | ".join(map(str, cells)) + " |")
        changes = f"{run['changed']} files were changed and {run['uploaded']} uploaded meanwhile"
        wrong = f"wrong answers: {run['wrong'][:3] or 'none'}"
        print(f"\n{clients} clients: {run['per_second']:,} answers a second; {changes}; {wrong}\n")
    if "upload" in found:
        one = found["upload"]
        above = f"{one['above_idle_mib']} MiB above idle (floor {_kept(one['above_idle_mib'], FLOOR_MIB)})"
        print(f"{one['bytes']:,} bytes uploaded in {one['seconds']} s: {above}")


def _kept(value: float, floor: float) -> str:
    return f"{floor:g}, {'kept' if value <= floor else 'NOT KEPT'}"


if __name__ == "__main__":
    main()

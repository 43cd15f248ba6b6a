"""Ray clusters of this machine, each node in processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

RAY = str(Path(sys.executable).with_name("ray"))
STARTS_WITHIN_S = 90.0


class Cluster:
    """A head and further nodes, a core each."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, nodes: int) -> None:
        """Start the head and the other nodes, and wait until all are there."""
        port = self.address.rpartition(":")[2]
        self._start("--head", "--port", port, "--include-dashboard=false")
        self._wait(1)
        for number in range(1, nodes):
            self._start("--address", self.address)
            self._wait(number + 1)

    def _start(self, *options: str) -> None:
        command = [RAY, "start", *options, "--num-cpus=1", "--block", "--disable-usage-stats"]
        command.append("--node-ip-address=127.0.0.1")
        quiet = subprocess.DEVNULL
        environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}  # loopback alone; no token is left in a home
        started = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, start_new_session=True)
        self.nodes.append(started)

    def _wait(self, nodes: int) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        code = "import ray,sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='error'); "
        code += "print(sum(node['Alive'] for node in ray.nodes()))"
        while time.monotonic() < deadline:
            asked = subprocess.run([sys.executable, "-c", code, self.address], capture_output=True, text=True)
            if asked.returncode == 0 and int(asked.stdout.split()[-1]) >= nodes:
                return
        raise TimeoutError(f"the cluster has not {nodes} nodes after {STARTS_WITHIN_S} s: {asked.stderr[-500:]}")

    def kill_node(self, number: int) -> None:
        """End all processes of a node at once."""
        os.killpg(self.nodes[number].pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all that was started."""
        for node in reversed(self.nodes):
            node.terminate()
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)
                node.wait()


def workers_at_work() -> list[int]:
    """Processes of this machine that run a task of ours now: Ray names them so."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::_called"):
                found.append(int(folder.name))
    return found

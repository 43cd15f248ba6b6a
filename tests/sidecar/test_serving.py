from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sidecar_stand_in import until
from turnmill.shelf.carry import Carrier, SidecarRefused
from turnmill.sidecar.runs import ENDED

SECRET = "0123456789abcdef-secret"
LINES = [json.dumps({"instruction": f"q{n}", "output": "Yes" + " go" * (n % 5)}).encode() for n in range(40)]
SHORT = {
    "max_steps": 2, "gradient_accumulation_steps": 1, "max_tokens": 128, "template": "chatml", "eval_fraction": 0.1,
}  # fmt: skip
SIDECAR = [sys.executable, "-m", "turnmill", "sidecar"]


@contextmanager
def process(data: Path, model: Path, *more: str | Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """A sidecar as somebody starts it, and the URL that it says."""
    command = [*SIDECAR, "--data", data, "--models", f"tiny={model}", "--port", "0", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        try:
            line = started.stderr.readline()
            assert line.startswith("sidecar on http://127.0.0.1:"), line + started.stderr.read()
            yield started, line.split()[-1]
        finally:
            started.kill()


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    return file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What looks like one, from outside."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_says_where_it_is_and_ends_when_it_is_asked(data, model, number, code) -> None:
    with process(data, model) as (sidecar, url), Carrier(url) as carrier:
        assert carrier.is_ready()
        sidecar.send_signal(number)
        assert sidecar.wait(30) == code
        assert "Traceback" not in sidecar.stderr.read()


def test_a_model_is_trained_on_what_a_job_brings(data, tiny, secret_file) -> None:
    with process(data, tiny, "--secret-file", secret_file) as (sidecar, url), Carrier(url, SECRET) as carrier:
        taken = carrier.start("one", "facts.jsonl", iter(LINES), SHORT)
        assert (taken["state"], taken["num_records"]) == ("queued", 40)
        said: dict = until(lambda: (one := carrier.status("one"))["state"] in ENDED and one)
        assert said["state"] == "done", said["error"]
        assert said["progress"]["rows"]["read"] == 40
        assert (said["progress"]["step"], said["progress"]["steps"]) == (2, 2)
        assert [line["step"] for line in carrier.metrics("one")["metrics"] if "loss" in line] == [1, 2]
        weights = io.BytesIO()
        carrier.fetch("one", "model.safetensors", weights)
        assert weights.getbuffer().nbytes > 10_000
        assert SECRET not in carrier.log("one")["text"] + (data / "runs" / "one" / "run.yaml").read_text()
        sidecar.send_signal(signal.SIGTERM)
        assert sidecar.wait(30) == 0
        assert sidecar.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_model_is_trained_though_the_sidecar_ends_meanwhile(data, tiny, number) -> None:
    options = {**SHORT, "max_steps": 100, "save_every": 10, "eval_every": 0}
    with process(data, tiny) as (sidecar, url), Carrier(url) as carrier:
        carrier.start("one", "facts.jsonl", iter(LINES), options)
        until(lambda: (carrier.status("one")["progress"]["step"] or 0) >= 20)
        sidecar.send_signal(number)
        sidecar.wait()
    with process(data, tiny) as (sidecar, url), Carrier(url) as carrier:
        said: dict = until(lambda: (one := carrier.status("one"))["state"] in ENDED and one)
        assert (said["state"], said["progress"]["step"]) == ("done", 100)
        assert "going on from" in carrier.log("one")["text"]
        steps = [line["step"] for line in carrier.metrics("one")["metrics"] if "loss" in line]
        assert steps == list(range(1, 101))


def test_a_run_that_cannot_be_prepared_says_why(data, model) -> None:
    with process(data, model) as (_, url), Carrier(url) as carrier:
        carrier.start("one", "facts.jsonl", b"\n".join(LINES), {})
        said: dict = until(lambda: (one := carrier.status("one"))["state"] in ENDED and one)
        assert (said["state"], said["exit_code"]) == ("failed", 2)
        assert "tokenizer" in said["error"]


def test_the_secret_is_taken_from_the_environment(data, model, monkeypatch) -> None:
    monkeypatch.setenv("TURNMILL_SIDECAR_SECRET", SECRET)
    with process(data, model) as (_, url), Carrier(url, SECRET) as knows, Carrier(url) as knows_not:
        assert knows.is_ready()
        with pytest.raises(SidecarRefused, match="brings no secret"):
            knows_not.is_ready()


@pytest.mark.parametrize(
    ("more", "said", "next_step"),
    [
        ([], "no data directory given", "--data sidecar"),
        (["--data", "d"], "no model given", "--models NAME=DIR"),
        (["--data", "d", "--models", "tiny"], "expected NAME=DIR", "--models NAME=DIR"),
        (["--data", "d", "--models", "../tiny=model"], "the name is", None),
        (["--data", "d", "--models", "a=nowhere"], "is no model", "nowhere"),
        (["--data", "d", "--models", "a=model", "--models", "a=model"], "two are named a", None),
        (["--data", "d", "--models", "a=model", "--host", "0.0.0.0"], "no secret", "openssl"),
        (["--data", "d", "--models", "a=model", "--host", ""], "no secret", "openssl"),
        (["--data", "d", "--models", "a=model", "--secret-file", "nowhere"], "cannot read the secret", "openssl"),
        (["--data", "model/config.json", "--models", "a=model", "--port", "0"], "cannot write", "df -h"),
        (["--data", "d", "--models", "a=model", "--port", "65536"], "65535", None),
    ],
)
def test_what_it_cannot_serve_it_says(turnmill: Callable, model, monkeypatch, more, said, next_step) -> None:
    monkeypatch.chdir(model.parent)
    answer = turnmill("sidecar", *more)
    assert answer.code == 2
    assert said in answer.err
    assert next_step is None or next_step in answer.next_step


def test_an_address_that_is_taken_is_named(turnmill: Callable, model, data) -> None:
    with ExitStack() as opened:
        taken = opened.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = turnmill("sidecar", "--data", data, "--models", f"tiny={model}", "--port", str(port))
    assert answer.code == 2
    assert f"port {port}: Address already in use" in answer.err


def test_a_second_sidecar_of_a_directory_is_refused(turnmill: Callable, data, model) -> None:
    with process(data, model) as (sidecar, _):
        answer = turnmill("sidecar", "--data", data, "--models", f"tiny={model}", "--port", "0")
    assert answer.code == 2
    assert answer.next_step == f"ps -p {sidecar.pid}"
    assert os.environ.get("TURNMILL_SIDECAR_SECRET") is None

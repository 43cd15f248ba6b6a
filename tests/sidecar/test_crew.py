from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar_stand_in import FAILS, OTHER_ROWS, ROWS, STUBBORN, WAITS, go, instant, job, of, settings, state, until
from turnmill.sidecar.crew import MAX_CRASHES, Stage, error_of
from turnmill.sidecar.processes import take_lock
from turnmill.sidecar.service import Service

START = "/training/job_start"
KILLED = """
import io, json, os, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from sidecar_stand_in import WAITS, STUBBORN, job, of, settings, until
from turnmill.sidecar.service import Service

service = Service(settings(Path(sys.argv[1]), stages=of(STUBBORN if sys.argv[3] == "stubborn" else WAITS)))
service.open()
body = io.BytesIO()
import tempfile
with tempfile.TemporaryFile() as body:
    body.write(json.dumps(job(job="one")).encode())
    service.start(body)
until(lambda: (service.runs.of("one") / "seen").exists() and service.runs.run("one").process)
os._exit(9)
"""


def state_of(sidecar, number: str) -> str:
    return sidecar.get(f"/training/jobs/{number}").json()["state"]


def is_at(sidecar, number: str, *states: str) -> None:
    until(lambda: state_of(sidecar, number) in states)


def has_begun(data: Path, number: str) -> list[int]:
    """The processes that worked on a run so far."""
    found = data / "runs" / number / "seen"
    until(found.exists)
    return [int(line) for line in (data / "runs" / number / "begun").read_text().split()]


def works(process: int) -> bool:
    """Whether a process is there, and not only its number, which nobody has asked for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def killed_sidecar(data: Path, kind: str = "waits") -> int:
    """A sidecar is killed while its run works; gives the process that goes on."""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", KILLED, str(data), tests, kind], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    return state(data, "one")["process"]["pid"]


def test_a_run_passes_its_states_and_ends(open_sidecar, data) -> None:
    sidecar = open_sidecar(stages=of(WAITS))
    said = sidecar.post(START, json=job(job="one")).json()
    assert (said["state"], said["attempts"]) == ("queued", 0)
    is_at(sidecar, "one", "training")
    go(data / "runs" / "one")
    is_at(sidecar, "one", "done")
    said = sidecar.get("/training/jobs/one").json()
    assert (said["exit_code"], said["error"], said["attempts"]) == (0, None, 1)
    assert said["created_at"] <= said["started_at"] <= said["ended_at"]
    assert "process" not in said


def test_a_run_that_fails_says_what_the_command_said(open_sidecar) -> None:
    sidecar = open_sidecar(stages=of(FAILS))
    sidecar.post(START, json=job(job="one"))
    is_at(sidecar, "one", "failed")
    said = sidecar.get("/training/jobs/one").json()
    assert (said["exit_code"], said["error"]) == (3, "the loss is nan\n--train.learning_rate 1e-5")


def test_a_command_that_is_not_there_fails_the_run_and_no_other(open_sidecar) -> None:
    def stages(folder: Path):
        yield Stage("training", ("/no/such/command",)) if folder.name == "one" else Stage("training", ("true",))

    sidecar = open_sidecar(stages=stages)
    for number in ("one", "two"):
        sidecar.post(START, json=job(job=number))
    is_at(sidecar, "two", "done")
    assert "FileNotFoundError" in sidecar.get("/training/jobs/one").json()["error"]


@pytest.mark.parametrize(("concurrent", "second"), [(1, "queued"), (2, "training")])
def test_runs_wait_for_their_turn(open_sidecar, data, concurrent, second) -> None:
    sidecar = open_sidecar(stages=of(WAITS), concurrent=concurrent)
    for number in ("one", "two"):
        sidecar.post(START, json=job(job=number))
        is_at(sidecar, "one", "training")
    is_at(sidecar, "two", second)
    for number in ("one", "two"):
        has_begun(data, number)
        go(data / "runs" / number)
        is_at(sidecar, number, "done")


def test_a_dataset_that_is_replaced_changes_nothing_for_a_run_that_works(open_sidecar, data) -> None:
    sidecar = open_sidecar(stages=of(WAITS), concurrent=2)
    sidecar.post(START, json=job(job="one"))
    has_begun(data, "one")
    sidecar.post(START, json=job(OTHER_ROWS, job="two"))
    assert (data / "runs" / "one" / "data" / "facts.jsonl").read_bytes() == ROWS
    has_begun(data, "two")
    assert (data / "runs" / "two" / "seen").read_bytes() == OTHER_ROWS


@pytest.mark.parametrize("program", [WAITS, STUBBORN], ids=["obedient", "stubborn"])
def test_a_run_that_works_is_cancelled(open_sidecar, data, program) -> None:
    sidecar = open_sidecar(stages=of(program), grace_s=0.2)
    sidecar.post(START, json=job(job="one"))
    (process,) = has_begun(data, "one")
    work = data / "runs" / "one" / ".trained.train"
    work.mkdir()
    assert sidecar.post("/training/jobs/one/cancel").status_code == 200
    is_at(sidecar, "one", "cancelled")
    assert not works(process)
    assert not work.exists()
    assert sidecar.post("/training/jobs/one/cancel").json()["state"] == "cancelled"


def test_a_run_that_waits_is_cancelled_at_once(open_sidecar, data) -> None:
    sidecar = open_sidecar(stages=of(WAITS))
    for number in ("one", "two"):
        sidecar.post(START, json=job(job=number))
    has_begun(data, "one")
    assert sidecar.post("/training/jobs/two/cancel").json()["state"] == "cancelled"
    assert not (data / "runs" / "two" / "begun").exists()


def test_a_run_that_has_ended_is_not_cancelled(sidecar) -> None:
    sidecar.post(START, json=job(job="one"))
    is_at(sidecar, "one", "done")
    answer = sidecar.post("/training/jobs/one/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "run-ended")


def test_a_sidecar_that_is_stopped_ends_its_processes_and_goes_on_at_the_next_start(open_sidecar, data) -> None:
    service = Service(settings(data, stages=of(WAITS)))
    service.open()
    with service.store.drafted("facts.jsonl", [ROWS]) as draft:
        service.store.replace(draft)
    _start(service, job(None, job="one"))
    _start(service, job(None, job="two"))
    (process,) = has_begun(data, "one")
    service.close()
    assert not works(process)
    assert (state(data, "one")["state"], state(data, "one")["process"]) == ("training", None)
    sidecar = open_sidecar(stages=of(WAITS))
    until(lambda: len(has_begun(data, "one")) == 2)
    assert state_of(sidecar, "two") == "queued"
    go(data / "runs" / "one")
    is_at(sidecar, "one", "done")
    assert sidecar.get("/training/jobs/one").json()["attempts"] == 2


def _start(service: Service, body: dict) -> None:
    import json
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(body).encode())
        service.start(file)


@pytest.mark.parametrize("kind", ["waits", "stubborn"])
def test_what_a_killed_sidecar_left_at_work_never_works_beside_its_successor(open_sidecar, data, kind) -> None:
    orphan = killed_sidecar(data, kind)
    assert works(orphan)
    assert take_lock(data / "runs" / "one" / "lock") is None
    sidecar = open_sidecar(stages=of(WAITS), grace_s=0.2)
    until(lambda: len(has_begun(data, "one")) == 2)
    assert not works(orphan)
    go(data / "runs" / "one")
    is_at(sidecar, "one", "done")
    assert state(data, "one")["crashes"] == 1


def test_an_orphan_that_ends_by_itself_is_not_done_again(open_sidecar, data) -> None:
    killed_sidecar(data)
    record = data / "runs" / "one" / "state.json"
    record.write_text(record.read_text().replace('"began": "', '"began": "9'))  # its number is said to be another's
    sidecar = open_sidecar(stages=of(WAITS))
    assert state_of(sidecar, "one") == "training"
    go(data / "runs" / "one")
    is_at(sidecar, "one", "done")
    assert len(has_begun(data, "one")) == 1


def test_a_run_that_was_to_end_ends_though_the_sidecar_was_killed(open_sidecar, data) -> None:
    killed_sidecar(data)
    record = data / "runs" / "one" / "state.json"
    record.write_text(record.read_text().replace('"is_cancelled": false', '"is_cancelled": true'))
    sidecar = open_sidecar(stages=of(WAITS), grace_s=0.2)
    is_at(sidecar, "one", "cancelled")
    assert len(has_begun(data, "one")) == 1


def test_a_run_that_kills_sidecars_is_given_up(open_sidecar, data) -> None:
    orphan = killed_sidecar(data)
    record = data / "runs" / "one" / "state.json"
    record.write_text(record.read_text().replace('"crashes": 0', f'"crashes": {MAX_CRASHES - 1}'))
    sidecar = open_sidecar(stages=instant, grace_s=0.2)
    is_at(sidecar, "one", "failed")
    assert "was killed 5 times" in sidecar.get("/training/jobs/one").json()["error"]
    assert not works(orphan)


def test_what_a_run_leaves_behind_in_its_group_is_ended(open_sidecar, data) -> None:
    leaves = "import subprocess\nopen('left', 'w').write(str(subprocess.Popen(['sleep', '600']).pid))"
    sidecar = open_sidecar(stages=lambda _: iter([Stage("training", (sys.executable, "-c", leaves))]))
    sidecar.post(START, json=job(job="one"))
    is_at(sidecar, "one", "done")
    left = int((data / "runs" / "one" / "left").read_text())
    until(lambda: not works(left))


def test_processes_know_no_secret_and_ask_nobody(open_sidecar, data, monkeypatch) -> None:
    monkeypatch.setenv("TURNMILL_SIDECAR_SECRET", "0123456789abcdef")
    monkeypatch.setenv("PYTHONPATH", "relative")
    sidecar = open_sidecar("0123456789abcdef", stages=lambda _: iter([Stage("training", ("env",))]))
    sidecar.headers["Authorization"] = "Bearer 0123456789abcdef"
    sidecar.post(START, json=job(job="one"))
    is_at(sidecar, "one", "done")
    said = sidecar.get("/training/jobs/one/log").json()["text"]
    assert "0123456789abcdef" not in said
    assert "HF_HUB_OFFLINE=1" in said
    assert f"PYTHONPATH={os.getcwd()}/relative" in said


def test_two_sidecars_do_not_share_a_directory(sidecar, data) -> None:
    with pytest.raises(Exception, match=f"another sidecar, process {os.getpid()}"):
        Service(settings(data))


@pytest.mark.parametrize(
    ("said", "code", "error"),
    [
        ("a notice\nturnmill: no such file\nls\n", 2, "no such file\nls"),
        ("Traceback\n  File\nKeyError: 7\n", 1, "KeyError: 7"),
        ("step 1\n", -9, "it was ended by SIGKILL: step 1"),
        ("", -15, "it was ended by SIGTERM"),
        ("", 7, "it ended with 7 and said nothing"),
    ],
)
def test_an_error_is_what_was_said_last(tmp_path: Path, said, code, error) -> None:
    (tmp_path / "log").write_text(f"turnmill: of an earlier command\n{said}")
    assert error_of(tmp_path, len("turnmill: of an earlier command\n"), code) == error

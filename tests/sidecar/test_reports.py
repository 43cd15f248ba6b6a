from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sidecar_stand_in import job, served, until
from turnmill.files.publish import publish
from turnmill.sidecar.reports import log_of, metrics_of, progress_of

LINES = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}, {"step": 2, "eval/loss": 2.5}, {"step": 3, "loss": 1.0}]
WEIGHTS = b"weights " * 100_000
ATTACKS = [
    "../state.json", "..%2fstate.json", "%2e%2e/state.json", "%2e%2e%2fstate.json", "..%5cstate.json",
    "a/../../state.json", "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "config.json/", "./config.json", "sub", "",
    "config.json%00", "sub/", "..", "../run.yaml", "../prepared/manifest.json", "run.json", "link", "CONFIG.json",
    "config.json/../link",
]  # fmt: skip


@pytest.fixture
def folder(sidecar, data) -> Path:
    """The directory of a run that has ended, and published."""
    sidecar.post("/training/job_start", json=job(job="one"))
    until(lambda: sidecar.get("/training/jobs/one").json()["state"] == "done")
    folder = data / "runs" / "one"
    metrics = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    contents = {"config.json": b"{}", "sub/model.safetensors": WEIGHTS, "metrics.jsonl": metrics}
    publish(contents, folder / "trained", unlisted={"run.json": b"{}"})
    (folder / "trained" / "link").symlink_to(folder / "state.json")
    (folder / "log").write_text("optimizer steps: about 1,200\nGröße €\n")
    return folder


def test_published_files_are_listed_with_their_hashes(sidecar, folder) -> None:
    listed = {one["path"]: one for one in sidecar.get("/training/jobs/one/artefacts").json()["artefacts"]}
    assert sorted(listed) == ["config.json", "manifest.json", "metrics.jsonl", "sub/model.safetensors"]
    weights = listed["sub/model.safetensors"]
    assert (weights["size_bytes"], weights["sha256"]) == (len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())


def test_a_published_file_is_sent_whole(sidecar, folder) -> None:
    answer = sidecar.get("/training/jobs/one/artefacts/sub/model.safetensors")
    assert answer.content == WEIGHTS
    assert answer.headers["etag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'
    assert answer.headers["content-disposition"].startswith("attachment")
    listed = {one["path"]: one["sha256"] for one in sidecar.get("/training/jobs/one/artefacts").json()["artefacts"]}
    own = sidecar.get("/training/jobs/one/artefacts/manifest.json").content
    assert hashlib.sha256(own).hexdigest() == listed["manifest.json"]


def test_nothing_else_is_sent(folder, data, tmp_path) -> None:
    shutil.copytree(data / "runs", tmp_path / "other" / "runs", symlinks=True)
    with served(tmp_path / "other") as url:
        answers = {path: raw(url, f"/training/jobs/one/artefacts/{path}") for path in ["config.json", *ATTACKS]}
    assert answers.pop("config.json") == (200, b"{}")
    assert {path: answer for path, answer in answers.items() if answer[0] != 404} == {}
    assert not any(b"root:" in body or b"crashes" in body for _, body in answers.values())


def raw(url: str, path: str) -> tuple[int, bytes]:
    """The answer to a path that no client has tidied."""
    connection = HTTPConnection(urlsplit(url).netloc)
    with closing(connection):
        connection.putrequest("GET", path)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_published_file_that_became_a_link_out_is_not_sent(sidecar, folder) -> None:
    (folder / "trained" / "config.json").unlink()
    (folder / "trained" / "config.json").symlink_to(folder / "state.json")
    answer = sidecar.get("/training/jobs/one/artefacts/config.json")
    assert (answer.status_code, answer.json()["code"]) == (404, "artefact-unknown")


def test_a_run_that_is_none_has_nothing(folder, data, tmp_path) -> None:
    numbers = ["two", "..", "%2e%2e", "..%2f..", "one%00", ".", "*", "ONE"]
    parts = ["", "/metrics", "/log", "/artefacts", "/artefacts/config.json"]
    shutil.copytree(data / "runs", tmp_path / "other" / "runs", symlinks=True)
    with served(tmp_path / "other") as url:
        found = {raw(url, f"/training/jobs/{number}{part}")[0] for number in numbers for part in parts}
    assert found == {404}


def test_a_run_that_is_none_is_not_cancelled(sidecar) -> None:
    answer = sidecar.post("/training/jobs/two/cancel")
    assert (answer.status_code, answer.json()["code"]) == (404, "run-unknown")


def test_metrics_are_those_behind_a_step(sidecar, folder) -> None:
    assert sidecar.get("/training/jobs/one/metrics").json() == {"metrics": LINES, "truncated": False}
    assert sidecar.get("/training/jobs/one/metrics?after=2").json()["metrics"] == LINES[3:]


def test_metrics_are_cut_between_steps(folder) -> None:
    assert [line["step"] for line in metrics_of(folder, -1, limit=2).metrics] == [1, 2, 2]
    assert metrics_of(folder, -1, limit=2).truncated
    assert not metrics_of(folder, 2, limit=1).truncated


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".trained.train").mkdir()
    (tmp_path / ".trained.train" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert metrics_of(tmp_path, -1).metrics == [{"step": 1, "loss": 2.0}]
    assert progress_of(tmp_path).step == 1


def test_progress_is_what_the_metrics_say_last(sidecar, folder) -> None:
    progress = sidecar.get("/training/jobs/one").json()["progress"]
    assert progress == {
        "rows": None, "trained_tokens": None, "step": 3, "steps": 1200, "epoch": None, "loss": 1.0,
    }  # fmt: skip


def test_the_log_is_read_from_a_byte_on(sidecar, folder) -> None:
    first = sidecar.get("/training/jobs/one/log").json()
    assert (first["text"].splitlines()[1], first["next_offset"]) == ("Größe €", 41)
    assert sidecar.get("/training/jobs/one/log?offset=35").json()["text"] == "e €\n"
    assert sidecar.get("/training/jobs/one/log?offset=9999").json() == {"text": "", "offset": 9999, "next_offset": 9999}


@pytest.mark.parametrize("limit", range(1, 13))
def test_a_log_in_parts_is_the_log(tmp_path: Path, limit) -> None:
    text = "Größe €uro 🙂 ok"
    (tmp_path / "log").write_text(text)
    parts, offset = [], 0
    while (part := log_of(tmp_path, offset, max(4, limit))).text:
        parts.append(part.text)
        offset = part.next_offset
    assert "".join(parts) == text


@pytest.mark.parametrize(
    "query", ["metrics?after=-2", "metrics?after=x", "metrics?limit=0", "log?offset=-1", "log?offset="]
)
def test_parameters_that_mean_nothing_are_refused(sidecar, folder, query) -> None:
    answer = sidecar.get(f"/training/jobs/one/{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "parameter-invalid")


def test_runs_are_listed_the_last_one_first(sidecar, folder) -> None:
    sidecar.post("/training/job_start", json=job(job="two"))
    assert [one["id"] for one in sidecar.get("/training/jobs").json()["jobs"]] == ["two", "one"]
    assert [one["id"] for one in sidecar.get("/training/jobs?limit=1").json()["jobs"]] == ["two"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/training/datasets", 404, "not-found"),
        ("GET", "/training/datasets", 404, "not-found"),
        ("GET", "/docs", 404, "not-found"),
        ("GET", "/training/job_start", 405, "method-not-allowed"),
        ("DELETE", "/training/jobs", 405, "method-not-allowed"),
    ],
)
def test_what_is_not_served_is_a_problem(sidecar, method, path, status, code) -> None:
    answer = sidecar.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_of_a_bug_nothing_is_told_but_that_it_is_one(sidecar, folder) -> None:
    (folder / "log").unlink()
    answer = sidecar.get("/training/jobs/one/log")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert str(folder) not in answer.text

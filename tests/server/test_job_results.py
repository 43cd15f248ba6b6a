from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import published
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.tables import Job

JOBS = "/v1/training/jobs"
ABSENT = "0" * 32
THERE = "1" * 32
CHATS = [
    {"messages": [{"role": "user", "content": "Of Peru?"}, {"role": "assistant", "content": "Lima."}]},
    {
        "messages": [
            {"role": "user", "content": "Of Chile?"},
            {"role": "assistant", "content": "Santiago."},
            {"role": "user", "content": "And of Chad?"},
        ]
    },
    {"messages": [{"role": "user", "content": "Of Chad? "}, {"role": "assistant", "content": ""}]},
]
"""One that is accepted, and two that leave."""
LINE = {
    "row_id": "a", "part": 0, "turn": 0, "message": 1, "source": "facts", "source_file": "dataset.jsonl",
    "source_line": 1, "asked": "Of Peru?", "trained_tokens": 2, "recorded": "Lima.", "answer": "Lima.", "ended": True,
    "fault": None, "exact": 1.0, "normalised": 1.0, "f1": 1.0, "nll": 0.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `prepare` makes of the rows."""
    return published.prepared(tmp_path_factory.mktemp("job"), CHATS)


@pytest.fixture
def folder(client: TestClient, database: Database, tmp_path: Path, out: Path) -> JobFolder:
    """The folder of a job that is done."""
    job = Job(id=THERE, kind="audit", dataset="facts", filename="facts.jsonl", sha256="0" * 64, options={})
    Jobs(database).add(job)
    Jobs(database).take("worker")
    Jobs(database).finish(THERE, "worker", "done")
    folder = JobFolder(tmp_path / "jobs" / THERE)
    shutil.copytree(out, folder.prepared)
    folder.dataset.write_text("a row\n")
    folder.log.write_text("said\n")
    (folder.path / "config.yaml").write_text("model: /secret/place")
    return folder


@pytest.fixture
def get(client: TestClient, folder: JobFolder) -> Callable[..., Any]:
    """Asks for something of the job."""
    return lambda path, **query: client.get(f"{JOBS}/{THERE}/{path}", params=query)


def write_lines(path: Path, lines: list[dict[str, Any]], end: str = "") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end)


def test_the_files_that_came_of_a_job(get: Any) -> None:
    found = get("files").json()
    paths = [one["path"] for one in found["files"]]
    assert found["next"] is None
    assert {"dataset.jsonl", "prepared/manifest.json", "prepared/quarantine/part-00000.parquet"} <= set(paths)
    assert paths == sorted(paths)
    assert not {"log", "config.yaml", "recipe.json"} & set(paths)


def test_files_come_in_pages(get: Any) -> None:
    whole, paged, after = get("files").json()["files"], [], None
    while True:
        page = get("files", limit=3, **({"after": after} if after else {})).json()
        paged += page["files"]
        after = page["next"]
        if after is None:
            break
    assert paged == whole


def test_a_file_comes_as_it_is(get: Any, folder: JobFolder) -> None:
    answer = get("files/prepared/manifest.json")
    assert answer.content == (folder.prepared / "manifest.json").read_bytes()
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''manifest.json"


@pytest.mark.parametrize(
    "path",
    [
        "log", "config.yaml", "recipe.json", "model/x", "", "prepared", "prepared/", "prepared/none", "..%2fsecret",
        "prepared/..%2f..%2f..%2fsecret", "%2fetc%2fpasswd", "prepared/..%2fconfig.yaml", ".%2fconfig.yaml",
        "prepared/%00", "prepared/a%00.json", "prepared/link", "prepared/inner/secret", "prepared/pipe",
        "prepared//etc/passwd", "prepared%5c..%5cconfig.yaml", f"prepared/{'a' * 5000}",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_what_a_job_left(client: TestClient, folder: JobFolder, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("the secret")
    (folder.prepared / "link").symlink_to(tmp_path / "secret")
    (folder.prepared / "inner").symlink_to(tmp_path)
    os.mkfifo(folder.prepared / "pipe")
    answer = client.get(f"{JOBS}/{THERE}/files/{path}")
    is_listing = path == ""
    assert answer.status_code in ((200, 307, 404) if is_listing else (404,)), answer.text
    assert "secret" not in answer.text or is_listing


def test_links_are_not_listed(get: Any, folder: JobFolder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    (folder.prepared / "link").symlink_to(tmp_path / "secret")
    (folder.path / "output").symlink_to(tmp_path)
    assert not [one for one in get("files").json()["files"] if "secret" in str(one) or "link" in str(one)]


def test_what_the_prepared_rows_come_to(get: Any, folder: JobFolder) -> None:
    answer = get("manifest")
    said = answer.json()
    assert (said["rows"]["read"], said["rows"]["accepted"], said["examples"]) == (3, 1, 1)
    assert sum(said["codes"].values()) == 2
    assert [source["rows"]["read"] for source in said["sources"]] == [3]
    assert said["sources"][0]["trained_tokens"] == said["trained_tokens"] > 0
    assert str(folder.path.parent.parent) not in answer.text


def test_damaged_rows_are_told(get: Any, folder: JobFolder) -> None:
    (folder.prepared / "report.json").write_text("{")
    answer = get("manifest")
    assert (answer.status_code, answer.json()["code"]) == (409, "prepared-damaged")
    assert "/jobs" not in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("manifest", "not-prepared"),
        ("selection", "not-prepared"),
        ("quarantine", "not-prepared"),
        ("answers", "no-answers"),
    ],
)
def test_what_is_not_there_yet_is_told(get: Any, folder: JobFolder, path: str, code: str) -> None:
    shutil.rmtree(folder.prepared)
    answer = get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_the_curve_of_a_training(get: Any, folder: JobFolder) -> None:
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}, {"step": 2, "eval/loss": 1.5, "best": True}]
    write_lines(folder.metrics, lines, end='{"step": 3, "lo')
    assert get("metrics").json() == {"metrics": lines, "next": None, "is_whole": True}
    assert get("metrics", after=1).json()["metrics"] == lines[1:]
    part = get("metrics", limit=1).json()
    assert (part["metrics"], part["next"], part["is_whole"]) == (lines[:1], 1, False)
    assert get("metrics", limit=1, after=1).json()["metrics"] == lines[1:]


def test_a_job_that_trains_nothing_has_no_curve(get: Any) -> None:
    assert get("metrics").json() == {"metrics": [], "next": None, "is_whole": True}


@pytest.fixture
def asked(folder: JobFolder) -> list[dict[str, Any]]:
    """Answers that a model gave: exact, other, and none."""
    changes = ({}, {"answer": "Paris.", "exact": 0.0, "asked": "Of FRANCE?"}, {"answer": None, "fault": "too long"})
    lines = [{**LINE, **change, "row_id": str(at)} for at, change in enumerate(changes)]
    write_lines(folder.output / "answers.jsonl", lines)
    return lines


def test_answers_come_in_pages(get: Any, asked: list[dict[str, Any]]) -> None:
    first = get("answers", limit=2).json()
    rest = get("answers", limit=2, cursor=first["next"]).json()
    assert first["answers"] + rest["answers"] == asked
    assert rest["next"] is None
    assert get("answers", limit=3).json()["next"] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"only": "exact"}, ["0"]),
        ({"only": "different"}, ["1"]),
        ({"only": "unanswered"}, ["2"]),
        ({"contains": "france"}, ["1"]),
        ({"contains": "lima", "only": "exact"}, ["0"]),
        ({"contains": "none of them"}, []),
        ({"cursor": 1 << 40}, []),
    ],
)
def test_answers_are_chosen(get: Any, asked: Any, query: dict[str, Any], found: list[str]) -> None:
    assert [one["row_id"] for one in get("answers", **query).json()["answers"]] == found


def test_answers_are_read_only_so_far_for_one_page(get: Any, asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnmill.shelf.job_results.MAX_READ_BYTES", 10)
    page = get("answers", only="unanswered").json()
    assert page["answers"] == []
    assert page["next"] > 0


def test_answers_that_lead_out_are_none(get: Any, folder: JobFolder, tmp_path: Path) -> None:
    write_lines(tmp_path / "answers.jsonl", [LINE])
    folder.output.symlink_to(tmp_path)
    assert get("answers").status_code in (400, 404)


@pytest.mark.parametrize("path", ["files", "files/x", "manifest", "selection", "metrics", "answers", "quarantine"])
def test_no_such_job(client: TestClient, path: str) -> None:
    assert client.get(f"{JOBS}/{ABSENT}/{path}").json()["code"] == "job-unknown"


def test_the_rows_that_left(get: Any) -> None:
    said = get("quarantine").json()
    codes = sorted(row["code"] for row in said["rows"])
    assert sorted(reason["code"] for reason in said["reasons"] for _ in range(reason["rows"])) == codes
    assert len(codes) == 2
    assert all(reason["means"] and reason["remedy"] for reason in said["reasons"])
    assert [(row["number"], row["source_line"], row["is_whole"]) for row in said["rows"]] == [
        (0, 2, True),
        (1, 3, True),
    ]
    assert [json.loads(row["excerpt"]) for row in said["rows"]] == CHATS[1:]


def test_rows_that_left_come_in_pages_and_by_code(get: Any) -> None:
    first = get("quarantine", limit=1).json()
    second = get("quarantine", limit=1, cursor=first["next"]).json()
    assert [row["source_line"] for page in (first, second) for row in page["rows"]] == [2, 3]
    assert second["next"] is None
    code = second["rows"][0]["code"]
    assert [row["source_line"] for row in get("quarantine", code=code).json()["rows"]] == [3]
    assert get("quarantine", code="none").json()["rows"] == []
    assert get("quarantine", duplicates=True).json() == {"reasons": [], "rows": [], "next": None}


def test_few_rows_are_looked_at_for_one_page(get: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnmill.shelf.job_quarantine.MAX_LOOKED_AT", 1)
    page = get("quarantine", code="none").json()
    assert (page["rows"], page["next"]) == ([], 1)


def test_what_other_repairs_would_bring(client: TestClient, folder: JobFolder) -> None:
    before = sorted(path.name for path in folder.path.rglob("*"))
    said = client.post(f"{JOBS}/{THERE}/quarantine/replay", json={"repairs": ["drop-trailing-user"]}).json()
    assert (said["rows"], said["passes"], said["complete"], said["left_later"]) == (2, 1, True, 0)
    assert sum(one["rows"] for one in said["counts"]) == 2
    assert [(one["source_line"], "And of Chad?" in one["after"]) for one in said["examples"]] == [(2, False)]
    assert said["command"] == f"turnmill quarantine replay JOBS/{THERE}/prepared --repairs drop-trailing-user"
    assert sorted(path.name for path in folder.path.rglob("*")) == before


@pytest.mark.parametrize("name", ["none", "/tmp/mine.py:mine", "mine.py:mine", "../x"])
def test_a_repair_that_there_is_not_is_refused(client: TestClient, folder: JobFolder, name: str) -> None:
    answer = client.post(f"{JOBS}/{THERE}/quarantine/replay", json={"repairs": [name]})
    assert (answer.status_code, answer.json()["code"]) == (400, "request-not-valid")


def test_a_replay_that_takes_too_long_says_so(
    client: TestClient, folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnmill.shelf.job_quarantine.replay_counts.__kwdefaults__", {"max_seconds": -1.0})
    said = client.post(f"{JOBS}/{THERE}/quarantine/replay", json={}).json()
    assert (said["rows"], said["complete"]) == (0, False)

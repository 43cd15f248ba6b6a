from __future__ import annotations

import base64
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from sidecar_stand_in import CHATS, OTHER_ROWS, ROWS, job, state, stored, until
from turnmill.sidecar.job_options import OPTIONS
from turnmill.sidecar.runs import ENDED

START = "/training/job_start"


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_a_job_is_taken_with_its_dataset(sidecar, data) -> None:
    answer = sidecar.post(START, json=job(job="one", epochs=2))
    assert answer.status_code == 201
    assert answer.headers["location"] == "/training/jobs/one"
    said = answer.json()
    assert (said["dataset"], said["size_bytes"], said["num_records"]) == ("facts.jsonl", len(ROWS), 2)
    assert (said["model"], said["options"]) == ("tiny", {"epochs": 2})
    assert stored(data) == {"facts.jsonl": ROWS}
    until(lambda: sidecar.get("/training/jobs/one").json()["state"] == "done")


def test_the_dataset_is_there_before_the_run(sidecar, data) -> None:
    number = sidecar.post(START, json=job()).json()["id"]
    assert (data / "runs" / number / "data" / "facts.jsonl").read_bytes() == ROWS
    assert "data: " in (data / "runs" / number / "run.yaml").read_text()


def test_without_content_the_stored_dataset_is_taken(sidecar, data) -> None:
    sidecar.post(START, json=job())
    answer = sidecar.post(START, json=job(None))
    assert (answer.status_code, answer.json()["size_bytes"]) == (201, len(ROWS))
    assert sidecar.post(START, json={**job(None), "dataset_content": None}).status_code == 201


@pytest.mark.parametrize(
    "rows",
    [ROWS, CHATS, ROWS.replace(b"\n", b"\r\n"), b"\n\n" + ROWS + b"\n", ROWS.rstrip(), CHATS * 40],
    ids=["rows", "chats", "carriage returns", "blank lines", "no last end", "many chats"],
)
def test_rows_by_the_line_rule_and_chats_are_taken(sidecar, data, rows) -> None:
    assert sidecar.post(START, json=job(rows)).status_code == 201
    assert stored(data) == {"facts.jsonl": rows}


def test_content_may_have_escaped_slashes(sidecar, data) -> None:
    rows = ('{"instruction": "' + "ÿ?>~" * 9 + '", "output": ""}\n').encode()
    assert "/" in b64(rows)
    body = json.dumps(job(rows)).replace("/", "\\/")
    assert sidecar.post(START, content=body, headers={"content-type": "application/json"}).status_code == 201
    assert stored(data) == {"facts.jsonl": rows}


def test_content_of_several_pieces_is_whole(sidecar, data) -> None:
    rows = ROWS * 6_000
    assert sidecar.post(START, json=job(rows)).json()["num_records"] == 12_000
    assert stored(data) == {"facts.jsonl": rows}


NAMES = [
    "../facts.jsonl", "a/facts.jsonl", "/facts.jsonl", ".facts.jsonl", ".jsonl", "facts.json", "facts", "",
    "a..b.jsonl", "a\x00.jsonl", "a\n.jsonl", "a\\b.jsonl", "a b.jsonl", "é.jsonl", "a" * 123 + ".jsonl", "-a.jsonl",
    "facts.JSONL", 7, ["facts.jsonl"], {"name": "facts.jsonl"},
]  # fmt: skip
REFUSED = [
    ({}, "dataset-missing"),
    ({"dataset": None}, "dataset-missing"),
    ({"dataset_content": b64(ROWS)}, "dataset-missing"),
    ({"dataset_content": b64(ROWS), "dataset": None}, "dataset-missing"),
    ({"dataset": "absent.jsonl"}, "dataset-absent"),
    *(({"dataset": name, "dataset_content": b64(ROWS)}, "dataset-name-invalid") for name in NAMES),
    *(
        ({"dataset": "facts.jsonl", "dataset_content": content}, "dataset-content-invalid")
        for content in ["", "no base64", "YWJ", "YQ==YQ==", " YWJj", "YWJj\n", "ÄÖÜß", 7, ["YWJj"], {}, True]
    ),
    *((job(path="/etc", **{key: 1}), "option-unknown") for key in ["trainer", "report_to", "device", "output", "data"]),
    (job(template="/etc/passwd"), "option-invalid"),
    (job(template="chatml.jinja"), "option-invalid"),
    (job(epochs=0), "option-invalid"),
    (job(epochs="2"), "option-invalid"),
    (job(epochs=True), "option-invalid"),
    (job(method="qlora"), "option-invalid"),
    (job(learning_rate="x" * 5_000), "option-invalid"),
    (job(model="other"), "model-unknown"),
    (job(model="../tiny"), "model-unknown"),
    (job(model=7), "model-unknown"),
    (job(job="../one"), "job-invalid"),
    (job(job=""), "job-invalid"),
    (job(job=7), "job-invalid"),
    (job(job="a" * 200), "job-invalid"),
]


@pytest.mark.parametrize(("body", "code"), REFUSED)
def test_what_is_no_job_is_refused_and_leaves_nothing(sidecar, data, body, code) -> None:
    answer = sidecar.post(START, content=json.dumps(body), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} < answer.json().keys()
    assert [stored(data), list((data / "runs").iterdir()), list((data / "drafts").iterdir())] == [{}, [], []]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS + b"no json\n", "facts.jsonl:3: "),
        (ROWS + b'{"instruction": "a"}\n', "facts.jsonl:3: the row has no 'output'"),
        (b'{"instruction": "a", "output": 7}\n', "facts.jsonl:1: 'output' is 7"),
        (ROWS + b"[1]\n", "facts.jsonl:3: "),
        (b'\xef\xbb\xbf{"instruction": "a", "output": "b"}\n', "byte-order mark"),
        (b'{"instruction": "a", "output": "\xff"}\n', "facts.jsonl:1: "),
        (b"\n \n", "no record"),
        (CHATS + b"no json\n", "facts.jsonl:2: "),
        (CHATS + ROWS, "facts.jsonl:2: "),
        (b'{"messages": 7}\n', "facts.jsonl:1: "),
        (CHATS * 30 + b'{"messages": [{"role": "user", "content": "a"}]}\n', "facts.jsonl:31: "),
        (b"[" * 100_000, "facts.jsonl:1: "),
    ],
)
def test_a_row_that_is_none_is_named_by_its_line(sidecar, data, rows, said) -> None:
    sidecar.post(START, json=job())
    answer = sidecar.post(START, json=job(rows))
    assert (answer.status_code, answer.json()["code"]) == (400, "dataset-rows-invalid")
    assert said in answer.json()["detail"]
    assert stored(data) == {"facts.jsonl": ROWS}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"7",
        b"\xff",
        b'{"dataset": "\xff"}',
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 9',
        b"{} {}",
        b'{"dataset_content": "\\ud800"}',
    ],
)
def test_a_body_that_is_no_object_is_refused(sidecar, body) -> None:
    answer = sidecar.post(START, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "body-invalid")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_a_page_could_send_unasked_is_refused(sidecar, kind) -> None:
    answer = sidecar.post(START, content=json.dumps(job()), headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "media-type")


def test_unknown_keys_are_named_with_those_that_are_known(sidecar) -> None:
    said = sidecar.post(START, json=job(epoch=1)).json()["detail"]
    assert "'epoch'" in said
    assert all(option in said for option in ["dataset_content", *OPTIONS])


def test_a_file_above_the_limit_is_refused(open_sidecar, data) -> None:
    sidecar = open_sidecar(max_bytes=len(ROWS))
    assert sidecar.post(START, json=job()).status_code == 201
    answer = sidecar.post(START, json=job(ROWS + b" "))
    assert (answer.status_code, answer.json()["code"]) == (413, "dataset-too-large")
    assert stored(data) == {"facts.jsonl": ROWS}


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_body_above_the_limit_is_refused(open_sidecar, data, is_declared) -> None:
    sidecar = open_sidecar(max_bytes=1_000)
    content = json.dumps(job(b" " * 100_000)).encode()
    sent = content if is_declared else iter([content[:50_000], content[50_000:]])
    answer = sidecar.post(START, content=sent, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
    assert list((data / "drafts").iterdir()) == []


@pytest.mark.parametrize(
    "text", ['{"a": "' + "b" * 70_000 + '"}', "{" + ",".join(f'"{n}":0' for n in range(9_000)) + "}"]
)
def test_a_body_that_is_large_beside_its_content_is_refused(sidecar, text) -> None:
    answer = sidecar.post(START, content=text, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


def test_a_second_start_of_a_job_gives_the_same_run(sidecar, data) -> None:
    first = sidecar.post(START, json=job(job="one", epochs=1))
    sidecar.post(START, json=job(OTHER_ROWS, job="two"))
    again = sidecar.post(START, json=job(job="one", epochs=1))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["created_at"] == first.json()["created_at"]
    assert stored(data) == {"facts.jsonl": OTHER_ROWS}  # a late second try replaces nothing newer


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (job(OTHER_ROWS, job="one"), "sha256"),
        (job(job="one", epochs=3), "options"),
        (job(dataset="facts2.jsonl", job="one"), "dataset"),
    ],
)
def test_another_job_of_the_same_id_is_refused(sidecar, data, other, said) -> None:
    sidecar.post(START, json=job(job="one"))
    answer = sidecar.post(START, json=other)
    assert (answer.status_code, answer.json()["code"]) == (409, "job-differs")
    assert said in answer.json()["detail"]
    assert stored(data) == {"facts.jsonl": ROWS}


def test_starts_at_once_of_one_job_make_one_run(sidecar) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: sidecar.post(START, json=job(job="one")), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len(sidecar.get("/training/jobs").json()["jobs"]) == 1


def test_of_several_models_one_is_named(open_sidecar, tmp_path) -> None:
    sidecar = open_sidecar(models={"small": tmp_path, "large": tmp_path})
    answer = sidecar.post(START, json=job())
    assert (answer.status_code, answer.json()["code"]) == (400, "model-unknown")
    assert "small" in answer.json()["detail"]
    assert sidecar.post(START, json=job(model="large")).json()["model"] == "large"


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_in_the_api_description(sidecar, option) -> None:
    paths = sidecar.get("/openapi.json").json()["paths"]
    properties = paths[START]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert properties[option]["description"]


def test_options_reach_the_config(sidecar, data) -> None:
    given = {"max_tokens": 128, "method": "lora", "lora_rank": 4, "seed": 7, "template": "chatml", "eval_fraction": 0.1}
    number = sidecar.post(START, json=job(**given)).json()["id"]
    config = (data / "runs" / number / "run.yaml").read_text()
    for line in [
        "  max_tokens: 128",
        "  method: lora",
        "    rank: 4",
        "seed: 7",
        "  template: chatml",
        "  fraction: 0.1",
    ]:
        assert f"{line}\n" in config


def test_what_rows_say_is_in_no_log_and_no_answer(sidecar, data, caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    rows = b'{"instruction": "the-private-word", "output": "b"}\n'
    number = sidecar.post(START, json=job(rows)).json()["id"]
    until(lambda: state(data, number)["state"] in ENDED)
    said = [sidecar.get(f"/training/jobs/{number}{path}").text for path in ["", "/log", "/metrics", "/artefacts"]]
    heard = "".join([*said, caplog.text, *capfd.readouterr()])
    assert "the-private-word" not in heard
    assert b64(rows)[:12] not in heard

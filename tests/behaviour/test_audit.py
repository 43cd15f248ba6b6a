"""`turnmill audit`: a model that knows five rows by heart, one that knows nothing, and endpoints."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from chats import chat
from memorised import learn, save, small
from published import prepared
from turnmill.cli.app import run

ROWS = [
    chat("What is the capital of France?", "Paris."),
    chat("Name a prime over ten.", "Eleven is one."),
    chat("Say something nice.", "You have good taste.", "And more?", "Your data are clean."),
    chat("Who painted the Mona Lisa?", "Leonardo da Vinci."),
    chat("Two plus two?", "Four!"),
]
MAIN = "from turnmill.cli.app import main; main()"


@pytest.fixture(scope="module")
def place(tmp_path_factory, smollm2_directory):
    """A folder of five prepared rows, a model that knows them, and the same before it learned."""
    folder = tmp_path_factory.mktemp("audit")
    prepared(folder, ROWS)
    save(small(), smollm2_directory, folder / "untrained")
    save(learn(small(), folder / "out"), smollm2_directory, folder / "trained")
    return folder


@pytest.fixture(scope="module")
def audited(place):
    """The results of both."""
    words = ["audit", place / "trained", place / "out", "--baseline", place / "untrained", "--output", place / "result"]
    assert run([*map(str, words), "--json"]) == 0
    return place / "result"


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_model_that_knows_its_rows_is_found_to(audited):
    found = summary(audited)
    assert (found["rows"], found["turns"], found["of_model"]["ended"]) == (5, 6, 6)
    for name in ("exact", "normalised", "f1"):
        assert found["measures"][name]["model"] == {"mean": 1.0, "error": 0.0, "turns": 6}
        assert found["measures"][name]["baseline"]["mean"] < 0.1
    assert found["measures"]["nll"]["model"]["mean"] < 0.1
    assert found["measures"]["nll"]["difference"]["mean"] < -5 * found["measures"]["nll"]["difference"]["error"]


def test_every_turn_is_there_with_both_answers(audited):
    rows = [json.loads(line) for line in (audited / "answers.jsonl").read_text().splitlines()]
    assert {row["recorded"] for row in rows} == {row["answer"] for row in rows} >= {"Paris.", "Your data are clean."}
    assert all(row["baseline_answer"] != row["answer"] for row in rows)
    assert [row["asked"] for row in rows if row["turn"] == 1] == ["And more?"]
    assert pq.read_table(audited / "answers.parquet").to_pylist() == rows


def test_the_folder_says_what_it_is(audited, place):
    manifest = json.loads((audited / "manifest.json").read_text())
    assert manifest["kind"] == "audit"
    assert {entry["path"] for entry in manifest["files"]} == {
        "answers.jsonl", "answers.parquet", "summary.json", "report.html",
    }  # fmt: skip
    assert "Leonardo" in (audited / "report.html").read_text()
    assert not list(place.glob(".result*answers"))


def test_rows_are_drawn_by_seed(turnmill, place, tmp_path):
    def drawn(seed: int) -> set[str]:
        done = turnmill("audit", place / "untrained", place / "out", "--output", tmp_path / "o", "--samples", "2",
                        "--seed", seed, "--max-new-tokens", "1")  # fmt: skip
        assert done.code == 0
        return {json.loads(line)["row_id"] for line in (tmp_path / "o" / "answers.jsonl").read_text().splitlines()}

    seeds = [drawn(seed) for seed in (0, 0, 1, 2, 3)]
    assert seeds[0] == seeds[1]
    assert len({frozenset(rows) for rows in seeds}) > 1
    assert {len(rows) for rows in seeds} == {2}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft about transformers
def test_an_adapter_is_asked_in_its_model(turnmill, place, tmp_path):
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(small(), LoraConfig(r=8, target_modules="all-linear"))
    learn(adapted, place / "out", 20).save_pretrained(tmp_path / "adapter")
    done = turnmill("audit", tmp_path / "adapter", place / "out", "--base", place / "untrained", "--baseline",
                    place / "untrained", "--output", tmp_path / "o", "--json")  # fmt: skip
    assert done.code == 0, done.err
    difference = done.json["measures"]["nll"]["difference"]
    assert difference["mean"] < 0


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(place, tmp_path):
    command = [sys.executable, "-c", MAIN, "audit", str(place / "trained"), str(place / "out"), "--output",
               str(tmp_path / "o"), "--batch-tokens", "1"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        next(line for line in first.stderr if line.startswith("model: answers: 2 of"))
        first.send_signal(signal.SIGKILL)
    assert not (tmp_path / "o").exists()
    (book,) = (tmp_path / ".o.answers").glob("*.jsonl")
    with book.open("a") as file:
        file.write('{"key": "cut o')
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split("model: answers: ")[1].split()[0]) >= 2
    assert summary(tmp_path / "o")["measures"]["exact"]["model"]["mean"] == 1.0


def test_costs_that_are_no_numbers_are_told_and_left_out(turnmill, place, tmp_path):
    shutil.copytree(place / "untrained", tmp_path / "broken")
    (file,) = (tmp_path / "broken").glob("*.safetensors")
    save_file({name: values * np.nan for name, values in load_file(file).items()}, file, metadata={"format": "pt"})
    done = turnmill("audit", tmp_path / "broken", place / "out", "--output", tmp_path / "o", "--json")
    assert done.code == 0, done.err
    assert done.json["measures"]["nll"]["model"] is None
    assert "what 6 recorded answers cost is not known: their cost is not a finite number" in done.err


def server_of(answers: dict[str, str], model: str = "m"):
    """An endpoint that knows what to say to a last message."""

    def answer(body, number):
        if body["path"].endswith("/models"):
            return 200, {"data": [{"id": model}]}
        if "messages" not in body:
            return 404, {"error": "only chats"}
        return 200, {"choices": [{"message": {"content": answers.get(body["messages"][-1]["content"], "?")}}]}

    return answer


def test_an_endpoint_is_asked_and_what_it_cannot_say_is_said(turnmill, place, tmp_path, endpoint):
    known = {row["messages"][n]["content"]: row["messages"][n + 1]["content"] for row in ROWS[:3] for n in (0, -2)}
    server = endpoint(server_of(known))
    done = turnmill("audit", server.url, place / "out", "--output", tmp_path / "o", "--json")
    assert done.code == 0, done.err
    assert done.json["measures"]["exact"]["model"]["mean"] == pytest.approx(4 / 6)
    assert done.json["measures"]["nll"]["model"] is None
    assert "what 6 recorded answers cost is not known" in done.err
    assert done.json["model"] == {"model": "m", "url": server.url}


def test_a_model_and_an_endpoint_are_set_beside_each_other(turnmill, place, tmp_path, endpoint):
    server = endpoint(server_of({}))
    done = turnmill("audit", place / "trained", place / "out", "--baseline", server.url, "--output", tmp_path / "o")
    assert done.code == 0, done.err
    assert "+100.0 ± 0.0 %" in done.out


def test_a_key_is_in_no_file(turnmill, place, tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv("TURNMILL_API_KEY", "sk-secret")
    server = endpoint(server_of({}))
    assert turnmill("audit", server.url, place / "out", "--output", tmp_path / "o").code == 0
    assert "Bearer sk-secret" in server.keys
    assert not [path for path in (tmp_path / "o").rglob("*") if b"sk-secret" in path.read_bytes()]


def test_an_endpoint_that_goes_down_leaves_the_answers_it_gave(turnmill, place, tmp_path, endpoint):
    good = server_of({})
    server = endpoint(lambda body, number: (404, {"error": "gone"}) if number == 6 else good(body, number))
    words = ("audit", server.url, place / "out", "--output", tmp_path / "o", "--concurrency", "1")
    stopped = turnmill(*words)
    assert (stopped.code, (tmp_path / "o").exists()) == (2, False)
    (book,) = (tmp_path / ".o.answers").glob("*.jsonl")
    given, before = len(book.read_text().splitlines()), len(server.requests)
    assert 0 < given < 6
    with book.open("a") as file:
        file.write('{"key": "cut o')  # as a kill leaves it
    assert turnmill(*words).code == 0
    asked = [body for body in server.requests[before:] if body.get("max_tokens", 1) > 1]
    assert len(asked) == 6 - given
    assert not book.parent.exists()


REFUSED = [
    (["smollm3", "out"], "is no model directory"),
    (["trained", "none"], "is no prepared folder"),
    (["trained", "out", "--side", "eval"], "nothing can be asked"),
    (["trained", "out", "--base", "untrained"], "holds no adapters"),
    (["trained", "out", "--name", "x"], "at an endpoint"),
    (["http://127.0.0.1:9/v1", "out"], "no answer after"),
    (["http://127.0.0.1:9/v1", "out", "--base", "trained"], "goes with a directory of adapters"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_cannot_be_asked_is_refused(turnmill, place, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(place)
    monkeypatch.setattr("turnmill.endpoints.BACKOFF_S", 0.0)
    refused = turnmill("audit", *words, "--output", tmp_path / "o")
    assert refused.code in (2, 3)
    assert said in refused.err
    assert not (tmp_path / "o").exists()


def test_the_results_do_not_go_over_the_data(turnmill, place):
    refused = turnmill("audit", place / "trained", place / "out", "--output", place / "out")
    assert (refused.code, "is what is audited" in refused.err) == (2, True)
    assert (place / "out" / "train").is_dir()


def test_another_tokenizer_is_told(turnmill, place, tmp_path, smollm2_directory):
    folder = save(small(), smollm2_directory, tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {token: len(vocabulary) - 1 - number for token, number in vocabulary.items()}
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": []}))
    refused = turnmill("audit", folder, place / "out", "--output", tmp_path / "o")
    assert (refused.code, "has another tokenizer than" in refused.err) == (2, True)

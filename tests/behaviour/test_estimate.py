"""`turnmill estimate` against what `prepare` makes of the same data."""

from __future__ import annotations

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chats import chat, numbered

MODEL = ["--model", "smollm2", "--max-tokens", "128"]


def drawn(count: int, seed: int = 0) -> list[dict]:
    """Chats of one to three turns whose lengths differ a hundredfold."""
    draw = random.Random(seed)
    return [
        chat(
            *(" ".join(["word"] * int(draw.lognormvariate(2, 1) + 1)) + f" {n}" for _ in range(2 * draw.randint(1, 3)))
        )
        for n in range(count)
    ]


@pytest.fixture
def estimate(turnmill):
    def call(*arguments):
        answer = turnmill("estimate", *arguments, "--json")
        assert answer.code == 0, answer.err
        return answer.json

    return call


@pytest.mark.parametrize("flags", [[], ["--pack.on", "false"], ["--fit.overflow", "continue"]])
def test_small_data_are_counted_exactly(estimate, prepare, chats, flags):
    rows = chats("rows.jsonl", *drawn(200))
    found, made = estimate(rows, *MODEL, *flags), prepare(rows, *MODEL[2:], *flags)
    assert found["exact"]
    assert found["examples"]["total"] == made.report["examples"]
    assert found["tokens"]["total"] == made.report["tokens"]["total"]
    assert found["trained_tokens"]["total"] == made.report["trained_tokens"]["total"]
    assert found["packs"] == pytest.approx(len(made.plan()), rel=0.03)


def test_larger_data_are_estimated_within_the_stated_error(estimate, chats):
    rows = chats("rows.jsonl", *drawn(3000))
    found = estimate(rows, *MODEL, "--estimate.precision", "0.02")
    exact = estimate(rows, *MODEL, "--estimate.exact", "true")
    assert found["looked_at"] < 1500
    assert exact["looked_at"] == 3000
    assert 0 < found["error"] <= 0.02
    for name in ("tokens", "trained_tokens", "examples"):
        assert abs(found[name]["total"] - exact[name]["total"]) <= 3.5 * found[name]["error"] + 1
    assert found["packs"] == pytest.approx(exact["packs"], rel=0.07)


def test_out_is_counted(estimate, prepare, chats):
    made = prepare(chats("rows.jsonl", *drawn(100)), *MODEL[2:])
    found = estimate(made.folder, "--packs-per-step", "4")
    assert (found["packs"], found["steps"], found["exact"]) == (len(made.plan()), len(made.plan()) // 4, True)
    assert found["tokens"]["total"] == made.report["tokens"]["total"]


@pytest.mark.parametrize("kind", ["gzip", "array", "parquet"])
def test_every_layout_is_sampled(estimate, tmp_path, kind):
    rows = drawn(900)
    path = tmp_path / f"rows.{kind}"
    if kind == "gzip":
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    elif kind == "array":
        path.write_text(json.dumps(rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"), row_group_size=100)
        path = path.with_suffix(".parquet")
    found = estimate(path, *MODEL, "--estimate.precision", "0.1")
    plain = tmp_path / "rows.jsonl"
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    exact = estimate(plain, *MODEL, "--estimate.exact", "true")
    assert found["looked_at"] < 900
    assert found["tokens"]["total"] == pytest.approx(exact["tokens"]["total"], rel=0.25)


def test_duplicates_held_out_rows_and_weights_count(estimate, chats):
    first = chats("a.jsonl", *numbered(100), *numbered(50))
    second = chats("b.jsonl", *numbered(300, start=900))
    weights = ["--sources.a.weight", "1", "--sources.b.weight", "1"]
    found = estimate(first, second, *MODEL, *weights, "--split.fraction", "0.25")
    assert found["sources"]["a"]["duplicates"] == 50
    assert found["examples"]["total"] == pytest.approx(300, abs=2)
    assert found["sources"]["a"]["passes"] == pytest.approx(2.0, abs=0.02)


def test_a_budget_bounds_an_epoch(estimate, chats):
    rows = chats("rows.jsonl", *numbered(200))
    assert estimate(rows, *MODEL, "--select.rows", "50")["examples"]["total"] == 50
    assert estimate(rows, *MODEL, "--select.tokens", "500")["trained_tokens"]["total"] == 500


def test_rows_that_leave_are_not_counted(estimate, chats):
    rows = chats("rows.jsonl", *numbered(90), *[chat("only a question") for _ in range(3)], chat("a", " "))
    assert estimate(rows, *MODEL)["examples"]["total"] == 90


def test_a_person_reads_one_line(turnmill, chats):
    answer = turnmill("estimate", chats("rows.jsonl", *numbered(50)), *MODEL)
    assert "an epoch: 50 examples" in answer.out
    assert answer.out.rstrip().endswith("counted")
    assert answer.next_step.startswith("turnmill prepare")


def test_rows_that_differ_in_what_says_nothing_are_duplicates(estimate, prepare, chats):
    same = [chat(f"Question {n % 40}?", f"Answer {n % 40}.", id=f"row-{n}", seen=n) for n in range(60)]
    told = [chat("Question?", "Answer.", system=f"Be {n}.") for n in range(9)]
    rows = chats("rows.jsonl", *same, *told)
    found, made = estimate(rows, *MODEL, "--dialect", "sharegpt"), prepare(rows, *MODEL[2:], "--dialect", "sharegpt")
    assert found["sources"]["rows"]["duplicates"] == 20
    assert found["examples"]["total"] == made.report["examples"] == 49
    assert estimate(rows, *MODEL, "--dialect", "sharegpt", "--dedup.by", "[]")["examples"]["total"] == 69


def test_rows_that_begin_otherwise_are_told_apart(estimate, chats):
    """Rows of all sizes that an assistant begins are rejected: by size alone the error would be many times as large."""
    rows = drawn(4000)
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["messages"] = row["messages"][1:]
    found = estimate(chats("rows.jsonl", *rows), *MODEL, "--health.max_rejected", "1")
    exact = estimate(chats("rows.jsonl", *rows), *MODEL, "--health.max_rejected", "1", "--estimate.exact", "true")
    assert found["looked_at"] < 2800
    assert found["error"] <= 0.011
    assert abs(found["tokens"]["total"] - exact["tokens"]["total"]) <= 1.5 * found["tokens"]["error"]


@pytest.mark.parametrize(("mark", "end"), [(b"\xef\xbb\xbf", b"\r\n"), (b"", b"\n\n")])
def test_rows_are_found_again_in_any_file_of_lines(estimate, tmp_path, mark, end):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(mark + end.join(json.dumps(row).encode() for row in drawn(900)))
    found = estimate(path, *MODEL, "--estimate.precision", "0.1")
    exact = estimate(path, *MODEL, "--estimate.exact", "true")
    assert found["looked_at"] < 900
    assert exact["examples"]["total"] == pytest.approx(found["examples"]["total"], rel=0.1)
    assert found["tokens"]["total"] == pytest.approx(exact["tokens"]["total"], rel=0.2)

"""What `report.html` and `report.json` say beside the counts."""

import json

from chats import chat


def test_the_report_names_rows_that_left_parity_and_the_limit(turnmill, write, tmp_path):
    rows = [chat("q1", "a1", "q2", "a2"), {"messages": [{"role": "user", "content": "<b>only</b>"}]}]
    data = write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    answer = turnmill("prepare", data, "--model", "smollm2", "--output", tmp_path / "out")
    assert answer.code == 0, answer.err
    report = json.loads((tmp_path / "out/report.json").read_text())
    page = (tmp_path / "out/report.html").read_text()
    assert report["history"] == {"turns": 2, "as_prompted": 2, "parity": 1.0, "without_reasoning": 0}
    assert [(row["code"], row["place"]) for row in report["left_rows"]] == [("no-assistant-turn", "data.jsonl:2")]
    assert "&lt;b&gt;only" in page
    assert "<b>only" not in page
    assert "limit " in page


def test_a_dry_run_says_what_each_history_costs(turnmill, write, tmp_path):
    data = write("data.jsonl", json.dumps(chat("q1", "a1", "q2", "a2")))
    flags = ("--model", "smollm2", "--output", tmp_path / "out", "--dry-run", "--json")
    (cost,) = turnmill("prepare", data, *flags).json["history"].values()
    assert [cost[mode]["examples"] for mode in ("final", "auto", "per-turn")] == [1, 1, 2]

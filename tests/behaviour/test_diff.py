"""`turnmill diff`: every row followed from one prepared folder to another."""

from __future__ import annotations

import json

import pytest

from chats import chat, numbered
from published import prepared

TEMPLATE = """{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{%- endif %}"""
ROWS = [chat(*texts, id=f"r{number}") for number, texts in enumerate(numbered(24))]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """OUT of `ROWS`; read only."""
    return prepared(tmp_path_factory.mktemp("base"), ROWS)


@pytest.fixture
def pair(prepare, chats, turnmill, base, tmp_path):
    """Prepares records, the first ones where they are not `ROWS`, and gives the answer of `diff --json`."""

    def call(after: list, *flags: str, before: list = ROWS) -> dict:
        first, second = base, tmp_path / "out-b"
        if before is not ROWS:
            first = prepare(chats("a/rows.jsonl", *before), "--workers", "1", output="out-a").folder
        prepare(chats("b/rows.jsonl", *after), "--workers", "1", "--health.max_rejected", "1", *flags, output="out-b")
        return turnmill("diff", first, second, "--json").json

    return call


@pytest.fixture
def outs(base, tmp_path):
    """Of `ROWS`, and what `pair` prepared."""
    return base, tmp_path / "out-b"


def changed(found: dict) -> dict:
    return {name: count for name, count in found["rows"].items() if count and name != "same"}


def test_the_same_rows_are_the_same(pair, turnmill):
    found = pair(ROWS)
    assert (found["same"], changed(found), found["rows"]["same"]) == (True, {}, 24)
    assert found["versions"] == found["data"] == {}
    assert set(found["options"]) == {"sources.rows.data", "health.max_rejected"}


def test_the_order_of_rows_is_no_difference(pair):
    found = pair(ROWS[::-1])
    assert found["same"]
    assert list(found["data"]) == ["rows/rows.jsonl"]


def test_rows_are_followed_by_id_and_then_by_the_id_of_their_source(pair):
    other_text = chat("What is 3 plus 3?", "It is 7.", id="r3")
    renamed = {**ROWS[5], "id": "another"}
    found = pair([*ROWS[:3], other_text, ROWS[4], renamed, *ROWS[7:], chat("New?", "Yes.", id="new")])
    assert changed(found) == {"removed": 1, "added": 1, "text": 1}
    assert found["shown"]["text"][0]["difference"] == {"message": 1, "a": "'It is 6.'", "b": "'It is 7.'"}
    assert [row["source_id"] for row in found["shown"]["removed"]] == ["r6"]
    assert found["added_had"] == {"codes": {}, "not_read": 1}


def test_rows_without_an_id_of_their_source_are_removed_and_added(pair):
    found = pair([chat(*texts) for texts in numbered(6, 1)], before=[chat(*texts) for texts in numbered(6)])
    assert changed(found) == {"removed": 1, "added": 1}


def test_a_removed_row_is_found_among_those_that_left(pair):
    broken = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "id": "r2"}
    found = pair([*ROWS[:2], broken, *ROWS[3:23], ROWS[0]])
    assert found["removed_with"] == {"codes": {"user-after-user": 1, "duplicate": 1}, "not_read": 0}
    assert found["codes"] == {"duplicate": [0, 1], "user-after-user": [0, 1]}


def test_other_weights_are_other_labels(pair):
    three = chat("a", "b", "c", "d", id="three")
    half = json.loads(json.dumps(three))
    half["messages"][1]["weight"] = 0
    found = pair([*ROWS, half], before=[*ROWS, three])
    assert changed(found) == {"labels": 1}
    (row,) = found["shown"]["labels"]
    assert row["a"]["tokens"] == row["b"]["tokens"]
    assert row["a"]["trained_tokens"] > row["b"]["trained_tokens"]


def test_another_template_gives_the_same_conversations_other_tokens(pair, write):
    template = write("own.jinja", TEMPLATE)
    found = pair(ROWS, "--template", str(template))
    assert (found["rows"]["tokens"], found["rows"]["same"]) == (24, 0)
    assert found["options"]["model.template"] == [None, str(template)]
    assert "template" in found["versions"]


def test_held_out_rows_have_moved(pair):
    found = pair(ROWS, "--split.rows", "5")
    assert changed(found) == {"moved": 5}
    assert found["moved"] == {"train to eval": 5}
    assert found["b"]["eval"]["rows"] == 5
    assert not found["same"]


def test_sources_are_set_beside_each_other(pair):
    found = pair(ROWS[:12])
    own = found["sources"]["rows"]
    assert (own["a"]["rows"], own["b"]["rows"], own["removed"]) == (24, 12, 12)
    assert own["a"]["trained_tokens"] == found["a"]["train"]["trained_tokens"]


@pytest.mark.parametrize(("after", "flags", "code"), [(ROWS, ["--exit-code"], 0), (ROWS[1:], ["--exit-code"], 1),
                                                       (ROWS[1:], [], 0)])  # fmt: skip
def test_the_exit_code_says_whether_they_differ_where_it_is_asked(pair, turnmill, after, flags, code, outs):
    pair(after)
    assert turnmill("diff", *outs, *flags).code == code


def test_a_terminal_and_a_page_say_it(pair, turnmill, tmp_path, outs):
    pair([*ROWS[1:], chat("<b>?", "x", id="new")], "--fit.max_tokens", "64")
    done = turnmill("diff", *outs, "--html", tmp_path / "d.html", "--rows", "1")
    assert (done.code, done.next_step) == (0, f"turnmill census {outs[1]}")
    for text in ("removed", "fit.max_tokens", "Some of the rows"):
        assert text in done.out
        assert text in (tmp_path / "d.html").read_text()


def test_same_folders_are_told_in_a_line(pair, turnmill, outs):
    pair(ROWS)
    done = turnmill("diff", outs[0], outs[0])
    assert done.out == f"{outs[0]} and {outs[0]} hold the same 24 rows, made in the same way\n"


def test_a_folder_whose_run_was_not_kept_says_its_recipe(pair, turnmill, outs):
    pair(ROWS, "--fit.max_tokens", "64")
    (outs[1] / "run.json").unlink()
    found = turnmill("diff", *outs, "--json").json
    assert found["options"]["recipe.rows.max_tokens"][1] == 64


@pytest.mark.parametrize("flags", [("--html", ".")])
def test_a_page_is_not_written_over_a_folder(pair, turnmill, flags, outs):
    pair(ROWS)
    refused = turnmill("diff", *outs, *flags)
    assert (refused.code, "is a folder" in refused.err) == (2, True)


def test_what_is_not_prepared_is_refused(turnmill, tmp_path):
    refused = turnmill("diff", tmp_path, tmp_path)
    assert (refused.code, "is no prepared folder" in refused.err) == (2, True)

from __future__ import annotations

import gzip
import shlex
import subprocess
import sys

import pytest

CSV = 'prompt,response\n"What, then?",ok\nname one,two\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CSV, "looks like CSV: it begins with 'prompt,response'"),
        ('\ufeffprompt,response\n"a\nb",c\n', "looks like CSV"),
        ("prompt\tresponse\na\tb\n", "looks like tab-separated text"),
        ("prompt;response\na;b\n", "looks like CSV with semicolons"),
        ("Once upon\na time\nthere was\na mill\nthat turned\n", "looks like plain text"),
    ],
)
def test_a_file_that_is_no_json_is_one_error(turnmill, write, text, said):
    for dialect in ([], ["--dialect", "openai"]):
        answer = turnmill("check", write("t.csv", text), *dialect)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
        assert "expected JSON lines" in answer.err


def test_a_compressed_table_is_unpacked_on_the_way(turnmill, tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    assert f"<(gzip -dc {path}) > t.jsonl" in turnmill("check", path).next_step


def test_what_it_says_to_type_converts_it(turnmill, write, tmp_path):
    answer = turnmill("check", write("t.csv", CSV))
    command, _, target = answer.next_step.rpartition(" > ")
    words = [sys.executable, *shlex.split(command)[1:]]
    (tmp_path / target).write_text(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    found = turnmill("check", tmp_path / target, "--json").rows
    assert [row["turns"][0] for row in found] == [["user", "What, then?"], ["user", "name one"]]


@pytest.mark.parametrize(
    "text",
    [
        '{"messages": []}\na,b\nc,d\n',
        "{bad, line}\n{worse, line}\n",
        "one line, only\n",
        "a\nb\nc\n",
        "1,2\n",
    ],
)
def test_bad_lines_of_json_are_rows(turnmill, write, text):
    answer = turnmill("check", write("t.jsonl", text), "--json")
    assert answer.code != 2
    assert len(answer.rows) == len(text.splitlines())


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('[{"messages": [', "head -c 300 {}"),
        ('[{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, {',
         "turnmill check {} --read.keep_prefix true"),
    ],
)  # fmt: skip
def test_a_broken_array_is_not_to_be_explained(turnmill, write, text, advice):
    path = write("rows.json", text)
    answer = turnmill("check", path)
    assert (answer.code, answer.next_step) == (3, advice.format(path))


def test_explain_names_the_repairs_of_a_row(turnmill, write):
    path = write("rows.jsonl", '{"text": " a "}\n{"text": "b"}\n')
    call = ["explain", path, "all", "--model", "smollm2", "--dialect", "text", "--repairs", "strip-ends"]
    assert [row.get("repairs") for row in turnmill(*call, "--json").rows] == [["strip-ends"], None]
    assert turnmill(*call).out.count("mended: strip-ends") == 1

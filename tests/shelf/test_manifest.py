from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.errors import UsageError
from turnmill.shelf.manifest import checked_name, notes_of, parse_manifest

FILE = 'file = "rows.jsonl"\n'


def parse(text: str | bytes, directory: str = "facts"):
    return parse_manifest(text.encode() if isinstance(text, str) else text, directory)


def test_only_file_is_required():
    found = parse(FILE)
    assert (found.name, found.file, found.format, found.dialect) == ("facts", "rows.jsonl", "jsonl", None)


def test_every_key_is_read():
    found = parse(
        'name="n"\ndescription="d"\nformat="json"\nfile="a/b.json"\nversion="1"\ngenerator="g.py"\nlicence="l"\n'
        'dialect="sharegpt"\ncolumns={messages="talk"}\nroles={bot="assistant"}\nsplits={eval=0.1}'
    )
    assert (found.name, found.description, found.file, found.version) == ("n", "d", "a/b.json", "1")
    assert (found.generator, found.licence, found.dialect) == ("g.py", "l", "sharegpt")
    assert (found.columns, found.roles, found.splits) == (
        {"messages": "talk"}, {"bot": "assistant"}, {"eval": 0.1},
    )  # fmt: skip
    assert notes_of(found) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file = ", "not TOML"),
        ("[" * 20_000, "not TOML"),
        (b"file = '\xff.jsonl'", "not UTF-8: byte 8"),
        (b"#" * ((1 << 20) + 1), "expected at most 1,048,576"),
        ("", "names no data file"),
        ('File = "rows.jsonl"', "names no data file"),
        ("file = 3", "`file` is 3; expected a text"),
        ('file = ""', "ends in .jsonl"),
        ('file = "rows.json"', "ends in .jsonl"),
        ('file = "rows.JSONL"', "ends in .jsonl"),
        ('file = "/etc/rows.jsonl"', "relative path"),
        ('file = "../rows.jsonl"', "relative path"),
        ('file = "a/../rows.jsonl"', "relative path"),
        ('file = "..\\\\rows.jsonl"', "relative path"),
        ('file = "a\\u0000.jsonl"', "control characters"),
        (FILE + 'name = ""', "the name is ''"),
        (FILE + "version = 1", "`version` is 1"),
        (FILE + 'format = "csv"', "expected jsonl, json, parquet"),
        (FILE + 'format = "json"', "ends in .json"),
        (FILE + 'dialect = "opnai"', "Did you mean 'openai'"),
        (FILE + 'dialect = "mine.py:load"', "unknown dialect"),
        (FILE + "columns = {a = 'b'}", "expected a `dialect`"),
        (FILE + "dialect = 'auto'\ncolumns = {a = 1}", "`columns.a` is 1"),
        (FILE + "dialect = 'auto'\nroles = {a = 'boss'}", "gives 'boss'"),
        (FILE + "roles = 3", "expected a table"),
        (FILE + "splits = {test = 0.1}", "'test' = 0.1"),
        (FILE + "splits = {eval = 1.5}", "expected eval = a share below 1"),
        (FILE + "splits = {eval = true}", "expected eval"),
        (FILE + "splits = {eval = 0}", "expected eval"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(text, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        parse(text)


@pytest.mark.parametrize("name", ["a", "9", "A.b_c-d", "world-knowledge-base", "a" * 122, "a."])
def test_names_that_a_dataset_can_have(name):
    assert parse(f'{FILE}name = "{name}"').name == checked_name(name) == name


@pytest.mark.parametrize("name", ["", ".a", "_a", "-a", "a..b", "a/b", "a b", "ä", "a\n", "٣", "a" * 123, "..", "a\0"])
def test_names_that_no_dataset_can_have(name):
    with pytest.raises(UsageError, match="expected 1 to 122"):
        parse(FILE, name)


@pytest.mark.parametrize(("file", "read"), [("./rows.jsonl", "rows.jsonl"), ("a//b.jsonl", "a/b.jsonl")])
def test_paths_are_plain(file, read):
    assert parse(f'file = "{file}"').file == read


def test_a_byte_order_mark_and_windows_line_ends_are_read():
    assert parse(b'\xef\xbb\xbffile = "rows.jsonl"\r\nversion = "2"\r\n').version == "2"


def test_other_formats_are_told_apart_by_themselves():
    assert parse('file = "rows.parquet"\nformat = "parquet"').dialect == "auto"


def test_keys_that_nobody_reads_are_noted():
    assert notes_of(parse(FILE + "license = 'x'\nzzz = 1")) == [
        "nothing reads the key 'license'; did you mean 'licence'?",
        "nothing reads the key 'zzz'",
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_an_error(content):
    try:
        found = parse(content)
    except UsageError:
        return
    assert ".." not in found.file.split("/")


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b.jsonl", "c\\", "~"]), min_size=1, max_size=6))
def test_no_path_escapes(parts):
    try:
        found = parse(f"file = '{'/'.join(parts)}'")
    except UsageError:
        return
    assert not found.file.startswith("/")
    assert ".." not in found.file.split("/")

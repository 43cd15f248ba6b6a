"""Files that are made to fill memory, a disk or a stack."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard

from chats import chat
from hostile_runs import run
from turnmill.files import compressed
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

MIB = 1 << 20
GOOD = json.dumps(chat("q", "a")).encode() + b"\n"
OPENED = b'{"messages": "'


def outcomes(path: Path, **options) -> list[str | None]:
    """The code of each record, None where it is good."""
    read = Read(**options)
    found = [record for shard in plan("s", [str(path)], read).shards for record in records(shard, read)]
    return [record.fault.code if record.fault else None for record in found]


PACKS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress, "none": bytes}


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("filler", [b"a", b" ", b"[", b'{"a":'], ids=["text", "blanks", "brackets", "objects"])
def test_a_record_that_goes_on_and_on_is_too_large_and_the_next_is_read(tmp_path, pack, filler):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(PACKS[pack](GOOD + OPENED + filler * MIB + b"\n" + GOOD))
    assert outcomes(path, max_record_bytes=MIB) == [None, "record-too-large", None]


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_what_unpacks_too_far_is_one_fault_that_ends_the_file(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(compressed, "FREE_UNPACKED_BYTES", 8 * MIB)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(PACKS[pack](GOOD + b"\n" * 32 * MIB + GOOD))
    assert outcomes(path) == [None, "unpacks-too-far"]


def test_what_is_dense_and_small_is_read(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(zstandard.compress(GOOD * 20_000))
    assert outcomes(path) == [None] * 20_000


def test_line_feeds_alone_pass_quickly_and_are_counted(tmp_path, turnmill):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n" * 4 * MIB + GOOD)
    assert turnmill("check", path, "--json").rows[0]["source_line"] == 4 * MIB + 1


DEEP = 100_000
NESTED = {
    "arrays in a field": (b'{"messages": ' + b"[" * DEEP + b"]" * DEEP + b"}\n" + GOOD, ["invalid-json", None]),
    "objects in a field": (b'{"a": ' * DEEP + b"1" + b"}" * DEEP + b"\n" + GOOD, ["invalid-json", None]),
    "arrays alone": (b"[" * DEEP + b"]" * DEEP, ["invalid-json"]),
    "objects alone": (b'{"a": ' * DEEP + b"1" + b"}" * DEEP, ["invalid-json"]),
    "arrays never closed": (b"[" * DEEP, ["broken-array"]),
}


@pytest.mark.parametrize("what", NESTED)
def test_nesting_without_end_is_a_fault(tmp_path, what):
    content, codes = NESTED[what]
    (tmp_path / "rows.jsonl").write_bytes(content)
    assert outcomes(tmp_path / "rows.jsonl") == codes


def calling(arguments: str) -> dict:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    return {"messages": messages, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}


def test_nesting_without_end_in_arguments_is_a_fault(turnmill, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(calling('{"a":' * DEEP + "1" + "}" * DEEP)))
    answer = turnmill("check", tmp_path / "rows.jsonl", "--json")
    assert [row["code"] for row in answer.rows] == ["tool-arguments-not-json"]


def turns(count: int) -> bytes:
    said = [f"turn {number}" for number in range(count)]
    return json.dumps(chat(*said)).encode() + b"\n"


def test_a_conversation_of_many_turns_is_checked(turnmill, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(turns(20_000))
    (row,) = turnmill("check", tmp_path / "rows.jsonl", "--json").rows
    assert (row["accepted"], len(row["turns"])) == (True, 20_000)


def test_a_conversation_of_many_turns_is_prepared(prepare_rows):
    assert prepare_rows(turns(2_000) + turns(4)).json["rows"]["accepted"] == 2


@pytest.mark.slow
def test_a_hundred_thousand_turns_take_time_as_their_number_does(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(turns(100_000) + GOOD)
    output = ("--model", "smollm2", "--output", tmp_path / "out", "--fit.overflow", "continue", "--workers", "1")
    ran = run("prepare", tmp_path / "rows.jsonl", *output, timeout_s=120)
    assert ran.code == 0, ran.err
    assert ran.peak_mib < 1500


def write_packed(path: Path, chunks: Iterable[bytes], pack: str) -> None:
    packer = zlib.compressobj(6, wbits=31) if pack == "gzip" else zstandard.ZstdCompressor().compressobj()
    with path.open("wb") as file:
        for chunk in chunks:
            file.write(packer.compress(chunk) if pack != "none" else chunk)
        file.write(packer.flush() if pack != "none" else b"")


def long_line(mib: int) -> Iterable[bytes]:
    """A line that packs well, but not as a bomb does: a little of each piece is random."""
    draw = random.Random(mib)
    yield GOOD + OPENED
    for _ in range(mib):
        noise = draw.randbytes(8192).hex().encode()
        yield noise + b"a" * (MIB - len(noise))
    yield b'"}\n' + GOOD * 30


@pytest.mark.slow
@pytest.mark.parametrize("pack", ["none", "gzip", "zstd"])
def test_a_line_of_a_gigabyte_is_too_large_and_takes_no_memory(tmp_path, pack):
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    write_packed(small, long_line(100), pack)
    write_packed(large, long_line(1023), pack)
    before, ran = run("check", small), run("check", large)
    assert ran.code == before.code == 0
    assert "1     record-too-large" in ran.out
    assert ran.peak_mib < before.peak_mib + 30 < 500


def blank_lines(unit: bytes, mib: int) -> Iterable[bytes]:
    yield GOOD
    for _ in range(mib):
        yield unit * (MIB // len(unit))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b"\n", b" " * 1023 + b"\n"], ids=["line feeds", "blanks"])
def test_a_bomb_ends_the_run_in_time_and_in_little_memory(tmp_path, unit):
    write_packed(tmp_path / "rows.jsonl.gz", blank_lines(unit, 1024), "gzip")
    ran = run("check", tmp_path / "rows.jsonl.gz", timeout_s=60)
    assert ran.code == 3
    assert "unpacks-too-far" in ran.out + ran.err
    assert ran.peak_mib < 400

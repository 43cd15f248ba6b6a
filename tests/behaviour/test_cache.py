"""`turnmill cache`: what is kept, why it was made, whether it is whole, and what may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from chats import numbered


def steps(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")


@pytest.fixture
def out(prepare, chats):
    return prepare(chats("rows.jsonl", *numbered(30))).folder


@pytest.fixture
def cache(out) -> Path:
    return out.with_name(".out.steps")


def test_a_run_says_what_it_made_anew_and_why(turnmill, chats, out, tmp_path):
    arguments = ["prepare", tmp_path / "rows.jsonl", "--model", "smollm2", "--output", out]
    again = turnmill(*arguments)
    assert "made anew" not in again.err
    changed = turnmill(*arguments, "--max-tokens", "64")
    assert "made anew: tokenize (fit.max_tokens: 4096 → 64)" in changed.err
    assert "made anew: check" not in changed.err


def test_explain_says_the_same_of_out(turnmill, out, tmp_path):
    assert "made once" in turnmill("cache", "explain", out).out
    turnmill("prepare", tmp_path / "rows.jsonl", "--model", "smollm2", "--output", out, "--loss.turns", "last")
    found = {step["name"]: step for step in turnmill("cache", "explain", out, "--json").json}
    assert found["tokenize"]["changed"] == ["loss.turns: 'all' → 'last'"]
    assert found["pack"]["changed"] == ["its inputs"]
    assert found["check"]["changed"] is None


def test_list_names_every_step(turnmill, out, cache):
    found = turnmill("cache", "list", out, "--json").json
    assert sorted(entry["step"] for entry in found) == steps(cache)
    assert all(entry["bytes"] > 0 for entry in found)
    assert "tokenize-" in turnmill("cache", "list", cache).out


def test_verify_finds_a_flipped_byte(turnmill, out, cache):
    assert turnmill("cache", "verify", out).out == f"{len(steps(cache))} steps are whole\n"
    victim = next(path for path in cache.rglob("train.arrow") if path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.chmod(0o644)
    victim.write_bytes(content)
    answer = turnmill("cache", "verify", out)
    assert (answer.code, "train.arrow (other content)" in answer.err) == (4, True)
    assert answer.next_step.startswith("rm -r ")
    assert len(turnmill("cache", "verify", out, "--json").json["damaged"]) == 1


def test_prune_keeps_what_out_was_made_of(turnmill, out, cache, tmp_path):
    turnmill("prepare", tmp_path / "rows.jsonl", "--model", "smollm2", "--output", out, "--max-tokens", "64")
    both = steps(cache)
    would = turnmill("cache", "prune", out, "--dry-run")
    assert "2 steps would be removed" in would.out
    assert steps(cache) == both
    assert len(turnmill("cache", "prune", out, "--json").json["removed"]) == 2
    again = turnmill("prepare", tmp_path / "rows.jsonl", "--model", "smollm2", "--output", out, "--max-tokens", "64")
    assert "made anew" not in again.err
    assert len(steps(cache)) == len(both) - 2


def test_prune_of_a_cache_alone_takes_all_but_out_stays_whole(turnmill, out, cache):
    assert turnmill("cache", "prune", cache, "--older-than", "1").out == "0 steps are removed\n"
    turnmill("cache", "prune", cache)
    assert steps(cache) == []
    assert turnmill("census", out).code == 0


@pytest.mark.parametrize("verb", ["list", "verify", "prune"])
def test_a_cache_that_is_not_there_is_named(turnmill, tmp_path, verb):
    answer = turnmill("cache", verb, tmp_path / "none")
    assert (answer.code, "no cache at" in answer.err) == (2, True)


def test_what_is_kept_must_have_been_prepared(turnmill, out, tmp_path):
    answer = turnmill("cache", "prune", out, "--keep", tmp_path)
    assert answer.code == 2

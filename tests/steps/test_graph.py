"""Graphs of steps: order, pruning, failure, and one build of each step however many runners there are."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec
import pytest

from turnmill.errors import HealthError, StaleError, UsageError
from turnmill.steps.build import Finished
from turnmill.steps.graph import Node, check_outcomes, in_order, mermaid, run
from turnmill.steps.manifest import read_artifact
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step


class Sum(msgspec.Struct, frozen=True):
    """What a node of these tests makes."""

    total: int
    files: tuple[str, ...] = ()


RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def write(name: str, shard: list[str], folder: Path) -> ShardResult:
    RAN[name] += 1
    total = 1 + sum(int(Path(path).read_text()) for path in shard)
    (folder / "total.txt").write_text(str(total))
    return ShardResult({"total": total})


def node(name: str, *needs: Node, run_shard=None, version: int = 1) -> Node:
    step = Step(name, version, {}, tuple(need.step.fingerprint for need in needs))
    return Node(
        name,
        step,
        lambda folders: [[str(folder / "shards/00000/total.txt") for folder in folders]],
        run_shard or partial(write, name),
        needs,
        lambda draft, results: Finished({}, Sum(results[0].counters["total"])),
    )


def broken(shard: list[str], folder: Path) -> ShardResult:
    raise HealthError("too many rows are broken", next_step="look")


def gives_nothing(shard: list[str], folder: Path) -> ShardResult:
    return None  # type: ignore[return-value]  # what the test is about


@pytest.fixture
def diamond() -> dict[str, Node]:
    top = node("top")
    left, right = node("left", top), node("right", top)
    return {"top": top, "left": left, "right": right, "end": node("end", left, right)}


def states(outcomes) -> dict[str, str]:
    return {outcome.node.name: outcome.state for outcome in outcomes}


@pytest.mark.parametrize("at_once", [1, 4])
def test_every_node_runs_once_behind_what_it_needs(diamond, tmp_path, at_once):
    outcomes = run([diamond["end"], diamond["left"]], tmp_path, max_concurrent=at_once)
    assert states(outcomes) == dict.fromkeys(("top", "left", "right", "end"), "made")
    assert set(RAN.values()) == {1}
    artifact = read_artifact(diamond["end"].folder(tmp_path), Sum)
    assert (artifact.result, artifact.manifest.counters) == (Sum(5), {"total": 5})


def test_what_is_built_prunes_what_only_it_needs(diamond, tmp_path):
    run([diamond["left"]], tmp_path)
    RAN.clear()
    assert states(run([diamond["left"]], tmp_path)) == {"left": "built"}
    assert states(run([diamond["end"]], tmp_path)) == {
        "top": "built", "left": "built", "right": "made", "end": "made",
    }  # fmt: skip
    assert RAN == {"right": 1, "end": 1}


def test_a_changed_step_is_made_anew_with_what_hangs_on_it_alone(diamond, tmp_path):
    run([diamond["end"]], tmp_path)
    changed = node("left", diamond["top"], version=2)
    again = run([node("end", changed, diamond["right"])], tmp_path)
    assert states(again) == {"top": "built", "left": "made", "right": "built", "end": "made"}


def test_a_dry_run_makes_nothing(diamond, tmp_path):
    run([diamond["top"]], tmp_path)
    found = run([diamond["end"]], tmp_path, dry_run=True)
    assert states(found) == {"top": "built", "left": "to-make", "right": "to-make", "end": "to-make"}
    assert RAN == {"top": 1}


def test_a_failure_stops_those_that_need_it_and_no_other(tmp_path):
    top = node("top")
    failing = node("failing", top, run_shard=broken)
    behind = node("behind", failing)
    far = node("far", behind)
    alone = node("alone", top)
    told: list[str] = []
    outcomes = run([far, alone], tmp_path, max_concurrent=1, tell=lambda outcome: told.append(outcome.node.name))
    assert states(outcomes) == {
        "top": "made", "failing": "failed", "behind": "not-run", "far": "not-run", "alone": "made",
    }  # fmt: skip
    assert {outcome.because for outcome in outcomes} == {None, "failing"}
    assert sorted(told) == sorted(states(outcomes))
    with pytest.raises(HealthError, match="too many rows"):
        check_outcomes(outcomes)


def test_what_was_finished_before_a_failure_stays(tmp_path):
    top = node("top")
    run([node("failing", top, run_shard=broken)], tmp_path)
    assert states(run([node("failing", top)], tmp_path)) == {"top": "built", "failing": "made"}


def test_a_step_that_returns_nothing_is_a_bug_that_is_told(tmp_path):
    (outcome,) = run([node("empty", run_shard=gives_nothing)], tmp_path)
    assert outcome.state == "failed"
    with pytest.raises(TypeError, match=r"gives_nothing .* gave NoneType; expected a ShardResult"):
        check_outcomes([outcome])
    assert not (tmp_path / outcome.node.step.folder_name).exists()


def test_two_runners_build_each_step_once(diamond, tmp_path):
    found: list[dict[str, str]] = []
    runners = [threading.Thread(target=lambda: found.append(states(run([diamond["end"]], tmp_path)))) for _ in range(4)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert set(RAN.values()) == {1}
    assert all(set(one.values()) <= {"made", "built"} for one in found)
    assert len(found) == 4


def test_a_node_must_hold_what_it_needs_in_its_recipe():
    top = node("top")
    with pytest.raises(ValueError, match="needs top, which are not among its recipe's inputs"):
        Node("loose", Step("loose", 1, {}, ()), lambda folders: [], write, (top,))


def test_no_step_at_a_time_is_refused(diamond, tmp_path):
    with pytest.raises(UsageError, match="max_concurrent is 0"):
        run([diamond["top"]], tmp_path, max_concurrent=0)


def test_an_artifact_of_another_kind_is_refused(diamond, tmp_path):
    class Other(msgspec.Struct):
        rows: int

    run([diamond["top"]], tmp_path)
    with pytest.raises(StaleError, match="whose result is no Other"):
        read_artifact(diamond["top"].folder(tmp_path), Other)
    with pytest.raises(UsageError):
        read_artifact(tmp_path / "nowhere", Sum)


def test_a_deep_graph_needs_no_deep_stack(tmp_path):
    deepest = node("step")
    for _ in range(3000):
        deepest = node("step", deepest)
    assert len(in_order([deepest])) == 3001
    assert states(run([deepest], tmp_path, dry_run=True)) == {"step": "to-make"}


def test_the_graph_is_drawn(diamond):
    drawn = mermaid([diamond["end"]], lambda one: "built" if one.name == "top" else "")
    assert drawn.count("-->") == 4
    assert '["top<br/>' in drawn
    assert "<br/>built" in drawn

"""Finished steps in object stores: S3 as moto plays it, and fsspec's memory."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import fsspec
import msgspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from chats import numbered
from published import Published
from turnmill.errors import HealthError, StaleError, UsageError
from turnmill.files.inventory import verify
from turnmill.steps.build import Engine, Finished, build
from turnmill.steps.graph import Node, run
from turnmill.steps.manifest import manifest_of
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.steps.store import StepStore, place_of

STEP = Step("squares", 1, {"power": 2}, ("numbers abc",))


class Total(msgspec.Struct, frozen=True):
    total: int


def square(shard: int, folder: Path) -> ShardResult:
    (folder / "square.txt").write_text(str(shard**2))
    return ShardResult({"made": 1})


def total(draft: Path, results) -> Finished:
    return Finished({}, Total(len(results)))


@pytest.fixture(params=["s3", "memory"])
def url(request) -> str:
    if request.param == "s3":
        request.getfixturevalue("s3")
        return "s3://bucket/steps-of-a-team"
    fsspec.filesystem("memory").store.clear()
    return "memory://steps-of-a-team"


@pytest.fixture
def store(url, tmp_path) -> StepStore:
    return StepStore(url, tmp_path / "first")


def objects(url: str) -> list[str]:
    system, path = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    return sorted(found.partition("steps-of-a-team/")[2] for found in system.find(path))


def made(store: StepStore, run_shard=square, shards=range(4), step: Step = STEP) -> Path:
    return build(step, store.folder, list(shards), run_shard, finish=total, engine=Engine(store=store))


class ClosedAfter(MemoryFileSystem):
    """A store that takes so many writes and then no more, as one that is full or may only be read."""

    protocol = "closing"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    writes_left = 0
    says = OSError(errno.ENOSPC, "No space left on the store")

    def _take(self) -> None:
        if not type(self).writes_left:
            raise type(self).says
        type(self).writes_left -= 1

    def put_file(self, *given, **named):
        self._take()
        return super().put_file(*given, **named)

    def pipe_file(self, *given, **named):
        self._take()
        return super().pipe_file(*given, **named)


@pytest.mark.parametrize("writes", [0, 1, 5, 11])
@pytest.mark.parametrize(
    "says", [OSError(errno.ENOSPC, "The bucket is full"), PermissionError("AccessDenied: read only")]
)
def test_a_store_that_takes_no_more_is_named_and_what_it_took_counts(says, writes, tmp_path):
    fsspec.register_implementation("closing", ClosedAfter, clobber=True)
    ClosedAfter.store.clear()
    ClosedAfter.says, ClosedAfter.writes_left = says, writes
    store = StepStore("closing://steps-of-a-team", tmp_path / "first")
    with pytest.raises(UsageError, match=r"closing://steps-of-a-team/.*(is full|read only)"):
        made(store)
    assert not store.has_step(STEP.folder_name)
    ClosedAfter.writes_left = 1000
    found = made(elsewhere(store, tmp_path))
    shutil.rmtree(store.folder, ignore_errors=True)
    assert verify(found) == verify(made(store, run_shard=never))


def elsewhere(store: StepStore, tmp_path: Path) -> StepStore:
    """The same store, of a machine that has nothing."""
    return StepStore(store.url, tmp_path / "second")


def never(shard: int, folder: Path) -> ShardResult:
    raise AssertionError(f"shard {shard} was run again")


def test_a_step_that_another_machine_made_is_fetched(store, tmp_path):
    folder = made(store)
    found = made(elsewhere(store, tmp_path), run_shard=never)
    assert found == tmp_path / "second" / STEP.folder_name
    assert verify(found) == verify(folder)
    assert (found / "shards/00003/square.txt").read_text() == "9"


def test_a_file_counts_once_however_often_it_is_named(store, url):
    made(store)
    made(store, step=msgspec.structs.replace(STEP, params={"power": 3}))
    names = objects(url)
    assert sum(name.startswith("steps/") for name in names) == 2
    assert sum(name.startswith("shards/") for name in names) == 8
    listed = [one.sha256 for one in manifest_of(store.folder / STEP.folder_name).files]
    assert sum(name.startswith("objects/") for name in names) == len(set(listed)) < len(listed) * 2


def test_finished_shards_of_a_dead_machine_are_not_run_again(store, tmp_path):
    def dies(shard: int, folder: Path) -> ShardResult:
        if shard == 3:
            raise KeyboardInterrupt
        return square(shard, folder)

    def only_the_last(shard: int, folder: Path) -> ShardResult:
        assert shard == 3
        return square(shard, folder)

    with pytest.raises(KeyboardInterrupt):
        made(store, run_shard=dies)
    found = made(elsewhere(store, tmp_path), run_shard=only_the_last)
    shutil.rmtree(store.folder)
    assert verify(found) == verify(made(store, run_shard=never))


def test_what_has_no_record_does_not_count(store, url, tmp_path):
    """A crash between the objects and their record."""
    import fsspec

    made(store)
    system, path = fsspec.core.url_to_fs(url)
    for name in (f"steps/{STEP.folder_name}.json", f"shards/{STEP.folder_name}/00001.json"):
        system.rm_file(f"{path}/{name}")
    ran: list[int] = []

    def again(shard: int, folder: Path) -> ShardResult:
        ran.append(shard)
        return square(shard, folder)

    made(elsewhere(store, tmp_path), run_shard=again)
    assert ran == [1]


def test_an_object_that_was_changed_is_found(store, url, tmp_path):
    import fsspec

    made(store)
    system, path = fsspec.core.url_to_fs(url)
    first = next(name for name in objects(url) if name.startswith("objects/"))
    system.pipe_file(f"{path}/{first}", b"other")
    with pytest.raises(StaleError, match=r"holds other bytes \(sha256 "):
        made(elsewhere(store, tmp_path), run_shard=never)
    assert not list((tmp_path / "second").glob("[!.]*"))
    system.rm_file(f"{path}/{first}")
    with pytest.raises(StaleError, match="is gone, and a record names it"):
        made(elsewhere(store, tmp_path), run_shard=never)


def test_what_was_not_healthy_is_not_published(store, url):
    def sick(draft: Path, results) -> Finished:
        raise HealthError("too many are lost")

    with pytest.raises(HealthError):
        build(STEP, store.folder, [1], square, finish=sick, engine=Engine(store=store))
    assert not any(name.startswith("steps/") for name in objects(url))


def read_numbers(shard: list[str], folder: Path) -> ShardResult:
    (folder / "sum.txt").write_text(str(sum(int(Path(path).read_text()) for path in shard)))
    return ShardResult()


def graph() -> Node:
    first = Node("squares", STEP, lambda _: [1, 2, 3], square, finish=total)
    step = Step("sum", 1, {}, (STEP.fingerprint,))
    paths = "shards/{:05d}/square.txt".format
    return Node("sum", step, lambda folders: [[str(folders[0] / paths(n)) for n in range(3)]], read_numbers, (first,))


def test_a_graph_goes_on_where_another_machine_stopped(store, tmp_path):
    node = graph()
    run([node.needs[0]], store.folder, engine=Engine(store=store))
    second = elsewhere(store, tmp_path)
    states = [one.state for one in run([node], second.folder, engine=Engine(store=second))]
    assert states == ["built", "made"]
    assert (node.folder(second.folder) / "shards/00000/sum.txt").read_text() == "14"


def test_inputs_that_are_nowhere_are_named(store, tmp_path):
    with pytest.raises(UsageError, match="is not on this machine, nor in"):
        store.fetch_inputs([str(store.folder / "gone-0123" / "file")])


@pytest.fixture
def local(url, tmp_path) -> Iterator[Path]:
    """Where this machine keeps what it fetched of the store: empty before and after."""
    folder = place_of(url, tmp_path).folder
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_prepare_takes_its_steps_from_a_store(turnmill, chats, url, local, tmp_path):
    data = chats("rows.jsonl", *numbered(20))

    def prepared(output: str, *options: str) -> dict[str, str]:
        arguments = ["prepare", data, "--model", "smollm2", "--workers", "1", "--output", tmp_path / output, *options]
        assert (done := turnmill(*arguments)).code == 0, done.err
        return Published(tmp_path / output).sha256

    alone = prepared("alone")
    assert prepared("stored", "--cache", url) == alone
    shutil.rmtree(local)
    before = objects(url)
    assert prepared("fetched", "--cache", url) == alone
    assert objects(url) == before


def test_a_store_that_is_not_there_is_an_error(turnmill, chats, s3, tmp_path):
    data = chats("rows.jsonl", *numbered(20))
    done = turnmill("prepare", data, "--model", "smollm2", "--output", tmp_path / "out", "--cache", "s3://nowhere/x")
    assert (done.code, (tmp_path / "out").exists()) == (2, False)
    assert "cannot open s3://nowhere/x" in done.err
    shutil.rmtree(place_of("s3://nowhere/x", tmp_path).folder, ignore_errors=True)

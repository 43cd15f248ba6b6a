import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from turnmill.errors import HealthError, StaleError, UsageError
from turnmill.executors.inline import inline
from turnmill.files.inventory import verify
from turnmill.steps.build import Engine, build
from turnmill.steps.manifest import manifest_of
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step

SCRIPT = Path(__file__).with_name("squares.py")
STEP = Step("squares", 1, {"power": 2}, ("numbers abc",))
SHARDS = list(range(6))


def square(shard: int, folder: Path) -> ShardResult:
    (folder / "square.txt").write_text(str(shard**2))
    return ShardResult({"squares/made": 1, "squares/sum": shard**2}, extra=[shard])


def total(draft: Path, results) -> dict:
    (draft / "total.txt").write_text(str(sum(result.counters["squares/sum"] for result in results)))
    return {"squares/shards": [result.extra[0] for result in results]}


def made(cache: Path, run_shard=square, finish=total, step: Step = STEP, **engine) -> Path:
    return build(step, cache, SHARDS, run_shard, finish=finish, engine=Engine(**engine))


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def squares(*arguments: object, **options) -> subprocess.Popen:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, bytes]:
    return content(made(tmp_path / "expected"))


def test_the_folder_holds_shards_whole_files_and_manifest(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert folder == tmp_path / STEP.folder_name
    assert (folder / "shards/00003/square.txt").read_text() == "9"
    assert (folder / "total.txt").read_text() == "55"
    manifest = manifest_of(folder)
    assert manifest.step == STEP
    assert manifest.counters == {"squares/made": 6, "squares/sum": 55, "squares/shards": SHARDS}
    assert len(manifest.files) == 13
    assert verify(folder)
    assert os.listdir(tmp_path) == [STEP.folder_name]


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert made(tmp_path, run_shard=None, finish=None) == folder


def test_a_changed_recipe_is_a_new_folder(tmp_path: Path) -> None:
    other = msgspec.structs.replace(STEP, params={"power": 3})
    assert made(tmp_path) != made(tmp_path, step=other)
    assert len(os.listdir(tmp_path)) == 2


def test_a_shard_that_raises_leaves_no_folder_and_the_next_run_goes_on(tmp_path: Path, expected) -> None:
    ran: list[int] = []

    def breaks(at: int | None, shard: int, folder: Path) -> ShardResult:
        ran.append(shard)
        (folder / "half.txt").write_text("half")
        if shard == at:
            raise RuntimeError("a bug")
        (folder / "half.txt").unlink()
        return square(shard, folder)

    with pytest.raises(RuntimeError, match="a bug"):
        made(tmp_path / "cache", partial(breaks, 3))
    assert not (tmp_path / "cache" / STEP.folder_name).exists()
    assert content(made(tmp_path / "cache", partial(breaks, None))) == expected
    assert ran == [0, 1, 2, 3, 3, 4, 5]


def test_a_finish_that_refuses_publishes_nothing_and_keeps_the_shards(tmp_path: Path, expected) -> None:
    def refuses(draft: Path, results) -> dict:
        (draft / "left.txt").write_text("of a run that failed")
        raise HealthError("too many rows were rejected")

    with pytest.raises(HealthError):
        made(tmp_path / "cache", finish=refuses)
    assert not (tmp_path / "cache" / STEP.folder_name).exists()
    assert content(made(tmp_path / "cache", run_shard=None)) == expected


def test_a_killed_run_is_taken_up_where_it_was(tmp_path: Path, expected) -> None:
    cache = tmp_path / "cache"
    run = squares(cache, "inline", 4)
    assert run.stdout.readline() == "waiting in 4\n"
    run.send_signal(signal.SIGKILL)
    run.communicate()
    finished = cache / f".{STEP.folder_name}.draft" / "shards"
    assert sorted(path.name for path in finished.iterdir() if not path.name.startswith(".")) == [
        f"{n:05d}" for n in range(4)
    ]
    assert content(made(cache)) == expected


def test_two_runs_at_once_build_once(tmp_path: Path, expected) -> None:
    cache = tmp_path / "cache"
    first = squares(cache, "inline", 2)
    assert first.stdout.readline() == "waiting in 2\n"
    second = squares(cache, "inline", 5)
    first.communicate()
    assert second.communicate()[0] == ""
    assert (first.returncode, second.returncode) == (0, 0)
    assert content(cache / STEP.folder_name) == expected


def test_any_executor_writes_the_same_bytes(tmp_path: Path, expected) -> None:
    run = squares(tmp_path / "cache", "local")
    run.communicate()
    assert run.returncode == 0
    assert content(tmp_path / "cache" / STEP.folder_name) == expected


def test_progress_is_told_shard_by_shard(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    made(tmp_path, executor=inline, progress=lambda *news: told.append(news))
    assert told == [("squares", done, 6) for done in range(7)]


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda folder: (folder / "total.txt").unlink(), "total.txt .missing."),
        (lambda folder: (folder / "total.txt").write_text("55555"), "total.txt .5 bytes, expected 2."),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "not written by turnmill"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "damaged"),
    ],
)
def test_a_spoiled_folder_is_refused(tmp_path: Path, spoil, what: str) -> None:
    spoil(made(tmp_path))
    with pytest.raises(StaleError, match=what):
        made(tmp_path)


def test_a_folder_of_another_step_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path)
    other = msgspec.structs.replace(STEP, version=2)
    folder.rename(tmp_path / other.folder_name)
    with pytest.raises(StaleError, match="was made by step"):
        made(tmp_path, step=other)


def test_a_full_disk_is_an_error_that_says_where(tmp_path: Path) -> None:
    def writes(shard: int, folder: Path) -> ShardResult:
        with open("/dev/full", "w") as file:
            file.write("x")
        return ShardResult()

    with pytest.raises(UsageError, match="No space left") as full:
        made(tmp_path, writes)
    assert str(tmp_path) in full.value.message
    assert full.value.next_step.startswith("df -h /")

"""Prepared data streamed: every row once, in order, over ranks and workers, from wherever it stopped."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from chats import chat, numbered
from turnmill.errors import StaleError, UsageError
from turnmill.files.prepared import PreparedData
from turnmill.stream.collate import collate_packed
from turnmill.stream.prepared_stream import PreparedStream
from turnmill.stream.torch_stream import Loader

MANY_WORKERS = pytest.mark.filterwarnings("ignore:This DataLoader will create")
"""More than this machine has cores: the order is what is looked at."""


@pytest.fixture
def folder(prepare, chats):
    rows = [chat(f"Number {n}?", "word " * (1 + n % 17)) for n in range(61)]
    return prepare(chats("rows.jsonl", *rows), "--max-tokens", "64").folder


@pytest.fixture
def curriculum(prepare, chats):
    rows = [chat(f"Number {n}?", " ".join(f"w{n * k % 37}" for k in range(1 + n % 17))) for n in range(61)]
    flags = ["--score.scorer", "ngram", "--select.strategy", "curriculum", "--select.max_perplexity", "0"]
    return prepare(chats("rows.jsonl", *rows), "--max-tokens", "96", *flags).folder


def seen(batches) -> list[str]:
    return [row_id for batch in batches for one in batch for row_id in one["row_ids"]]


def planned(folder, epoch: int = 0) -> list[str]:
    prepared = PreparedData(folder)
    return [prepared.examples().row(number)["row_id"] for pack in prepared.plan("train", epoch) for number in pack]


def tensors(loader) -> list[list[int]]:
    return [batch["input_ids"].flatten().tolist() for batch in loader]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_all_ranks_together_see_every_row_once(folder, ranks, packed, batch_size):
    streams = [PreparedStream(folder, batch_size, packed=packed, rank=rank, ranks=ranks) for rank in range(ranks)]
    batches = [list(stream) for stream in streams]
    assert len({len(one) for one in batches}) == 1
    assert len(batches[0]) == len(PreparedStream(folder, batch_size, packed=packed, ranks=ranks))
    rows = Counter(row for one in batches for row in seen(one))
    assert rows == Counter(example.row_id for example in PreparedData(folder))


def test_an_epoch_has_another_order_than_the_last(folder):
    stream = PreparedStream(folder, 2)
    first, second = seen(stream), seen(stream)
    assert first == planned(folder, 0)
    assert second == planned(folder, 1)
    assert first != second
    assert sorted(first) == sorted(second)


@MANY_WORKERS
def test_a_curriculum_survives_two_ranks_of_four_workers(curriculum):
    expected = planned(curriculum)
    collate = list
    ranks = [list(Loader(PreparedStream(curriculum, 2, rank=rank, ranks=2), collate, workers=4)) for rank in range(2)]
    in_steps = [batch for step in zip(*ranks, strict=True) for batch in step]
    assert seen(in_steps) == expected


@MANY_WORKERS
def test_workers_change_nothing(folder):
    alone = tensors(Loader(PreparedStream(folder, 3)))
    assert tensors(Loader(PreparedStream(folder, 3), workers=3)) == alone
    assert len(alone) == len(Loader(PreparedStream(folder, 3)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_stream_goes_on_where_it_stopped(folder, workers, packed, taken):
    whole = Loader(PreparedStream(folder, 2, packed=packed))
    expected = [tensors(whole), tensors(whole)]
    stopped = Loader(PreparedStream(folder, 2, packed=packed), workers=workers)
    batches = iter(stopped)
    first = [next(batches)["input_ids"].flatten().tolist() for _ in range(taken)]
    state = json.loads(json.dumps(stopped.state_dict()))
    del batches
    resumed = Loader(PreparedStream(folder, 2, packed=packed), workers=workers)
    resumed.load_state_dict(state)
    assert first + tensors(resumed) == expected[0]
    assert tensors(resumed) == expected[1]


@pytest.mark.parametrize("changed", [{"batch_size": 3}, {"packed": False}, {"ranks": 2}])
def test_a_state_of_another_cut_is_refused(folder, changed):
    state = PreparedStream(folder, batch_size=2).state_dict()
    with pytest.raises(StaleError, match="would be other rows"):
        PreparedStream(folder, **{"batch_size": 2, **changed}).load_state_dict(state)


def test_a_state_of_other_data_is_refused(folder, prepare, chats):
    other = prepare(chats("other.jsonl", *numbered(9)), output="other").folder
    with pytest.raises(StaleError):
        PreparedStream(other).load_state_dict(PreparedStream(folder).state_dict())


@pytest.mark.parametrize("options", [{"side": "eval"}, {"rank": 2, "ranks": 2}, {"batch_size": 0}])
def test_what_cannot_be_streamed_is_refused(folder, options):
    with pytest.raises(UsageError):
        PreparedStream(folder, **options)


def test_workers_that_outlive_an_epoch_are_refused(folder):
    with pytest.raises(UsageError, match="would repeat it"):
        Loader(PreparedStream(folder), workers=1, persistent_workers=True)


def test_a_mix_is_streamed_with_its_repeats(prepare, chats):
    data = [chats("small.jsonl", *numbered(10)), chats("large.jsonl", *numbered(40, start=90))]
    weights = ["--sources.small.weight", "1", "--sources.large.weight", "1", "--mix.epochs", "2"]
    folder = prepare(*data, *weights, "--max-tokens", "64").folder
    for packed in (True, False):
        rows = Counter(seen(PreparedStream(folder, 2, packed=packed)))
        assert (len(rows), sum(rows.values()), max(rows.values())) == (35, 50, 3)


def test_batches_without_packing_are_of_about_one_length(folder):
    batches = list(PreparedStream(folder, 4, packed=False))
    spread = [max(len(one["input_ids"]) for one in b) - min(len(one["input_ids"]) for one in b) for b in batches[:-1]]
    assert max(spread) <= 4


def test_trained_tokens_are_those_of_the_report(folder):
    total = sum(int(batch["trained_tokens"]) for batch in Loader(PreparedStream(folder, 4), collate_packed))
    assert total == PreparedData(folder).report["trained_tokens"]["total"]


def test_a_folder_of_an_earlier_version_says_so(folder, turnmill):
    manifest = folder / "manifest.json"
    said = json.loads(manifest.read_text())
    del said["epochs"]
    manifest.chmod(0o644)
    manifest.write_text(json.dumps(said))
    with pytest.raises(StaleError, match="did not say how its epochs are made"):
        PreparedStream(folder)
    assert turnmill("mix", folder).code == 4

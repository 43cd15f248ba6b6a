"""Rows streamed without prepared examples: the same tokens, every row once, and what gives no example counted."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

import turnmill
from chats import chat
from turnmill.errors import HealthError, StaleError, UsageError
from turnmill.files.packed import packed_row
from turnmill.files.prepared import PreparedData
from turnmill.files.record import Shard
from turnmill.stream.collate import collate_padded
from turnmill.stream.torch_stream import Loader
from turnmill.verbs.live_rows import require_pickable

MANY_WORKERS = pytest.mark.filterwarnings("ignore:This DataLoader will create")
"""More than this machine has cores: the order is what is looked at."""
LEFT = pytest.mark.filterwarnings("ignore:.*g[ai]ves? no example")
"""Told of in a test of its own."""
NAMES = ("input_ids", "labels", "loss_weights", "seq_lengths")


def long_chats(count: int = 61) -> list[dict]:
    return [chat(f"Number {n}?", "word " * (1 + n % 17), "And?", "more " * (n % 5 + 1)) for n in range(count)]


@pytest.fixture
def folder(prepare, chats):
    return prepare(chats("rows.jsonl", *long_chats()), "--max-tokens", "96").folder


@pytest.fixture
def too_long(chats):
    """Nine rows, of which numbers 2 and 7 are too long for 64 tokens."""
    return chats("long.jsonl", *[chat(f"Number {n}?", "word " * (200 if n in (2, 7) else n + 1)) for n in range(9)])


def flat(batches) -> list[tuple[str, list[int]]]:
    """Row id and tokens of every item that is of a row."""
    return [(one["row_ids"][0], one["input_ids"].tolist()) for batch in batches for one in batch if one["row_ids"]]


def ids_of(batches) -> list[str]:
    return [row_id for row_id, _ in flat(batches)]


def examples_of(folder, side="train") -> list[dict]:
    examples = PreparedData(folder).examples(side)
    return [packed_row(examples.laid_out([number])) for number in range(len(examples))]


def streams(data, batch_size, ranks, **options):
    return [turnmill.open_rows(data, batch_size, rank=rank, ranks=ranks, **options) for rank in range(ranks)]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--fit.overflow", "continue", "--max-tokens", "48"],
        ["--loss.turns", "last", "--loss.scaling", "uniform"],
        ["--render.history", "per-turn", "--loss.scaling", "progressive"],
        ["--template", "chatml", "--loss.scaling", "last-heavy"],
    ],
    ids=["plain", "continue", "last", "per-turn", "weights"],
)
def test_rows_give_the_examples_that_prepare_made_of_them(prepare, chats, options):
    data = chats("rows.jsonl", *long_chats(20))
    folder = prepare(data, "--max-tokens", "96", *options).folder
    expected = examples_of(folder)
    found = [item for batch in turnmill.open_rows(folder, 3, options={"pack.order": "kept"}) for item in batch]
    assert len(found) == len(expected)
    for item, prepared in zip(found, expected, strict=True):
        assert item["row_ids"] == prepared["row_ids"]
        for name in NAMES:
            assert np.array_equal(item[name], prepared[name]), name
            assert item[name].dtype == prepared[name].dtype, name


def test_each_source_keeps_its_own_options_and_raw_texts_theirs(prepare, chats, write):
    texts = write("texts.jsonl", "".join(json.dumps({"text": f"A text {n}. " * (n + 1)}) + "\n" for n in range(9)))
    data = [chats("last.jsonl", *long_chats(6)), chats("all.jsonl", *long_chats(12)[6:]), texts]
    folder = prepare(*data, "--sources.last.loss.turns", "last", "--max-tokens", "48").folder
    expected = sorted(
        (one["row_ids"], one["input_ids"].tolist(), one["labels"].tolist()) for one in examples_of(folder)
    )
    items = [item for batch in turnmill.open_rows(folder, 4) for item in batch]
    assert sorted((one["row_ids"], one["input_ids"].tolist(), one["labels"].tolist()) for one in items) == expected


@pytest.mark.parametrize("kind", ["raw", "gzip", "canonical lines", "canonical Parquet", "raw Parquet"])
def test_anything_that_is_read_gives_the_same_examples(folder, tmp_path, kind):
    raw, parts = tmp_path / "rows.jsonl", sorted((folder / "conversations" / "train").iterdir())
    table = pq.read_table(parts[0])
    match kind:
        case "raw":
            data = raw
        case "gzip":
            (data := tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(raw.read_bytes()))
        case "canonical lines":
            data = tmp_path / "canonical.jsonl"
            data.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        case "canonical Parquet":
            data = parts[0]
        case _:
            import pyarrow as pa

            data = tmp_path / "raw.parquet"
            rows = [json.loads(line) for line in raw.read_text().splitlines()]
            pq.write_table(pa.Table.from_pylist(rows), data, row_group_size=7)
    found = flat(turnmill.open_rows(data, 4, model="smollm2", options={"fit.max_tokens": 96}))
    expected = [(one["row_ids"][0], one["input_ids"].tolist()) for one in examples_of(folder)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("order", ["random", "kept"])
@pytest.mark.parametrize(("ranks", "batch_size"), [(1, 4), (2, 3), (3, 1)])
def test_all_ranks_together_see_every_row_once(folder, order, ranks, batch_size):
    of_ranks = [list(one) for one in streams(folder, batch_size, ranks, options={"pack.order": order})]
    assert {len(batches) for batches in of_ranks} == {-(-61 // (ranks * batch_size))}
    assert Counter(row for batches in of_ranks for row in ids_of(batches)) == Counter(
        example.row_id for example in PreparedData(folder)
    )


@MANY_WORKERS
def test_a_kept_order_survives_two_ranks_of_four_workers(folder):
    ranks = [Loader(one, list, workers=4) for one in streams(folder, 2, 2, options={"pack.order": "kept"})]
    in_steps = [batch for step in zip(*map(list, ranks), strict=True) for batch in step]
    assert ids_of(in_steps) == [example.row_id for example in PreparedData(folder)]


@MANY_WORKERS
def test_workers_change_nothing_and_epochs_differ(folder):
    alone = turnmill.open_rows(folder, 4)
    first, second = flat(alone), flat(alone)
    assert first != second
    assert sorted(first) == sorted(second)
    loader = Loader(turnmill.open_rows(folder, 4), list, workers=3)
    assert [flat(loader), flat(loader)] == [first, second]
    assert len(loader) == 16
    assert flat(turnmill.open_rows(folder, 4, options={"seed": 1})) != first


@LEFT
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_stream_goes_on_where_it_stopped(too_long, workers, taken):
    options = {"model": "smollm2", "options": {"fit.max_tokens": 64}}
    whole = Loader(turnmill.open_rows(too_long, 2, **options), list)
    expected, counted = flat(whole), dict(whole.stream.counts)
    stopped = Loader(turnmill.open_rows(too_long, 2, **options), list, workers=workers)
    batches = iter(stopped)
    first = flat([next(batches) for _ in range(taken)])
    state = json.loads(json.dumps(stopped.state_dict()))
    del batches
    resumed = Loader(turnmill.open_rows(too_long, 2, **options), list, workers=workers)
    resumed.load_state_dict(state)
    assert first + flat(resumed) == expected
    assert resumed.stream.counts == counted
    assert flat(resumed) == flat(whole)


@pytest.mark.parametrize("changed", [{"batch_size": 3}, {"ranks": 2}, {"options": {"fit.max_tokens": 80}}])
def test_a_state_of_other_rows_or_examples_is_refused(folder, changed):
    state = turnmill.open_rows(folder, 2).state_dict()
    with pytest.raises(StaleError, match="would be other rows"):
        turnmill.open_rows(folder, **{"batch_size": 2, **changed}).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_that_give_no_example_are_counted_named_and_told_of(too_long, workers):
    left = []
    stream = turnmill.open_rows(too_long, 2, model="smollm2", options={"fit.max_tokens": 64}, on_left=left.append)
    with pytest.warns(UserWarning, match="no example") as told:
        batches = list(Loader(stream, list, workers=workers))
    assert len(batches) == len(stream) == 5
    assert len(flat(batches)) == 7
    counted = {"rows/read": 9, "rows/accepted": 7, "rows/rejected": 2, "codes/first-turn-too-long": 2, "examples": 7}
    assert dict(stream.counts) == counted
    assert sorted(row.source_line for row in left) == [3, 8]
    assert {(row.stage, row.code) for row in left} == {("fit", "first-turn-too-long")}
    first, last = (str(one.message) for one in told)
    assert "long.jsonl:" in first
    assert "first-turn-too-long" in first
    assert last == "epoch 0, rank 0: 2 of 9 rows gave no example: 2 first-turn-too-long"


@LEFT
def test_a_batch_of_rows_without_examples_is_one_token_that_learns_nothing(too_long):
    options = {"fit.max_tokens": 64, "pack.order": "kept"}
    batches = list(turnmill.open_rows(too_long, 1, model="smollm2", options=options))
    assert len(batches) == 9
    assert [number for number, batch in enumerate(batches) if not batch[0]["row_ids"]] == [2, 7]
    assert collate_padded(batches[2])["trained_tokens"] == 0


@LEFT
def test_counts_begin_anew_with_an_epoch(too_long):
    stream = turnmill.open_rows(too_long, 2, model="smollm2", options={"fit.max_tokens": 64})
    for _ in range(2):
        assert len(flat(stream)) == 7
        assert stream.counts["rows/read"] == 9


@LEFT
def test_rows_that_check_or_a_filter_lets_go_are_counted_too(chats):
    waiting = {"messages": [{"role": "user", "content": "Again?"}]}
    data = chats("mixed.jsonl", *long_chats(3), waiting, chat("Sure?", "no"))
    options = {"filter.use": ["length-bounds"], "filter.length_bounds.min_answer_characters": 3}
    stream = turnmill.open_rows(data, 2, model="smollm2", options=options)
    assert len(flat(stream)) == 3
    assert (stream.counts["rows/rejected"], stream.counts["rows/filtered"]) == (1, 1)
    assert stream.counts["codes/no-assistant-turn"] == 1


def test_batches_are_of_about_one_length(folder):
    batches = list(turnmill.open_rows(folder, 4))
    spread = [max(len(one["input_ids"]) for one in b) - min(len(one["input_ids"]) for one in b) for b in batches]
    assert sorted(spread)[-2] <= 6


def test_options_go_over_those_of_a_prepared_folder(folder):
    long = flat(turnmill.open_rows(folder, 4, options={"fit.max_tokens": 48}))
    assert 40 < max(len(tokens) for _, tokens in long) <= 48
    with_model = flat(turnmill.open_rows(folder, 4, model="smollm2", template="chatml"))
    assert len(with_model) == 61


def test_held_out_rows_are_a_side_of_their_own(prepare, chats):
    folder = prepare(chats("rows.jsonl", *long_chats()), "--split.rows", "9").folder
    found = flat(turnmill.open_rows(folder, 4, side="eval"))
    assert sorted(row for row, _ in found) == sorted(one["row_ids"][0] for one in examples_of(folder, "eval"))
    assert len(found) == 9


def test_a_stream_can_be_sent_to_another_process(folder):
    stream = turnmill.open_rows(folder, 4, on_left=lambda left: None)
    assert flat(pickle.loads(pickle.dumps(stream))) == flat(stream)


def test_what_cannot_be_streamed_is_refused(folder, chats, prepare, write):
    data = chats("more.jsonl", *long_chats(40))
    flags = ["--score.scorer", "ngram", "--select.strategy", "curriculum", "--select.max_perplexity", "0"]
    curriculum = prepare(data, *flags, output="curriculum").folder
    broken = write("broken.json", json.dumps(long_chats(9))[:-200])
    for given, options, why in [
        ((), {}, "no data given"),
        (data, {}, "no model given"),
        (folder, {"side": "eval"}, "no rows to stream"),
        (folder, {"rank": 2, "ranks": 2}, "expected 0 <= rank < ranks"),
        (curriculum, {}, "holds a curriculum"),
    ]:
        with pytest.raises(UsageError, match=why):
            turnmill.open_rows(given, **options)
    with pytest.raises(HealthError, match="end before their end"):
        list(turnmill.open_rows(broken, model="smollm2"))


@pytest.mark.parametrize(
    ("layout", "compression", "is_cut"), [("lines", "gzip", False), ("array", "none", False), ("lines", "none", True)]
)
def test_a_large_file_that_rows_cannot_be_picked_from_is_refused(layout, compression, is_cut):
    shard = Shard("s", "big", "big", layout, compression, 10**9, "", "", 0, 10**9, 1, 0, 10)
    if is_cut:
        require_pickable(shard)
        return
    with pytest.raises(UsageError, match="rows cannot be picked from 1,000,000,000 bytes"):
        require_pickable(shard)


def test_rows_of_sessions_are_streamed_too(prepare, examples):
    folder = prepare(examples / "traces", "--check.invalid_tool_call", "retain").folder
    options = {"check.invalid_tool_call": "retain"}
    found = flat(turnmill.open_rows(examples / "traces", 2, model="smollm2", options=options))
    assert sorted(found) == sorted((one["row_ids"][0], one["input_ids"].tolist()) for one in examples_of(folder))
    assert len(found) == 4


@pytest.fixture
def two_sources(chats, write):
    """A config over 10 rows with weight 3 and 30 rows with weight 1."""
    few = chats("few.jsonl", *[chat(f"Few {n}?", f"This is {n}.") for n in range(10)])
    many = chats("many.jsonl", *[chat(f"Many {n}?", f"That is {n}.") for n in range(30)])
    sources = [{"name": "few", "data": str(few), "weight": 3}, {"name": "many", "data": str(many), "weight": 1}]
    return write("mix.yaml", json.dumps({"sources": sources, "model": {"name_or_path": "smollm2"}}).encode())


@pytest.mark.parametrize("order", ["random", "kept"])
def test_weights_mix_sources_on_the_fly(two_sources, order):
    streams = [
        turnmill.open_rows(config=two_sources, batch_size=4, rank=rank, ranks=2, options={"pack.order": order})
        for rank in range(2)
    ]
    ids = Counter(row_id for stream in streams for row_id in ids_of(stream))
    assert sorted(ids.values()) == [1] * 10 + [3] * 10
    assert len(streams[0]) == len(streams[1]) == 5


@pytest.fixture
def mixed_folder(two_sources, tmp_path):
    """A folder prepared with weights, and what each source gives to an epoch."""
    out = tmp_path / "mixed"
    turnmill.prepare(config=two_sources, output=out)
    plan = PreparedData(out).epochs_recipe["mix"]["train"]
    return out, {share["source"]: share["drawn"] for share in plan}


def test_a_prepared_folder_gives_its_rows_as_often_as_its_epochs_do(mixed_folder):
    folder, drawn = mixed_folder
    ids = ids_of(turnmill.open_rows(folder, 4))
    assert len(ids) == sum(drawn.values())
    assert sorted(Counter(ids).values()) == [1] * drawn["many"] + [3] * 10


def test_a_mixed_stream_goes_on_where_it_stopped_in_the_same_mix_only(two_sources):
    whole, part, rest = (turnmill.open_rows(config=two_sources, batch_size=4) for _ in range(3))
    expected = ids_of(whole)
    batches = iter(part)
    begun = ids_of(next(batches) for _ in range(4))
    rest.load_state_dict(json.loads(json.dumps(part.state_dict())))
    assert begun + ids_of(rest) == expected
    other = turnmill.open_rows(config=two_sources, batch_size=4, options={"sources.many.weight": 2})
    with pytest.raises(StaleError):
        other.load_state_dict(part.state_dict())


def test_weights_in_tokens_need_prepared_data(two_sources):
    with pytest.raises(UsageError, match=r"mix\.unit is tokens"):
        turnmill.open_rows(config=two_sources, options={"mix.unit": "tokens"})

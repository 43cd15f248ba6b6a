"""Known faults behind the tokens: cuts, packs, caches, mixes, streams and batches that lose or invent what trains."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from chats import chat, numbered
from published import IGNORE, Published, documents
from turnmill.errors import UsageError
from turnmill.files.prepared import PreparedData
from turnmill.stream.collate import collate_block, collate_flat, collate_packed, collate_padded
from turnmill.stream.prepared_stream import PreparedStream
from turnmill.stream.torch_stream import Loader

COLLATES = [collate_packed, collate_flat, collate_block, collate_padded]
END = 2
"""The id that ends a turn of SmolLM2, and that pads."""
LONG = "long " * 200


@pytest.fixture
def prepare(turnmill, tmp_path) -> Callable[..., Published]:
    """Prepares in this process and gives what was published."""

    def call(*arguments: str | Path, output: str = "out", model: str | Path = "smollm2") -> Published:
        flags = ("--model", model, "--output", tmp_path / output, "--workers", "1")
        answer = turnmill("prepare", *arguments, *flags)
        assert answer.code == 0, answer.err
        return Published(tmp_path / output)

    return call


def item(*examples: tuple[list[int], list[int]]) -> dict:
    """A pack of examples: their ids and their labels."""
    ids, labels = (np.array([token for one in examples for token in one[side]], np.int32) for side in (0, 1))
    lengths = np.array([len(one[0]) for one in examples], np.int32)
    weights = (labels != IGNORE).astype(np.float32)
    return {"input_ids": ids, "labels": labels, "seq_lengths": lengths, "loss_weights": weights, "row_ids": []}


def learnt(batch: dict) -> list[int]:
    return [label for label in batch["labels"].flatten().tolist() if label != IGNORE]


SHORT = ([5, END], [IGNORE, END])
USUAL = ([5, 6, 7, END], [IGNORE, 6, 7, END])
TWO_TURNS = ([5, END, 6, END], [IGNORE, END, IGNORE, END])
BATCHES = {
    "short beside long": [item(USUAL), item(SHORT)],
    "packs": [item(SHORT, USUAL), item(TWO_TURNS)],
    "an end in the middle": [item(TWO_TURNS), item(SHORT)],
    "all ends": [item(([END, END], [IGNORE, END])), item(USUAL)],
}


@pytest.mark.parametrize("collate", COLLATES)
@pytest.mark.parametrize("what", BATCHES)
def test_an_end_keeps_its_label_where_its_id_is_also_the_padding(collate, what):
    batch = collate(BATCHES[what], pad_id=END)
    right = [label for one in BATCHES[what] for label in one["labels"].tolist() if label != IGNORE]
    assert learnt(batch) == right
    assert int(batch["trained_tokens"]) == len(right) == int(batch["loss_weights"].sum())


def test_padding_behind_an_end_learns_nothing_and_is_not_seen():
    batch = collate_padded([item(USUAL), item(SHORT)], pad_id=END)
    assert batch["labels"][:, :4].tolist() == [[IGNORE, 6, 7, END], [IGNORE, END, IGNORE, IGNORE]]
    assert batch["attention_mask"][:, :4].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_examples_are_told_apart_by_their_lengths_and_not_by_the_end():
    packed = [item(TWO_TURNS, SHORT)]
    flat = collate_flat(packed, pad_id=END)
    assert flat["cu_seq_lens_q"].tolist() == [0, 4, 6]
    assert flat["seq_idx"][0].tolist() == [0, 0, 0, 0, 1, 1]
    assert collate_packed(packed, pad_id=END)["position_ids"][0].tolist() == [0, 1, 2, 3, 0, 1, 0, 1]
    seen = collate_block(packed, pad_id=END)["attention_mask"][0, 0].sum(-1)
    assert seen.tolist() == [1, 2, 3, 4, 1, 2, 1, 2]


def test_every_answer_of_prepared_data_ends_in_what_a_batch_learns(prepare, chats):
    rows = [[f"What is {n}?", "It is " + "x " * n, "Sure?", "Yes."] for n in range(9)]
    folder = prepare(chats("rows.jsonl", *rows), "--max-tokens", "96").folder
    for collate, packed in itertools.product(COLLATES, (True, False)):
        loader = Loader(PreparedStream(folder, 4, packed=packed), partial(collate, pad_id=END))
        assert [label for batch in loader for label in learnt(batch)].count(END) == 18


OVERFLOWING = [["q", "a", LONG, "b"], ["q", LONG, "r", "b"], [LONG, "a"], ["q", "a", "r", LONG, "s", "c"], ["q", "a"]]
WEIGHED = chat("q", "a1", "r", LONG)
WEIGHED["messages"][1]["weight"] = 0
"""Trains behind the limit alone."""


@pytest.mark.parametrize("overflow", ["cut", "drop", "continue"])
def test_whatever_is_left_of_a_long_row_has_something_to_learn(prepare, chats, overflow):
    published = prepare(chats("rows.jsonl", *OVERFLOWING, WEIGHED), "--max-tokens", "64", "--fit.overflow", overflow)
    packed = [document for pack in published.packed() for document in documents(pack)]
    assert packed
    assert all(len(ids) <= 64 and labels[-1] == END for ids, labels in packed)
    kept = {row["row"] for row in published.conversations()}
    assert kept == ({4} if overflow == "drop" else {0, 3, 4})
    assert sum(published.report["codes"].values()) == 6 - len(kept)


def test_the_turns_that_a_cut_takes_are_counted(prepare, chats):
    rows = chats("rows.jsonl", ["q1", "a1", LONG, "a2"], ["q1", "a1", "q2", LONG, "q3", "a3"], ["q", "a"])
    counts = prepare(rows, "--max-tokens", "64").report["per_source"]["rows"]["counts"]
    assert (counts["fit/cut"], counts["fit/turns-cut"]) == (2, 3)
    assert counts["fit/tokens-cut"] > 400


@pytest.mark.parametrize("flags", [[], ["--pack.order", "kept"], ["--pack.on", "false"]])
@pytest.mark.parametrize("count", [1, 6, 7])
def test_the_last_pack_is_kept_however_little_it_holds(turnmill, chats, tmp_path, flags, count):
    rows = chats("rows.jsonl", *[["q", "word " * (3 + 11 * n % 31) + str(n)] for n in range(count)])
    shown = turnmill(
        "prepare", rows, "--model", "smollm2", "-o", tmp_path / "out", "--max-tokens", "64", *flags, "--json"
    )
    published, answer = Published(tmp_path / "out"), shown.json
    packs = published.packed()
    kept = [row["id"] for row in published.conversations()]
    assert sorted(row for pack in packs for row in pack["row_ids"]) == sorted(kept)
    tokens = sum(len(pack["input_ids"]) for pack in packs)
    assert tokens == sum(len(row["input_ids"]) for row in published.examples()) == answer["tokens"]
    assert (answer["examples"], answer["packs"]) == (count, len(packs))
    assert answer["fill"] == pytest.approx(tokens / (64 * len(packs)), abs=1e-6)


CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
FILES = ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json")


@pytest.fixture
def model(smollm2_directory, tmp_path) -> Callable[..., Path]:
    """A model directory with this template, and keys of its files changed."""

    def call(name: str, template: str = CHATML, **changed: dict) -> Path:
        (tmp_path / name).mkdir()
        for file in FILES:
            kept = json.loads((smollm2_directory / file).read_bytes())
            (tmp_path / name / file).write_text(json.dumps(kept | changed.get(file.partition(".")[0], {})))
        (tmp_path / name / "chat_template.jinja").write_text(template)
        return tmp_path / name

    return call


GREETED = "{{ bos_token }}{{ greeting | default('') }}{{ strftime_now('%Y') }}" + CHATML
SPACED = CHATML.replace("{{ m.content }}", "{{ m.content }} ")
OTHERWISE = {
    "one space in the text": (CHATML, {"template": SPACED}, []),
    "another special token": (GREETED, {"tokenizer_config": {"bos_token": "<|im_end|>"}}, []),
    "an argument": (GREETED, {}, ["--render.template_kwargs", "{greeting: Hi}"]),
    "the day": (GREETED, {}, ["--render.date", "2031-01-01"]),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_nothing_that_changes_the_text_is_answered_from_the_cache(prepare, chats, model, what):
    template, changed, flags = OTHERWISE[what]
    rows = chats("rows.jsonl", *numbered(5))
    before = prepare(rows, model=model("before", template)).sha256
    other = model("other", **{"template": template, **changed})
    after = prepare(rows, *flags, model=other).sha256
    assert after == prepare(rows, *flags, model=other, output="fresh").sha256
    assert after["train/examples/part-00000.arrow"] != before["train/examples/part-00000.arrow"]


COMMAND = "from turnmill.cli.app import main; main()"


def test_a_new_process_finds_all_that_another_made(chats, tmp_path):
    rows = chats("rows.jsonl", *numbered(20))

    def made(output: str, **environment: str) -> dict[str, str]:
        flags = ["--model", "smollm2", "--output", tmp_path / output, "--workers", "1", "--split.fraction", "0.3"]
        command = [sys.executable, "-c", COMMAND, "prepare", rows, *flags]
        subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
        return Published(tmp_path / output).sha256

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.steps").rglob("*") if path.is_file()}

    first = made("out", PYTHONHASHSEED="1", TZ="UTC")
    before = times()
    assert made("out", PYTHONHASHSEED="2", TZ="Asia/Tokyo") == first
    assert times() == before
    assert made("elsewhere", PYTHONHASHSEED="3", LC_ALL="C") == first


def halved(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()  # the output holds hard links to the old bytes
    path.write_bytes(content[: len(content) // 2])


SPOILT = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "half a manifest": lambda folder: halved(folder / "manifest.json"),
    "half a shard": lambda folder: halved(folder / "shards/00000/train.arrow"),
    "nothing": lambda folder: (shutil.rmtree(folder), folder.mkdir()),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_step_that_is_not_whole_is_named_with_the_line_that_lets_it_go(turnmill, prepare, chats, tmp_path, what):
    rows = chats("rows.jsonl", *numbered(5))
    first = prepare(rows).sha256
    (folder,) = (tmp_path / ".out.steps").glob("tokenize-*")
    SPOILT[what](folder)
    again = turnmill("prepare", rows, "--model", "smollm2", "-o", tmp_path / "out", "--workers", "1")
    verified = turnmill("cache", "verify", tmp_path / "out")
    for answer in (again, verified):
        assert (answer.code, answer.next_step) == (4, f"rm -r {folder}")
    shutil.rmtree(folder)
    assert prepare(rows).sha256 == first


REFUSED = ["Do it.", "I'm sorry, but I can't help with that."]


@pytest.fixture
def with_an_empty_source(chats) -> list:
    """Sources of 3 and 4 rows, and between them one of which a filter leaves nothing."""
    sources = [chats("a.jsonl", *numbered(3)), chats("empty.jsonl", REFUSED), chats("b.jsonl", *numbered(4, 50))]
    return [*sources, "--filter.use", "[refusals]"]


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_source_that_a_filter_empties_takes_and_doubles_no_row(prepare, with_an_empty_source, epochs):
    published = prepare(*with_an_empty_source, "--mix.epochs", str(epochs))
    assert published.report["per_source"]["empty"]["examples"] == 0
    every = sorted(row["id"] for row in published.conversations())
    assert len(every) == 7
    for stream in (PreparedStream(published.folder, packed=packed) for packed in (True, False)):
        for _ in range(3):
            assert sorted(row for batch in stream for one in batch for row in one["row_ids"]) == every


@pytest.mark.parametrize("weight", ["1", "0.5"])
def test_a_weight_that_was_given_to_an_emptied_source_is_an_error(turnmill, tmp_path, with_an_empty_source, weight):
    flags = ["--sources.a.weight", "3", "--sources.b.weight", "4", "--sources.empty.weight", weight]
    made = ["prepare", *with_an_empty_source, *flags, "--model", "smollm2", "--workers", "1"]
    answer = turnmill(*made, "--output", tmp_path / "out")
    assert answer.code == 2
    assert f"source 'empty' has weight {weight} in the mix and no example" in answer.err
    assert answer.next_step.endswith("--sources.empty.weight 0")
    assert not (tmp_path / "out").exists()


def test_an_emptied_source_with_no_weight_gives_nothing_to_the_others_mix(prepare, turnmill, with_an_empty_source):
    flags = ["--sources.a.weight", "3", "--sources.b.weight", "4", "--sources.empty.weight", "0"]
    published = prepare(*with_an_empty_source, *flags)
    assert sorted(Counter(row for pack in published.packed() for row in pack["row_ids"]).values()) == [1] * 7
    assert "mix: source 'empty' is empty" in turnmill("mix", published.folder).err


@pytest.mark.parametrize("weights", [(0.2, 0.6, 0.2), (1, 1, 1), (0, 1, 3)])
def test_another_shuffle_of_a_mix_has_as_many_rows_of_each_source(prepare, chats, weights):
    sources = [chats(f"{name}.jsonl", *numbered(3 + n, 50 * n)) for n, name in enumerate("abc")]
    flags = [f"--sources.{name}.weight={weight}" for name, weight in zip("abc", weights, strict=True)]
    found = set()
    for seed in (0, 42):
        folder = prepare(*sources, *flags, "--seed", str(seed), output=f"seed-{seed}").folder
        source_of = {example.row_id: example.source for example in PreparedData(folder)}
        for packed in (True, False):
            rows = [row for batch in PreparedStream(folder, packed=packed) for one in batch for row in one["row_ids"]]
            found.add(tuple(sorted(Counter(source_of[row] for row in rows).items())))
    assert len(found) == 1
    assert sum(count for _, count in found.pop()) == 12


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(("rows", "ranks", "workers"), [(10, 2, 4), (3, 2, 4), (1, 3, 2)])
def test_ranks_and_workers_that_outnumber_the_rows_share_them_evenly(prepare, chats, rows, ranks, workers):
    folder = prepare(chats("rows.jsonl", *numbered(rows))).folder
    streams = [PreparedStream(folder, packed=False, rank=rank, ranks=ranks) for rank in range(ranks)]
    batches = [list(Loader(stream, list, workers=workers, timeout=30)) for stream in streams]
    assert {len(of_rank) for of_rank in batches} == {-(-rows // ranks)}
    seen = Counter(row for of_rank in batches for batch in of_rank for one in batch for row in one["row_ids"])
    assert (len(seen), seen.total()) == (rows, rows)


MIXED = ["--sources.a.weight", "1", "--sources.b.weight", "1"]


def taken(loader: Loader, count: int) -> list[list[str]]:
    """The rows of so many batches, over the ends of epochs."""
    epochs = itertools.chain.from_iterable(itertools.repeat(loader, 99))
    return [batch[0]["row_ids"] for batch in itertools.islice(epochs, count)]


@pytest.mark.parametrize("flags", [[], MIXED], ids=["plain", "mixed"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_stream_that_is_resumed_again_and_again_gives_what_one_run_gives(prepare, chats, packed, flags):
    sources = [chats("a.jsonl", *numbered(11)), chats("b.jsonl", *numbered(31, 50))]
    folder = prepare(*sources, *flags, "--max-tokens", "48").folder
    for stops in ((3, 4, 6), (1, 1, 1, 1), (5, 40, 2), (len(PreparedStream(folder, packed=packed)), 3)):
        one_run = taken(Loader(PreparedStream(folder, packed=packed), list), sum(stops))
        parts, state = [], PreparedStream(folder, packed=packed).state_dict()
        for count in stops:
            resumed = Loader(PreparedStream(folder, packed=packed), list)
            resumed.load_state_dict(state)
            parts += taken(resumed, count)
            state = json.loads(json.dumps(resumed.state_dict()))
        assert len(one_run) == sum(stops)
        assert parts == one_run


@pytest.mark.parametrize("place", ["nothing", "data"])
def test_training_on_what_was_not_prepared_ends_at_once_and_says_what_to_run(chats, tmp_path, place):
    chats("data/rows.jsonl", *numbered(3))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="is no prepared folder") as refused:
        PreparedStream(tmp_path / place)
    assert refused.value.next_step.startswith("turnmill prepare ")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("flags", [[], ["--dedup.by", "[]"]], ids=["duplicates leave", "duplicates stay"])
@pytest.mark.parametrize("seed", ["0", "9"])
def test_copies_of_a_row_in_several_sources_stand_on_one_side(prepare, chats, flags, seed):
    sources = [chats(f"{name}.jsonl", *numbered(150)) for name in "ab"]
    published = prepare(*sources, "--split.fraction", "0.4", "--seed", seed, *flags)
    sides = [{row["id"] for row in published.conversations(side)} for side in ("train", "eval")]
    assert min(map(len, sides)) > 20
    assert not sides[0] & sides[1]
    assert published.report["rows"]["duplicates"] == (0 if flags else 150)


def test_a_question_of_an_evaluation_is_found_in_other_letters_and_its_neighbour_is_not(
    turnmill, chats, write, tmp_path
):
    asked = [["name the capital of  norway", "Oslo."], ["Name the capital of Sweden.", "Stockholm."]]
    rows = chats("rows.jsonl", *asked)
    bench = write("bench.jsonl", '{"question": "Name the capital of Norway."}\n')
    before = sorted(tmp_path.rglob("*"))
    report = turnmill("decontaminate", rows, "--against", bench, "--json").json
    assert [(one["row"], one["evaluation_file"]) for one in report["found"]] == [(0, "bench.jsonl")]
    assert report["per_source"]["rows"] == {
        "read": 2, "compared": 2, "contaminated": 1, "words": 12, "contaminated_words": 6,
    }  # fmt: skip
    assert sorted(tmp_path.rglob("*")) == before

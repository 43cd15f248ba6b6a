"""Prepared data as other tools take them: nothing changes on the way, and what has no form is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import turnmill
from chats import chat
from turnmill.exporters import exporters
from turnmill.files.inventory import verify
from turnmill.verbs.export import export

CALL = {
    "messages": [
        {"role": "user", "content": "High tide?"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I must look.",
            "tool_calls": [{"type": "function", "id": "a", "function": {"name": "tide", "arguments": '{"at": "Ely"}'}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "noon"},
        {"role": "assistant", "content": "At noon."},
    ],
    "tools": [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}],
}
HALF = {
    "messages": [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Won.", "weight": 0},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1."},
    ]
}
ROWS = [chat("Hi?", "Ho."), CALL, HALF, chat("Why?", "So.", "And?", "Thus.")]
TOKENS = ("trl", "axolotl", "levanter", "tinker", "megatron")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return turnmill.prepare(folder / "rows.jsonl", output=folder / "out", model="smollm2", options={"workers": 1})


@pytest.fixture
def exported(data, tmp_path):
    def call(target: str, **options):
        return export(data, target, tmp_path / target, **options), tmp_path / target

    return call


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("target", exporters.names())
def test_every_target_gets_rows_a_loader_a_card_and_a_manifest(exported, target):
    made, folder = exported(target)
    assert sum(made.rows.values()) > 0
    assert {*made.rows, made.howto, "README.md"} <= {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    }
    manifest = verify(folder)
    assert (manifest["kind"], manifest["target"], manifest["lost"]) == ("exported", target, made.lost)
    card = (folder / "README.md").read_text()
    assert f"`{made.howto}`" in card
    assert all(what in card for what in made.lost)


@pytest.mark.parametrize("target", exporters.names())
def test_the_same_data_give_the_same_bytes(exported, data, target, tmp_path):
    _, first = exported(target)
    export(data, target, tmp_path / "again")
    contents = [
        {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (first, tmp_path / "again")
    ]
    assert contents[0] == contents[1]


def expected(data) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of every example, from its runs alone."""
    found = []
    for example in data:
        labels = [
            token if run.weight > 0 else -100
            for start, run in zip([0, *(one.end for one in example.runs)], example.runs, strict=False)
            for token in example.input_ids[start : run.end]
        ]
        found.append((list(example.input_ids), labels))
    return found


def test_axolotl_gets_each_example_and_its_labels(exported, data):
    _, folder = exported("axolotl")
    rows = pq.read_table(folder / "train" / "data.parquet").to_pylist()
    assert [(row["input_ids"], row["labels"]) for row in rows] == expected(data)
    assert all(set(row["attention_mask"]) == {1} for row in rows)
    assert yaml.safe_load((folder / "axolotl.yaml").read_text())["datasets"] == [{"path": "./train", "type": None}]


def test_trl_gets_the_packs_with_their_lengths(exported, data):
    _, folder = exported("trl")
    rows = pq.read_table(folder / "train.parquet").to_pylist()
    assert [(row["input_ids"], row["labels"], row["seq_lengths"]) for row in rows] == [
        (pack.input_ids, pack.labels, pack.seq_lengths) for pack in data.packs()
    ]


def test_levanter_weighs_the_prediction_of_the_next_token(exported, data):
    _, folder = exported("levanter")
    rows = pq.read_table(folder / "train.parquet").to_pylist()
    for row, (ids, labels) in zip(rows, expected(data), strict=True):
        assert row["input_ids"] == ids
        assert row["loss_weights"] == [float(label != -100) for label in labels[1:]] + [0.0]


def test_tinker_weighs_each_token(exported, data):
    _, folder = exported("tinker")
    for row, (ids, labels) in zip(lines(folder / "train.jsonl"), expected(data), strict=True):
        assert (row["tokens"], row["weights"]) == (ids, [float(label != -100) for label in labels])


def test_megatron_learns_of_each_document_what_its_labels_say(exported, data):
    _, folder = exported("megatron")
    found = []
    for row in np.load(folder / "train.npy", allow_pickle=True):
        ends = [*row["seq_start_id"][1:], len(row["input_ids"])]
        for start, end in zip(row["seq_start_id"], ends, strict=True):  # as its collator cuts them
            tokens, learns = row["input_ids"][start + 1 : end], row["loss_mask"][start : end - 1]
            found.append([token if is_learned else -100 for token, is_learned in zip(tokens, learns, strict=True)])
    examples = expected(data)
    assert found == [examples[number][1][1:] for numbers in data.plan() for number in numbers]


def test_torchtune_counts_what_trains_there_alone(exported):
    made, folder = exported("torchtune")
    assert made.lost == {"rows the target has no form for": 1, "messages that train there and not here": 1}
    assert lines(folder / "train.jsonl")[1]["messages"][1] == {"role": "assistant", "content": "Won."}
    assert yaml.safe_load((folder / "dataset.yaml").read_text())["dataset"]["data_files"] == "train.jsonl"


@pytest.mark.parametrize(
    ("field", "trains", "does_not"), [("weight", 1, 0), ("train", True, False), ("trainable", True, False)]
)
def test_messages_say_what_trains_in_the_field_that_is_named(exported, field, trains, does_not):
    _, folder = exported("messages", weight_field=field)
    half = lines(folder / "train.jsonl")[2]["messages"]
    assert [message.get(field) for message in half] == [None, does_not, None, trains]


@pytest.mark.parametrize("target", ["messages", "sharegpt"])
def test_what_is_read_back_is_what_went_out(exported, data, target, turnmill_ids):
    _, folder = exported(target)
    assert turnmill_ids(folder / "train.jsonl") == [row.id for row in data.conversations()]


@pytest.fixture
def turnmill_ids():
    return lambda path: [row.checked.id for row in turnmill.read(path)]


def test_llama_factory_reads_what_its_catalogue_names(exported, data, tmp_path, turnmill_ids):
    made, folder = exported("llamafactory")
    info = json.loads((folder / "dataset_info.json").read_text())
    assert info["turnmill_train"]["file_name"] == "train.json"
    assert turnmill_ids(folder / "train.json") == [row.id for row in data.conversations()]
    assert made.lost == {"messages that do not train, and would": 1}


def test_swift_has_calls_as_messages_and_a_switch_on_each(exported):
    _, folder = exported("ms-swift")
    call = lines(folder / "train.jsonl")[1]
    assert [message["role"] for message in call["messages"]] == ["user", "assistant", "tool_call", "tool", "assistant"]
    assert call["messages"][1] == {"role": "assistant", "content": "<think>\nI must look.\n</think>\n\n", "loss": True}
    assert json.loads(call["messages"][2]["content"]) == {"name": "tide", "arguments": {"at": "Ely"}}
    half = lines(folder / "train.jsonl")[2]["messages"]
    assert [message.get("loss") for message in half] == [None, False, None, True]


@pytest.mark.parametrize("target", ["ms-swift", "torchtune"])
def test_a_developer_speaks_as_the_system_where_there_is_none(tmp_path, target):
    row = {
        "messages": [{"role": role, "content": role.title()} for role in ("system", "developer", "user", "assistant")]
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    data = turnmill.prepare(tmp_path / "rows.jsonl", output=tmp_path / "out", model="smollm2", options={"workers": 1})
    made = export(data, target, tmp_path / "exported")
    (found,) = lines(tmp_path / "exported" / "train.jsonl")
    assert found["messages"][0] == {"role": "system", "content": "System\n\nDeveloper"}
    assert made.lost == {"developer's messages said as the system's": 1}


def test_openai_lines_have_weights_and_no_reasoning(exported):
    made, folder = exported("openai")
    rows = lines(folder / "train.jsonl")
    assert made.lost == {"reasoning left out of messages": 1}
    assert rows[1]["messages"][1].keys() == {"role", "content", "tool_calls", "weight"}
    assert rows[1]["tools"] == CALL["tools"]


def test_together_takes_no_tools(exported):
    made, folder = exported("together")
    assert made.lost == {"rows the target has no form for": 1}
    assert len(lines(folder / "train.jsonl")) == 3


@pytest.mark.parametrize(
    ("target", "refused"), [("openai", True), ("messages", False), *((one, False) for one in TOKENS)]
)
def test_strict_refuses_what_loses_anything(exported, target, refused, tmp_path):
    if not refused:
        assert exported(target, strict=True)[0].lost == {}
        return
    with pytest.raises(turnmill.HealthError, match="has no form for"):
        exported(target, strict=True)
    assert not (tmp_path / target).exists()


def test_fractional_weights_are_counted_where_labels_cannot_say_them(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(HALF).replace('"weight": 0', '"weight": 0.5') + "\n")
    options = {"workers": 1, "loss.fractional": "true"}
    data = turnmill.prepare(tmp_path / "rows.jsonl", output=tmp_path / "out", model="smollm2", options=options)
    lost = {
        target: export(data, target, tmp_path / target).lost for target in ("trl", "levanter", "messages", "openai")
    }
    assert lost["trl"] == {"examples with loss weights that are neither 0 nor 1": 1}
    assert lost["openai"] == {"messages whose weight is neither 0 nor 1": 1}
    assert lost["levanter"] == lost["messages"] == {}
    assert lines(tmp_path / "messages" / "train.jsonl")[0]["messages"][1]["weight"] == 0.5


def test_rows_that_a_target_cannot_say_at_all_are_an_error(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(CALL) + "\n")
    data = turnmill.prepare(tmp_path / "rows.jsonl", output=tmp_path / "out", model="smollm2", options={"workers": 1})
    with pytest.raises(turnmill.HealthError, match="can say none of the rows"):
        export(data, "together", tmp_path / "there")


def test_a_loss_of_one_batch_is_the_cross_entropy_by_hand(exported):
    """Labels are not shifted: a model that shifts them itself learns the next token, and nothing else."""
    import torch

    from tiny_models import tiny_model

    _, folder = exported("axolotl")
    row = pq.read_table(folder / "train" / "data.parquet").to_pylist()[0]
    ids, labels = (torch.tensor([row[name]]) for name in ("input_ids", "labels"))
    model = tiny_model("llama", vocab_size=49_152)
    with torch.inference_mode():
        found = model(input_ids=ids, labels=labels)
        log = torch.log_softmax(found.logits[0].float(), -1)
    by_hand = [-log[place - 1, label] for place, label in enumerate(row["labels"]) if label != -100]
    assert float(found.loss) == pytest.approx(float(sum(by_hand) / len(by_hand)), abs=1e-5)


def test_the_command_says_what_was_written_and_what_was_lost(turnmill_command, data, tmp_path):
    done = turnmill_command("export", data.folder, "--to", "openai", "--output", tmp_path / "out")
    assert done.out.endswith("train.jsonl: 4 rows\n")
    assert "lost: 1 reasoning left out of messages" in done.err
    assert done.next_step == f"cat {tmp_path / 'out' / 'upload.py'}"
    unknown = turnmill_command("export", data.folder, "--to", "axolot", "--output", tmp_path / "other")
    assert (unknown.code, "Did you mean 'axolotl'" in unknown.err) == (2, True)
    inside = turnmill_command("export", data.folder, "--to", "openai", "--output", data.folder)
    assert (inside.code, "is what is exported" in inside.err) == (2, True)


@pytest.fixture
def turnmill_command(request):
    return request.getfixturevalue("turnmill")

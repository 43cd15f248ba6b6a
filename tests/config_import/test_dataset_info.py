from __future__ import annotations

from pathlib import Path

import pytest

from turnmill.config import load
from turnmill.config_import import as_yaml
from turnmill.config_import.dataset_info import import_dataset_info
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import UnknownName, UsageError
from turnmill.verbs.read import mapping_of

CHAT = {"formatting": "sharegpt", "file_name": "a.json"}
OPENAI_TAGS = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
UA = [["user", "q"], ["final", "a"]]
TOOLS = [{"name": "f", "parameters": {}}]
CALLED = [["user", "q"], ["call", "f", {}], ["result", "f", "x"], ["final", "a"]]


def source_of(entry: dict, folder: Path):
    path = folder / "run.yaml"
    path.write_text(as_yaml(import_dataset_info({"set": entry}, Path("data"))))
    return load(path)[0].sources[0]


@pytest.mark.parametrize(("column", "columns"), [("text", {}), ("body", {"text": "body"})])
def test_an_entry_for_pre_training_becomes_a_source_of_raw_texts(tmp_path, column, columns):
    source = source_of({"file_name": "c4.json", "columns": {"prompt": column}}, tmp_path)
    assert (source.mode, source.dialect, source.columns) == ("text", "auto", columns)


@pytest.mark.parametrize(
    ("entry", "record", "turns"),
    [
        ({"file_name": "a.json"}, {"instruction": "q", "input": "", "output": "a"}, UA),
        ({"file_name": "a.json", "columns": {"prompt": "ask", "query": "more", "response": "say"}},
         {"ask": "q", "more": "", "say": "a"}, UA),
        ({"file_name": "a.json", "columns": {"prompt": "ask", "response": "say", "system": "sys", "history": "before"}},
         {"ask": "q", "say": "a", "sys": "s", "before": [["p", "b"]]},
         [["system", "s"], ["user", "p"], ["final", "b"], *UA]),
        (CHAT, {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}, UA),
        (CHAT | {"columns": {"messages": "talk"}, "tags": {"role_tag": "who", "content_tag": "says"}},
         {"talk": [{"who": "human", "says": "q"}, {"who": "gpt", "says": "a"}]}, UA),
        (CHAT | {"columns": {"messages": "messages"}, "tags": OPENAI_TAGS},
         {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, UA),
        (CHAT | {"tags": {"user_tag": "Q", "assistant_tag": "A", "system_tag": "S"}},
         {"conversations": [{"from": "S", "value": "s"}, {"from": "Q", "value": "q"}, {"from": "A", "value": "a"}]},
         [["system", "s"], *UA]),
        (CHAT | {"columns": {"messages": "conversations", "tools": "functions"},
                 "tags": {"function_tag": "act", "observation_tag": "see"}},
         {"functions": TOOLS, "conversations": [
             {"from": "human", "value": "q"}, {"from": "act", "value": '{"name": "f", "arguments": {}}'},
             {"from": "see", "value": "x"}, {"from": "gpt", "value": "a"}]}, CALLED),
        (CHAT | {"formatting": "openai", "columns": {"messages": "messages"}, "tags": OPENAI_TAGS},
         {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, UA),
    ],
)  # fmt: skip
def test_an_entry_becomes_a_source_that_reads_its_rows(tmp_path, entry, record, turns):
    source = source_of(entry, tmp_path)
    assert source.data == ("data/a.json",)
    row = check(convert(record, dialects.get(source.dialect), Reading(mapping_of(source))))
    assert neutral_turns(row) == turns


@pytest.mark.parametrize(
    "entry",
    [CHAT, CHAT | {"tags": OPENAI_TAGS}, CHAT | {"columns": {"messages": "conversations"}}, {"file_name": "a.json"}],
)
def test_what_our_dialect_finds_itself_is_not_written(tmp_path, entry):
    source = source_of(entry, tmp_path)
    assert (source.columns, source.tags, source.roles) == ({}, {}, {})


REFUSED = [
    (CHAT | {"ranking": True, "columns": {"chosen": "c", "rejected": "r"}}, "preference data \\(chosen, rejected\\)"),
    (CHAT | {"columns": {"messages": "m", "kto_tag": "label"}}, "preference data"),
    (CHAT | {"columns": {"messages": "m", "images": "pictures"}}, "images: turnmill reads text only"),
    ({"hf_hub_url": "org/set", "file_name": "a.json"}, "hf_hub_url 'org/set' is not on this machine"),
    ({"script_url": "x"}, "script_url"),
    ({"cloud_file_name": "s3://b/a.json"}, "cloud_file_name"),
    ({"formatting": "other", "file_name": "a.json"}, "formatting 'other'"),
    ({"formatting": "sharegpt"}, "no file_name"),
    ({"file_name": "c4.json", "columns": {"prompt": "text", "query": "more"}}, "neither responses nor"),
]


@pytest.mark.parametrize(("entry", "said"), REFUSED)
def test_what_cannot_be_read_is_named(entry, said):
    with pytest.raises(UsageError, match=f"'bad' cannot be read: .*{said}"):
        import_dataset_info({"bad": entry, "good": CHAT}, Path("data"), ["bad"])
    imported = import_dataset_info({"bad": entry, "good": CHAT}, Path("data"))
    assert [source["name"] for source in imported.tree["sources"]] == ["good"]
    assert imported.notes[0].startswith("bad: not read: ")


def test_names_choose_and_are_checked():
    entries = {"one": CHAT, "two": CHAT, "three": CHAT}
    assert [s["name"] for s in import_dataset_info(entries, Path(), ["three", "one"]).tree["sources"]] == [
        "three",
        "one",
    ]
    with pytest.raises(UnknownName, match="Did you mean 'three'"):
        import_dataset_info(entries, Path(), ["thre"])
    with pytest.raises(UsageError, match="no data set that can be read"):
        import_dataset_info({"x": {"hf_hub_url": "org/set"}}, Path())


def test_differences_are_noted():
    entry = {"file_name": "a.json", "num_samples": 5, "columns": {"prompt": "p", "response": "r"}}
    notes = import_dataset_info({"set": entry}, Path()).notes
    assert [note.split()[1] for note in notes] == ["num_samples", "instruction", "a"]

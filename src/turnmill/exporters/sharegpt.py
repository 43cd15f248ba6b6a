"""ShareGPT's conversations, alone and with what LLaMA-Factory needs to read them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from turnmill.conversation import Json
from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected
from turnmill.exporters import LOAD_JSON, UNSAYABLE, Exporting, Howto, exporter
from turnmill.files.prepared import Side

FILES: dict[Side, str] = {"train": "train.json", "eval": "eval.json"}
ODD, EVEN = ("human", "observation"), ("gpt", "function_call")


def records(exporting: Exporting, side: Side, dialect: str) -> Iterator[dict[str, Json]]:
    """The rows in a dialect; a row it cannot say, and turns that do not train, are counted."""
    for conversation, trains in exporting.conversations(side):
        exporting.lose("rows whose reasoning does not train", int(not trains.reasoning))
        spoken = {message.recorded for message in conversation.messages if message.role == "assistant"}
        exporting.lose("messages that do not train, and would", len(spoken - trains.messages))
        exporting.lose("messages whose weight is neither 0 nor 1", len(trains.weights))
        try:
            record = write_record(conversation, dialect)
        except Rejected:
            exporting.lose(UNSAYABLE)
            continue
        yield {key: value for key, value in record.items() if key not in ("chat_template_kwargs",)}


@exporter("sharegpt")
def to_sharegpt(exporting: Exporting) -> Howto:
    """ShareGPT's conversations of from and value: every turn of the assistant's trains there."""
    for side in exporting.sides:
        exporting.lines(f"{side}.jsonl", records(exporting, side, "sharegpt"))
    return Howto("load.py", LOAD_JSON.format(file="train.jsonl"))


@exporter("alpaca")
def to_alpaca(exporting: Exporting) -> Howto:
    """Alpaca's instruction, output, history and system: the last answer trains there, or all of them."""
    for side in exporting.sides:
        exporting.array(FILES[side], records(exporting, side, "alpaca"))
    return Howto("load.py", LOAD_JSON.format(file="train.json"))


@exporter("llamafactory")
def to_llamafactory(exporting: Exporting) -> Howto:
    """LLaMA-Factory's ShareGPT files with `dataset_info.json`: strictly by turns, every turn trains."""
    for side in exporting.sides:
        exporting.array(FILES[side], _by_turns(exporting, side))
    entries = {f"turnmill_{side}": _entry(FILES[side]) for side in exporting.sides}
    exporting.text("dataset_info.json", json.dumps(entries, indent=2) + "\n")
    evaluated = "\neval_dataset: turnmill_eval" if "eval" in exporting.sides else ""
    return Howto(
        "data.yaml",
        f"dataset_dir: .\ndataset: turnmill_train{evaluated}\ncutoff_len: {exporting.data.manifest['max_tokens']}\n",
    )


def _by_turns(exporting: Exporting, side: Side) -> Iterator[dict[str, Json]]:
    """Rows whose odd turns are a user's or a result, and whose even ones the model's."""
    for record in records(exporting, side, "sharegpt"):
        turns = [turn for turn in record["conversations"] if turn["from"] != "system"]
        system = [turn["value"] for turn in record["conversations"] if turn["from"] == "system"]
        if len(system) > 1 or not _alternate(turns):
            exporting.lose("rows whose turns do not alternate")
            continue
        found: dict[str, Json] = {"conversations": [{key: turn[key] for key in ("from", "value")} for turn in turns]}
        found |= {"system": system[0]} if system else {}
        yield found | {key: record[key] for key in ("tools",) if key in record}


def _alternate(turns: list[Json]) -> bool:
    wanted = [ODD if number % 2 == 0 else EVEN for number in range(len(turns))]
    return len(turns) % 2 == 0 and all(turn["from"] in allowed for turn, allowed in zip(turns, wanted, strict=True))


def _entry(file: str) -> Json:
    return {
        "file_name": file,
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
    }

"""Messages in OpenAI's form as JSON lines, and which of them train: for trainers that render themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import takewhile

from turnmill.conversation import Checked, Json
from turnmill.dialects.openai import write_openai
from turnmill.errors import Rejected
from turnmill.exporters import LOAD_JSON, Exporting, Howto, Trains, exporter, sayable, trained_messages
from turnmill.files.prepared import Side

FILES: dict[Side, str] = {"train": "train.jsonl", "eval": "eval.jsonl"}


def messages_of(
    conversation: Checked, trains: Trains, field: str, said: Callable[[bool], Json]
) -> list[dict[str, Json]]:
    """OpenAI's messages, each of the assistant's with a field that says whether it trains."""
    if conversation.is_raw_text:
        raise Rejected("dialect-cannot-say", "a raw text is no chat")
    record = write_openai(conversation)
    found: list[dict[str, Json]] = []
    for message, (_, is_trained) in zip(record["messages"], trained_messages(conversation, trains), strict=True):
        message = {key: value for key, value in message.items() if key != "weight"}
        found.append({**message, field: said(is_trained)} if message["role"] == "assistant" else message)
    return found


def one_system(messages: list[dict[str, Json]], exporting: Exporting) -> list[dict[str, Json]]:
    """The messages for a target that knows one system message and no developer: the leading ones, joined."""
    leading = list(takewhile(lambda message: message["role"] in ("system", "developer"), messages))
    if not leading:
        return messages
    exporting.lose("developer's messages said as the system's", sum(one["role"] == "developer" for one in leading))
    said = {"role": "system", "content": "\n\n".join(one["content"] for one in leading)}
    return [said, *messages[len(leading) :]]


def without_reasoning(messages: list[dict[str, Json]], exporting: Exporting) -> list[dict[str, Json]]:
    """The messages for a target that has no field for reasoning; what is left out is counted."""
    exporting.lose("reasoning left out of messages", sum("reasoning_content" in message for message in messages))
    return [{key: value for key, value in message.items() if key != "reasoning_content"} for message in messages]


def count_weights(exporting: Exporting, trains: Trains) -> None:
    """Count what a switch for each message cannot say."""
    exporting.lose("messages whose weight is neither 0 nor 1", len(trains.weights))
    exporting.lose("rows whose reasoning does not train", int(not trains.reasoning))


@exporter("messages")
def to_messages(exporting: Exporting) -> Howto:
    """Messages in OpenAI's form as JSON lines, each of the assistant's with a field that says whether it trains."""
    field = exporting.weight_field

    def record(conversation: Checked, trains: Trains) -> Json:
        exporting.lose("rows whose reasoning does not train", int(not trains.reasoning))
        weights = trains.weights
        messages = messages_of(conversation, trains, field, lambda is_trained: is_trained)
        for message, (said, is_trained) in zip(messages, trained_messages(conversation, trains), strict=True):
            if message["role"] == "assistant" and field not in ("train", "trainable"):
                message[field] = weights.get(said.recorded, 1) if is_trained else 0
            elif said.recorded in weights:
                exporting.lose("messages whose weight is neither 0 nor 1")
        kept = {key: value for key, value in write_openai(conversation).items() if key != "messages"}
        return {"messages": messages, **kept}

    for side in exporting.sides:
        exporting.lines(FILES[side], sayable(exporting.conversations(side), record, exporting.lose))
    return Howto("load.py", LOAD_JSON.format(file=FILES["train"]))


@exporter("openai")
def to_openai(exporting: Exporting) -> Howto:
    """OpenAI's fine-tuning lines: messages with `weight` 0 or 1, and tools."""

    def record(conversation: Checked, trains: Trains) -> Json:
        count_weights(exporting, trains)
        messages = messages_of(conversation, trains, "weight", int)
        found: dict[str, Json] = {"messages": without_reasoning(messages, exporting)}
        tools = write_openai(conversation).get("tools")
        exporting.lose(
            "rows with template arguments", int(bool(set(conversation.template_kwargs) - {"enable_thinking"}))
        )
        return {**found, "tools": tools} if tools else found

    for side in exporting.sides:
        exporting.lines(FILES[side], sayable(exporting.conversations(side), record, exporting.lose))
    return Howto("upload.py", UPLOAD)


UPLOAD = """from openai import OpenAI

client = OpenAI()
file = client.files.create(file=open("train.jsonl", "rb"), purpose="fine-tune")
print(file.id)
"""


@exporter("together")
def to_together(exporting: Exporting) -> Howto:
    """Together's chat lines: user and assistant by turns, `weight` 0 or 1; rows with tools are left out and counted."""

    def record(conversation: Checked, trains: Trains) -> Json:
        count_weights(exporting, trains)
        messages = messages_of(conversation, trains, "weight", int)
        roles = [message["role"] for message in messages if message["role"] != "system"]
        if roles != ["user", "assistant"] * (len(roles) // 2):
            raise Rejected("dialect-cannot-say", "user and assistant do not speak by turns")
        return {"messages": without_reasoning(messages, exporting)}

    for side in exporting.sides:
        exporting.lines(FILES[side], sayable(exporting.conversations(side), record, exporting.lose))
    return Howto("upload.sh", "together files upload train.jsonl\n")


@exporter("ms-swift")
def to_ms_swift(exporting: Exporting) -> Howto:
    """ms-swift's messages: calls as `tool_call`, `loss` and `loss_scale` on each of the assistant's."""

    def record(conversation: Checked, trains: Trains) -> Json:
        exporting.lose("rows whose reasoning does not train", int(not trains.reasoning))
        messages: list[dict[str, Json]] = []
        for message, (said, is_trained) in zip(
            messages_of(conversation, trains, "loss", bool), trained_messages(conversation, trains), strict=True
        ):
            messages += swift_messages(message, trains.weights.get(said.recorded, 1) if is_trained else 0)
        messages = one_system(messages, exporting)
        tools = write_openai(conversation).get("tools")
        return {"messages": messages, **({"tools": json.dumps(tools, ensure_ascii=False)} if tools else {})}

    for side in exporting.sides:
        exporting.lines(FILES[side], sayable(exporting.conversations(side), record, exporting.lose))
    return Howto("train.sh", "swift sft --dataset train.jsonl --model MODEL\n")


def swift_messages(message: dict[str, Json], weight: float) -> list[dict[str, Json]]:
    """A message as ms-swift has it: reasoning in a think block, a call as a message of its own."""
    role, content = message["role"], message.get("content")
    if role != "assistant":
        return [{"role": role, "content": content}]
    learns: dict[str, Json] = {"loss": weight > 0, **({"loss_scale": weight} if weight not in (0, 1) else {})}
    reasoning = message.get("reasoning_content")
    text = f"<think>\n{reasoning}\n</think>\n\n{content or ''}" if reasoning is not None else content
    found: list[dict[str, Json]] = [{"role": role, "content": text, **learns}] if text else []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        said = {"name": function["name"], "arguments": json.loads(function["arguments"])}
        found.append({"role": "tool_call", "content": json.dumps(said, ensure_ascii=False), **learns})
    return found


@exporter("torchtune")
def to_torchtune(exporting: Exporting) -> Howto:
    """Torchtune's chat lines: every turn of the assistant trains; rows with tools are left out and counted."""

    def record(conversation: Checked, trains: Trains) -> Json:
        count_weights(exporting, trains)
        messages = messages_of(conversation, trains, "weight", int)
        if any("tool_calls" in message or message["role"] == "tool" for message in messages):
            raise Rejected("dialect-cannot-say", "calls and results have no form there")
        unlearned = sum(not message.get("weight", 1) for message in messages)
        exporting.lose("messages that train there and not here", unlearned)
        messages = one_system(without_reasoning(messages, exporting), exporting)
        return {"messages": [{"role": message["role"], "content": message["content"]} for message in messages]}

    for side in exporting.sides:
        exporting.lines(FILES[side], sayable(exporting.conversations(side), record, exporting.lose))
    return Howto("dataset.yaml", TORCHTUNE)


TORCHTUNE = """dataset:
  _component_: torchtune.datasets.chat_dataset
  source: json
  data_files: train.jsonl
  conversation_column: messages
  conversation_style: openai
  train_on_input: false
  packed: true
"""

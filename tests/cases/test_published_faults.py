"""Known faults between the first file and OUT: values that storage changes, and cuts that train the wrong end."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from chats import chat
from published import IGNORE, Published

TOKENIZER = "tokenizer.json"


@pytest.fixture
def prepared(turnmill, write, tmp_path):
    """Prepares records that lie in a JSON lines file or in a Parquet as Arrow infers it."""

    def call(records: list[dict], *flags: str, parquet: bool = False) -> Published:
        data = write("rows.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        if parquet:
            data = tmp_path / "rows.parquet"
            pq.write_table(pa.Table.from_pylist(records), data)
        output = ("--model", "smollm2", "--output", tmp_path / "out", "--workers", "1")
        answer = turnmill("prepare", data, *output, *flags)
        assert answer.code == 0, answer.err
        return Published(tmp_path / "out")

    return call


def calling(arguments: object, properties: object) -> dict:
    """A question, a call with these arguments, its result and an answer."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    answered = [{"role": "tool", "content": "r", "tool_call_id": "c"}, {"role": "assistant", "content": "a"}]
    return {"messages": [*said, *answered], "tools": [tool]}


CITY, ZIP = {"city": {"type": "string"}}, {"zip": {"type": "integer", "minimum": 0}}
UNLIKE = {
    "other keys": [({"city": "Oslo"}, CITY), ({"zip": 150}, ZIP)],
    "one key, other types": [({"n": 5}, CITY), ({"n": 5.5}, CITY), ({"n": "5"}, CITY), ({"n": [5]}, CITY)],
    "no keys at all": [({}, {}), ({"city": "Oslo"}, CITY)],
    "keys inside": [({"at": {"city": "Oslo"}}, CITY), ({"at": {"zip": 150}}, ZIP)],
    "null that was meant": [({"city": None}, CITY), ({"city": "Oslo"}, CITY)],
}


def stored(published: Published) -> list[tuple[object, object]]:
    rows = sorted(published.conversations(), key=lambda row: row["row"])
    calls = [next(message for message in row["messages"] if message["recipient"] == "functions.f") for row in rows]
    tools = [json.loads(row["chat_template_kwargs"])["tools"][0]["function"]["parameters"] for row in rows]
    said = [json.loads(call["content"][0]["text"]) for call in calls]
    return [(arguments, tool["properties"]) for arguments, tool in zip(said, tools, strict=True)]


@pytest.mark.parametrize("what", UNLIKE)
def test_unlike_rows_side_by_side_keep_their_own_keys_and_types(prepared, what):
    published = prepared([calling(*row) for row in UNLIKE[what]])
    assert stored(published) == UNLIKE[what]


def test_a_parquet_that_unified_them_gives_no_row_another_s_keys(prepared):
    rows = UNLIKE["other keys"]
    published = prepared([calling(*row) for row in rows], parquet=True)
    assert stored(published) == rows


NUMBERS = [
    '{"n": 5}',
    '{"n": 5.5}',
    '{"n": 123456789012345678901}',
    '{"n": -0.0}',
    '{"n": 1e-7}',
    '{"n": 9007199254740993}',
]


@pytest.mark.parametrize("as_text", [True, False], ids=["as text", "as an object"])
def test_numbers_keep_their_digits(prepared, as_text):
    rows = [(number if as_text else json.loads(number), ZIP) for number in NUMBERS]
    found = [json.dumps(arguments) for arguments, _ in stored(prepared([calling(*row) for row in rows]))]
    assert found == [json.dumps(json.loads(number)) for number in NUMBERS]


LOOKS = ["2024-01-02", "12:30", "true", "null", "1e5", "[1]", "NaN", "2024-01-02T00:00:00Z", "007"]


@pytest.mark.parametrize("parquet", [False, True])
def test_text_that_looks_like_a_value_stays_text(prepared, parquet):
    published = prepared([chat(text, f"{text} it is") for text in LOOKS], parquet=parquet)
    rows = sorted(published.conversations(), key=lambda row: row["row"])
    said = [[message["content"][0]["text"] for message in row["messages"]] for row in rows]
    assert said == [[text, f"{text} it is"] for text in LOOKS]


LONG = "long " * 200
WHOLE = chat("Say it.", "It.")


def trained(published: Published, tokenizer: Tokenizer) -> list[str]:
    """The trained text of each example, as the packed table labels it."""
    labels = [label for pack in published.packed() for label in pack["labels"]]
    text = tokenizer.decode([label for label in labels if label != IGNORE], skip_special_tokens=False)
    return sorted(
        f"{turn}<|im_end|>" for turn in text.replace("<|im_end|>\n", "<|im_end|>").split("<|im_end|>") if turn
    )


@pytest.fixture(scope="session")
def tokenizer(smollm2_directory) -> Tokenizer:
    return Tokenizer.from_file(str(smollm2_directory / TOKENIZER))


CUTS = {
    "system too long": ({"messages": [{"role": "system", "content": LONG}, *chat("q", "a")["messages"]]}, []),
    "first question too long": (chat(LONG, "a"), []),
    "first answer too long": (chat("q", LONG), []),
    "last question too long": (chat("q1", "a1", LONG, "a2"), ["a1<|im_end|>"]),
    "last answer too long": (chat("q1", "a1", "q2", LONG), ["a1<|im_end|>"]),
    "middle answer too long": (chat("q1", "a1", "q2", LONG, "q3", "a3"), ["a1<|im_end|>"]),
    "all fits": (chat("q1", "a1", "q2", "a2"), ["a1<|im_end|>", "a2<|im_end|>"]),
}


@pytest.mark.parametrize("what", CUTS)
def test_only_whole_answers_train_whatever_is_too_long(prepared, tokenizer, what):
    record, kept = CUTS[what]
    published = prepared([record, WHOLE], "--max-tokens", "64")
    assert trained(published, tokenizer) == sorted([*kept, "It.<|im_end|>"])
    assert Counter(published.report["codes"]).total() == (0 if kept else 1)


@pytest.mark.parametrize("words", range(20, 40))
def test_an_answer_of_any_length_ends_with_its_own_stop_or_does_not_train(prepared, tokenizer, words):
    answer = " ".join(["word"] * words)
    found = trained(prepared([chat("q", answer), WHOLE], "--max-tokens", "48"), tokenizer)
    assert found in (["It.<|im_end|>"], sorted(["It.<|im_end|>", f"{answer}<|im_end|>"]))


PROMPTS = ["What is 2+2?", "what is 2+2? ", "WHAT  IS 2+2?", "What is 2+2?\n", "\u3000What is 2+2?"]


@pytest.mark.parametrize("seed", range(5))
def test_one_prompt_in_several_spellings_stands_on_one_side(prepared, seed):
    rows = [chat(prompt, f"Four, {number}.") for number, prompt in enumerate(PROMPTS)]
    others = [chat(f"What is {number}?", f"{number}.") for number in range(600)]
    published = prepared([*rows, *others], "--split.fraction", "0.3", "--seed", str(seed))
    sides = {side for side in ("train", "eval") for row in published.conversations(side) if row["row"] < len(PROMPTS)}
    assert len(sides) == 1
    assert published.conversations("eval")

"""Gemma 4's turns with its real vocabulary: every answer ends with token 106, and no other model's markers pass."""

import itertools
import json
import shutil

import msgspec
import pytest

import assets
from tokenizer_families import tokenizer_of
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected
from turnmill.options import Fit, Loss, Model, Render
from turnmill.verbs.tokenize import Line, Recipe

pytestmark = [pytest.mark.tokenizers, pytest.mark.xdist_group("gemma-4")]

BOS, TURN, END = 2, 105, 106
TEMPLATES = {"its makers'": None, "TRL's": "gemma4_v5", "turnmill's": "gemma4"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Gemma 4's model directory, whose generation ends as its makers say: at a call's end as well."""
    copy = shutil.copytree(assets.gemma4_directory(), tmp_path_factory.mktemp("gemma") / "gemma-4")
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 106, 50]}))
    return copy


@pytest.fixture(scope="module", params=TEMPLATES)
def recipe(request, directory, trl_templates):
    name = TEMPLATES[request.param]
    path = str(trl_templates / f"{name}.jinja") if request.param == "TRL's" else name
    model = Model(name_or_path=str(directory), template=path)
    return Recipe(model, Render(), Loss(), Fit(overflow="continue"), 400)


@pytest.fixture(scope="module")
def line(recipe):
    return Line(recipe, accelerate=True)


def rows_of(path, dialect, count):
    records = json.loads(path.read_text("utf-8"))[:count]
    return [check(convert(record, dialects.get(dialect), Reading())) for record in records]


@pytest.fixture(scope="module")
def rows(llamafactory_data):
    """Lines of instruction, input and output, in two languages, and conversations of several turns."""
    return [
        *rows_of(llamafactory_data / "alpaca_en_demo.json", "alpaca", 80),
        *rows_of(llamafactory_data / "alpaca_zh_demo.json", "alpaca", 40),
        *rows_of(llamafactory_data / "kto_en_demo.json", "openai", 40),
    ]


@pytest.fixture(scope="module")
def examples(line, recipe, rows):
    """Of every row that fits, whole or in parts."""
    made = list(line.run(rows, recipe))
    assert {one.fault.code for one in made if one.fault} <= {"first-turn-too-long", "far-too-long"}
    return [as_list(part.example) for one in made for part in one.parts]


def as_list(example):
    """The example, its ids as a list of plain numbers."""
    return msgspec.structs.replace(example, input_ids=list(map(int, example.input_ids)))


def trained_stretches(example):
    """The ids of each stretch that trains."""
    start, weighed = 0, []
    for run in example.runs:
        weighed += [(run.weight > 0, number) for number in example.input_ids[start : run.end]]
        start = run.end
    return [[number for _, number in group] for is_trained, group in itertools.groupby(weighed, key=lambda p: p[0])
            if is_trained]  # fmt: skip


def test_the_vocabulary_is_the_models_own():
    texts = assets.gemma4_texts()
    tokenizer = tokenizer_of("gemma-4")
    assert len(texts) > 40
    assert [tokenizer.encode(text, add_special_tokens=False).ids for text, _ in texts] == [ids for _, ids in texts]
    assert [tokenizer.token_to_id(token) for token in ("<bos>", "<|turn>", "<turn|>")] == [BOS, TURN, END]


def test_every_trained_turn_ends_with_the_end_of_its_turn(examples):
    assert len(examples) > 120
    for example in examples:
        stretches = trained_stretches(example)
        assert {stretch[-1] for stretch in stretches} == {END}
        assert all(stretch.count(END) == 1 for stretch in stretches)
        assert [example.input_ids[end - 1] for end in example.turn_ends] == [END] * len(stretches)


def test_every_turn_opens_and_closes(examples):
    for example in examples:
        assert example.input_ids.count(TURN) == example.input_ids.count(END)


def test_every_text_begins_once(examples):
    assert {(example.input_ids[0], example.input_ids.count(BOS)) for example in examples} == {(BOS, 1)}


def test_a_beginning_that_the_tokenizer_adds_is_not_a_second_one(directory, line, recipe, rows, tmp_path):
    adding = shutil.copytree(directory, tmp_path / "adding")
    stored = json.loads((adding / "tokenizer.json").read_text("utf-8"))
    single = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    known = {"<bos>": {"id": "<bos>", "ids": [BOS], "tokens": ["<bos>"]}}
    stored["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": [*single, single[1]],
                                "special_tokens": known}  # fmt: skip
    (adding / "tokenizer.json").write_text(json.dumps(stored), "utf-8")
    other = Line(Recipe(Model(str(adding), recipe.model.template), Render(), Loss(), Fit(), 128))
    assert other.model.added_before == ("<bos>",)
    ours, theirs = (list(one.run(rows[:5], recipe)) for one in (line, other))
    parts = [[as_list(part.example) for made in one for part in made.parts] for one in (ours, theirs)]
    assert parts[0] == parts[1]


OTHERS = {
    "gemma": ("<end_of_turn>", "<start_of_turn>"), "gemma3": ("<end_of_turn>", "<start_of_turn>"),
    "qwen3": ("<|im_end|>", "<|im_start|>"), "llama3": ("<|eot_id|>", "<|start_header_id|>"),
}  # fmt: skip
"""A template → what ends its turns, and what opens them."""


@pytest.mark.parametrize("template", OTHERS)
def test_markers_of_another_model_are_caught(turnmill, directory, trl_templates, template):
    end, opening = OTHERS[template]
    path = trl_templates / f"{template}.jinja"
    flags = ("--template", path, "--special-tokens", json.dumps({"eos_token": end}))
    answer = turnmill("template", "check", directory, *flags)
    assert answer.code == 3
    assert "[turn-marker-not-a-token]" in answer.err
    assert opening in answer.err


def test_no_run_starts_with_markers_of_another_model(turnmill, write, directory, trl_templates, tmp_path):
    data = write("rows.jsonl", '{"instruction": "Name a prime.", "output": "Seven."}\n')
    flags = ("--template", trl_templates / "gemma3.jinja", "--special-tokens", '{"eos_token": "<end_of_turn>"}')
    answer = turnmill("prepare", data, "--model", directory, *flags, "--output", tmp_path / "out", "--workers", "1")
    assert (answer.code, (tmp_path / "out").exists()) == (2, False)
    assert "[turn-marker-not-a-token]" in answer.err


def test_a_turn_that_does_not_fit_whole_does_not_train(line, recipe):
    record = {"instruction": "Count.", "output": " ".join(map(str, range(2000)))}
    row = check(convert(record, dialects.get("alpaca"), Reading()))
    (made,) = line.run([row], recipe)
    assert not made.parts
    assert isinstance(made.fault, Rejected)

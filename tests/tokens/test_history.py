"""One row in several examples: every trained turn in just one of them, under the weights of the row."""

import pytest

from turnmill.contract import check
from turnmill.options import Fit, Model, Render
from turnmill.rendered import Loss
from turnmill.rendering.history import BOTH, REASONED
from turnmill.rendering.samples import conversation
from turnmill.verbs.tokenize import Line, Recipe


@pytest.fixture(scope="session")
def recipe(trl_templates, smollm2_directory):
    model = Model(str(smollm2_directory), template=str(trl_templates / "qwen3.jinja"))
    return lambda history, **loss: Recipe(model, Render(history=history), Loss(**loss), Fit(), 4096)


@pytest.fixture(scope="session")
def line(recipe):
    return Line(recipe("final"))


def made(line, recipe, lines=BOTH):
    line.clear()
    row = conversation(lines)
    return next(line.run([check(row.__class__(row.messages, row.tools, meta={"row": 0}))], recipe))


def trained_messages(parts):
    return [run.message for part in parts for run in part.example.runs if run.weight > 0 and run.kind == "stop"]


@pytest.mark.parametrize(("history", "examples"), [("final", 1), ("auto", 3), ("per-turn", 5)])
def test_every_turn_trains_in_just_one_example(line, recipe, history, examples):
    parts = made(line, recipe(history)).parts
    assert [part.example.part for part in parts] == list(range(examples))
    assert trained_messages(parts) == [1, 3, 5, 7, 9]
    assert len({part.example.row_id for part in parts}) == 1


def test_the_parity_of_the_final_render_is_counted(line, recipe):
    made(line, recipe("final"))
    assert line.counts["history/turns"] == 5
    assert line.counts["history/as-prompted"] == 3
    assert line.counts["history/without-reasoning"] == 3


@pytest.mark.parametrize("history", ["auto", "per-turn"])
@pytest.mark.parametrize("scaling", ["progressive", "last-heavy"])
def test_scaled_weights_have_mean_one_over_the_row(line, recipe, history, scaling):
    total = tokens = 0
    for part in made(line, recipe(history, scaling=scaling), REASONED).parts:
        start = 0
        for run in part.example.runs:
            tokens += (run.end - start) * (run.weight > 0)
            total += (run.end - start) * run.weight
            start = run.end
    assert total == pytest.approx(tokens)


@pytest.mark.parametrize("history", ["final", "auto", "per-turn"])
def test_only_the_last_turn_is_one_example(line, recipe, history):
    assert trained_messages(made(line, recipe(history, turns="last")).parts) == [9]


@pytest.mark.parametrize("history", ["auto", "per-turn"])
def test_results_train_once(line, recipe, history):
    parts = made(line, recipe(history, observations=True)).parts
    results = [run.message for part in parts for run in part.example.runs if run.weight > 0 and run.kind == "result"]
    assert results == [2, 6]


def test_the_ids_before_a_turn_are_those_of_its_prompt(line, recipe):
    done = made(line, recipe("auto"))
    row, kwargs = done.conversation, line.renderer.kwargs_of(done.conversation)
    for view in done.views:
        example = view.parts[0].example
        first = next(number for number, run in enumerate(example.runs) if run.weight > 0)
        length = next(n for n, m in enumerate(row.messages) if m.recorded == example.runs[first].message)
        prompt = line.renderer.template.plain(row.beginning(length), line.renderer.probe.form, kwargs, prompt=True)
        ids = line.tokenizer.encode(prompt, add_special_tokens=False).ids
        assert list(example.input_ids[: len(ids)]) == ids

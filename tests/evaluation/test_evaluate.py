"""The evaluator against each document's loss alone, by the plain forward of small random models."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from evaluation_rows import alone, example, uneven
from tiny_models import tiny_model
from turnmill.errors import HealthError, UsageError
from turnmill.evaluation.evaluate import bare_model, evaluate
from turnmill.evaluation.sets import EvalSet, MadeItems, made_set, sampled
from turnmill.isolation import probe
from turnmill.options import Evaluate
from turnmill.rendered import Example, Kind, Run


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def together(model, examples: list[Example]) -> list[np.ndarray]:
    return [np.concatenate(parts) for parts in zip(*(alone(model, one) for one in examples), strict=True)]


@pytest.mark.parametrize("max_batch_tokens", [1, 64, 200, 10_000])
def test_the_loss_is_that_of_the_documents_alone(model, max_batch_tokens):
    examples = uneven()
    nll, entropy, weights, _ = together(model, examples)
    found = evaluate(model, [made_set("chats", examples)], options=Evaluate(max_batch_tokens=max_batch_tokens))
    assert found.loss == pytest.approx(nll @ weights / weights.sum(), abs=1e-5)
    assert found.total.tokens == (weights > 0).sum()
    assert found.entropy == pytest.approx(entropy[weights > 0].mean(), abs=1e-4)


def test_it_is_no_mean_of_the_means_of_batches(model):
    examples = [example(1, [1, 1, 1, 1, 1, 1, 1, 1]), example(2, [2, 2, 9, 9, 9, 2, 9, 9])]
    means = [nll[weights > 0].mean() for nll, _, weights, _ in (alone(model, one) for one in examples)]
    found = evaluate(model, [made_set("chats", examples)], options=Evaluate(max_batch_tokens=1))
    assert abs(found.loss - np.mean(means)) > 1e-3


def test_labels_are_shifted_once(model):
    ids = [1, 5, 6, 2]
    runs = [Run(2, 0, "user", 0.0), Run(3, 1, "answer", 1.0), Run(4, 1, "stop", 1.0)]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    expected = torch.nn.functional.cross_entropy(logits[1:3], torch.tensor(ids[2:]))
    found = evaluate(model, [made_set("a", [Example("row", 0, "a", "a.jsonl", 1, ids, runs, [4])])])
    assert found.loss == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("kind", ["answer", "reasoning", "call", "stop"])
def test_each_kind_has_its_own_loss(model, kind):
    examples = uneven()
    nll, _, weights, kinds = together(model, examples)
    group = evaluate(model, [made_set("chats", examples)]).groups[kind]
    assert group.loss == pytest.approx(nll[(kinds == kind) & (weights > 0)].mean(), abs=1e-5)
    assert group.tokens == (kinds == kind).sum()


def test_observations_are_scored_on_request_apart_from_the_loss(model):
    examples = uneven()
    nll, _, _, kinds = together(model, examples)
    without = evaluate(model, [made_set("chats", examples)])
    found = evaluate(model, [made_set("chats", examples)], options=Evaluate(observations=True))
    assert "observation" not in without.groups
    assert found.groups["observation"].loss == pytest.approx(nll[kinds == "result"].mean(), abs=1e-5)
    assert found.loss == pytest.approx(without.loss, abs=1e-6)


def test_weights_of_the_loss_are_honoured(model):
    examples = [example(1, [3] * 8, [0, 0, 0.5, 0, 2, 0, 1, 1]), example(2, [2] * 8, [0, 0, 0, 0, 0, 0, 0.25, 1])]
    nll, _, weights, _ = together(model, examples)
    found = evaluate(model, [made_set("chats", examples)])
    assert found.loss == pytest.approx(nll @ weights / weights.sum(), abs=1e-5)
    assert found.total.nll == pytest.approx(nll[weights > 0].sum(), abs=1e-4)


def two_turns(part: int, last: Kind) -> Example:
    ids = np.arange(12, dtype=np.int32)
    kinds: list[Kind] = ["user", "answer", "stop", "user", "answer", last]
    runs = [Run(2 * n + 2, n, kind, 0.0 if kind == "user" else 1.0) for n, kind in enumerate(kinds)]
    return Example("row", part, "chats", "a.jsonl", 1, ids, runs, [6, 12])


def test_the_final_answer_is_that_of_the_last_turn(model):
    one = two_turns(0, "stop")
    nll = alone(model, one)[0]
    groups = evaluate(model, [made_set("chats", [one])]).groups
    assert groups["final-answer"].loss == pytest.approx(nll[7:9].mean(), abs=1e-5)
    assert (groups["answer"].tokens, groups["final-answer"].tokens) == (4, 2)


def test_the_final_answer_is_in_the_last_part_alone(model):
    found = evaluate(model, [made_set("chats", [two_turns(0, "stop"), two_turns(1, "stop")])])
    assert found.groups["final-answer"].tokens == 2


def test_a_last_turn_that_calls_a_tool_has_no_final_answer(model):
    assert "final-answer" not in evaluate(model, [made_set("chats", [two_turns(0, "call")])]).groups


@pytest.mark.parametrize("model_type", ["llama", "gpt_oss"])
def test_packed_rows_give_the_losses_of_padded_ones(model_type):
    model, examples = tiny_model(model_type), uneven(12)
    verdict = probe(model)
    packing = "on" if verdict.isolates else "auto"
    found = evaluate(
        model, [made_set("chats", examples)], options=Evaluate(packing=packing), probe_verdict=verdict, keep_items=True
    )
    padded = evaluate(model, [made_set("chats", examples)], keep_items=True)
    assert found.layout == verdict.layout
    for one, other in zip(found.items, padded.items, strict=True):
        assert one.total.nll == pytest.approx(other.total.nll, abs=1e-4)


def test_packing_is_refused_where_it_leaks():
    model = tiny_model("gpt_oss")
    with pytest.raises(UsageError, match="does not keep packed examples apart"):
        evaluate(model, [made_set("a", uneven())], options=Evaluate(packing="on"), probe_verdict=probe(model))


def weighed(name: str, examples: list[Example], importance: float | None) -> EvalSet:
    return EvalSet(name, MadeItems(examples), importance)


def test_the_composite_weighs_the_sets_that_are_there(model):
    sets = [weighed("a", uneven(3), 3.0), weighed("b", uneven(6)[3:], 1.0), weighed("gone", [], 6.0)]
    found = evaluate(model, sets)
    a, b = found.sets["a"].total.loss, found.sets["b"].total.loss
    assert found.loss == pytest.approx((3 * a + b) / 4)
    assert found.missing == {"gone": "no rows"}


def test_a_set_without_importance_is_only_watched(model):
    found = evaluate(model, [weighed("a", uneven(3), 1.0), weighed("watched", uneven(6)[3:], 0.0)])
    assert found.loss == found.sets["a"].total.loss
    assert found.total == found.sets["a"].total
    assert "eval/watched/loss" in found.metrics()


def test_sets_that_are_all_only_watched_count_by_their_tokens(model):
    found = evaluate(model, [weighed("a", uneven(3), 0.0), weighed("b", uneven(6)[3:], 0.0)])
    assert found.loss == pytest.approx(evaluate(model, [made_set("all", uneven(6))]).loss)


def test_the_keys_are_those_of_training_logs(model):
    found = evaluate(model, [EvalSet("a", MadeItems(uneven(3)), None, regression_floor=0.5)])
    metrics = found.metrics(train_loss=4.0)
    assert metrics["eval/gap"] == pytest.approx(found.loss - 4.0)
    assert metrics["eval/ppl"] == pytest.approx(math.exp(found.loss))
    assert metrics["eval/a/loss"] == found.loss
    assert (metrics["eval/regressions"], found.alarms) == (1.0, ["a"])


def test_the_model_is_left_as_it_was():
    model = tiny_model("llama", attention_dropout=0.5)
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    first = evaluate(model, [made_set("a", uneven())])
    assert [module.training for module in model.modules()] == modes
    assert evaluate(model, [made_set("a", uneven())]) == first
    model(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()


def test_a_trainers_own_forward_comes_back(model):
    def forward(*_, **__):
        raise AssertionError("the trainer's forward ran")

    model.forward = forward
    try:
        assert math.isfinite(evaluate(model, [made_set("a", uneven(2))]).loss)
        assert model.__dict__["forward"] is forward
    finally:
        del model.forward


def test_the_model_is_found_inside_what_training_puts_around_it(model):
    class Around(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.module = inner

    assert bare_model(Around(model)) is model
    assert evaluate(Around(model), [made_set("a", uneven(2))]) == evaluate(model, [made_set("a", uneven(2))])


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers so
def test_adapters_that_put_tokens_before_rows_are_refused():
    import peft

    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    with pytest.raises(UsageError, match="PROMPT_TUNING put tokens of their own before each row"):
        evaluate(peft.get_peft_model(tiny_model("llama"), config), [made_set("a", uneven(2))])


def test_rows_that_the_model_cannot_read_are_counted(model):
    long = example(1, [20] * 8)
    found = evaluate(model, [made_set("a", [long, *uneven(3)[1:]])])
    assert found.sets["a"].unscored == {"160 tokens; the model sees 64": 1}
    assert found.sets["a"].examples == 2


def test_nothing_that_trains_is_an_error(model):
    with pytest.raises(HealthError, match="nothing to evaluate: a: no trainable tokens"):
        evaluate(model, [made_set("a", [example(1, [2] * 8, [0] * 8)])])


def test_a_loss_that_is_no_number_is_told(model):
    broken = tiny_model("llama")
    with torch.no_grad():
        broken.model.norm.weight.fill_(float("nan"))
    found = evaluate(broken, [made_set("a", uneven(2))])
    assert math.isnan(found.loss)
    assert found.not_finite == ["a"]
    assert found.as_json()["loss"] is None


def test_two_sets_of_one_name_are_refused(model):
    with pytest.raises(UsageError, match="two evaluation sets are called 'a'"):
        evaluate(model, [made_set("a", uneven(1)), made_set("a", uneven(1))])


def test_a_draw_keeps_its_rows_when_others_come():
    rows = [f"row-{number}" for number in range(50)]
    drawn = {rows[place] for place in sampled(rows, 10, 1)}
    more = [*reversed(rows), "row-new"]
    again = {more[place] for place in sampled(more, 10, 1)}
    assert len(drawn) == 10
    assert len(drawn & again) >= 9
    assert {rows[place] for place in sampled(rows, 10, 2)} != drawn


def test_all_parts_of_a_drawn_row_are_drawn():
    assert sampled(["a", "b", "a", "c"], 1, 0).tolist() in ([0, 2], [1], [3])

from __future__ import annotations

import numpy as np
import pytest

from memorised import small
from tiny_models import tiny_model
from turnmill.evaluation.local_model import LocalModel
from turnmill.evaluation.questions import Question
from turnmill.evaluation.respondents import Sampling
from turnmill.scorers import Unscored


class Spelling:
    """A tokenizer whose text is the numbers of its tokens."""

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return " ".join(map(str, ids))


def question(number: int, prompt: int, answer: int = 4, turn: int = 0, ids: np.ndarray | None = None) -> Question:
    tokens = np.random.default_rng(number).integers(3, 96, prompt + answer).astype(np.int32) if ids is None else ids
    return Question(
        f"row-{number}", 0, turn, 1, "s", "f", number, tokens[:prompt], tokens[prompt : prompt + answer],
        np.ones(answer, np.bool_), 0, {"messages": []}, "", "",
    )  # fmt: skip


QUESTIONS = [question(number, prompt) for number, prompt in enumerate((3, 17, 9, 9, 12, 5))]


GREEDY = Sampling(max_new_tokens=8)


def asked(model, sampling=GREEDY, questions=QUESTIONS, **more) -> list[str]:
    local = LocalModel(model, Spelling(), [1, 2], sampling, {}, **more)
    return [answer.text for _, answer in sorted(local.answers(questions))]


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma3_text", "gpt_oss", "mamba2", "opt", "lfm2"])
def test_answers_in_a_batch_are_those_of_each_alone(model_type):
    model = tiny_model(model_type)
    together = asked(model)
    alone = [text for one in QUESTIONS for text in asked(model, questions=[one])]
    assert together == alone
    assert len(set(together)) > 1


def test_where_padding_changes_logits_only_equal_lengths_share_a_batch():
    local = LocalModel(tiny_model("llama"), Spelling(), [1], Sampling(), {})
    local.pads_exactly = False
    batches = [{len(QUESTIONS[number].prompt_ids) for number in batch} for batch in local._batches(QUESTIONS)]
    assert batches == [{17}, {12}, {9}, {5}, {3}]


def test_a_padded_batch_is_tried_before_it_is_trusted():
    assert LocalModel(tiny_model("llama"), Spelling(), [1], Sampling(), {}).pads_exactly


@pytest.mark.parametrize("sampling", [Sampling(1.0, seed=5, max_new_tokens=8), Sampling(1.5, 0.7, 5, 8)])
def test_drawn_answers_hang_on_the_seed_and_not_on_the_batch(sampling):
    model = tiny_model("llama")
    together = asked(model, sampling)
    assert together == asked(model, sampling, max_batch_tokens=1) == asked(model, sampling, QUESTIONS)
    assert together != asked(model, sampling._replace(seed=6))


def test_draws_follow_the_distribution():
    model = tiny_model("llama", vocab_size=5)
    many = [question(number, 3, ids=np.array([1, 2, 3, 4, 4, 4, 4], np.int32)) for number in range(600)]
    local = LocalModel(model, Spelling(), [], Sampling(0.7, max_new_tokens=1), {})
    drawn = np.bincount([int(answer.text) for _, answer in local.answers(many)], minlength=5) / len(many)
    import torch

    logits = model(input_ids=torch.tensor([[1, 2, 3]])).logits[0, -1].float()
    assert drawn == pytest.approx((logits / 0.7).softmax(-1).detach().numpy(), abs=0.06)


def test_the_models_own_generation_settings_are_put_aside_and_kept():
    model = tiny_model("llama")
    plain = asked(model)
    model.generation_config.update(do_sample=True, temperature=9.0, repetition_penalty=9.0, top_k=3)
    assert asked(model) == plain
    assert (model.generation_config.do_sample, model.generation_config.top_k) == (True, 3)


def test_an_answer_ends_at_the_first_end():
    local = LocalModel(small(), Spelling(), [7], Sampling(), {})
    found = [local._answer(ids, QUESTIONS[0]) for ids in ([4, 5, 7, 9], [4, 5, 9])]
    assert [(answer.text, answer.ended) for answer in found] == [("4 5", True), ("4 5 9", False)]


def test_a_prompt_that_the_model_cannot_see_has_no_answer():
    found = dict(LocalModel(tiny_model("llama"), Spelling(), [1], Sampling(), {}).answers([question(1, 60)]))
    assert found[0].fault == "the prompt and room for the answer are 96 tokens; the model sees 64"


def test_a_prompt_with_a_token_that_the_model_has_not_has_no_answer():
    beyond = question(1, 3, ids=np.array([3, 96, 5, 6], dtype=np.int32))
    found = dict(LocalModel(tiny_model("llama"), Spelling(), [1], Sampling(), {}).answers([beyond]))
    assert found[0].fault == "token 96 is not among the model's 96"


def test_recorded_answers_cost_what_they_cost_alone():
    model = tiny_model("llama")
    ids = np.random.default_rng(8).integers(3, 96, 30).astype(np.int32)
    two = [question(1, 6, 4, 0, ids), question(1, 18, 9, 1, ids)]
    local = LocalModel(model, Spelling(), [1], Sampling(), {})
    together = dict(local.costs([*two, question(2, 7)]))
    for number, one in enumerate(two):
        alone = question(10 + number, len(one.prompt_ids), len(one.answer_ids), ids=ids)
        assert together[number] == pytest.approx(dict(local.costs([alone]))[0], rel=1e-4)


def test_what_cannot_be_read_costs_nothing_that_is_known():
    (found,) = dict(LocalModel(tiny_model("llama"), Spelling(), [1], Sampling(), {}).costs([question(1, 80)])).values()
    assert isinstance(found, Unscored)

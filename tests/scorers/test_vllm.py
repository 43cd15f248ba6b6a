"""What is read out of vLLM's answers; vLLM itself needs a GPU and is not run here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from turnmill.errors import UsageError
from turnmill.options import Score
from turnmill.scorers import ToScore, Unscored
from turnmill.scorers.vllm import VllmScorer, open_vllm, prompt_nll

ONE = ToScore(np.array([5, 6, 7], np.int32), np.array([False, False, True]))


def logprob(value: float) -> SimpleNamespace:
    return SimpleNamespace(logprob=value)


def test_the_wanted_tokens_are_read():
    found = prompt_nll(ONE, [None, {6: logprob(-1.0)}, {9: logprob(-0.1), 7: logprob(-2.5)}])
    assert found.tolist() == [2.5]


@pytest.mark.parametrize("answer", [None, [None], [None, {6: logprob(-1.0)}, {9: logprob(-0.1)}], [None, None, None]])
def test_what_is_missing_is_said(answer):
    assert isinstance(prompt_nll(ONE, answer), Unscored)


def test_an_engine_is_asked_for_the_token_ids_themselves():
    asked = []

    def generate(prompts, sampling, use_tqdm):
        asked.extend(prompts)
        return [SimpleNamespace(prompt_logprobs=[None, {6: logprob(-1.0)}, {7: logprob(-0.5)}])]

    scorer = VllmScorer(SimpleNamespace(generate=generate), None, {})
    ((number, found),) = scorer.nll([ONE])
    assert (number, found.tolist(), asked) == (0, [0.5], [{"prompt_token_ids": [5, 6, 7]}])


def test_a_missing_extra_is_named(tmp_path):
    with pytest.raises(UsageError, match="needs vLLM") as fault:
        open_vllm(Score(), tmp_path, 10)
    assert fault.value.next_step == "pip install vllm"

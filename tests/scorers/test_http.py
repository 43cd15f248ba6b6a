"""The scorer `http` against an endpoint that echoes, and against such as do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from turnmill import endpoints
from turnmill.errors import UsageError
from turnmill.options import Score
from turnmill.scorers import ToScore, Unscored
from turnmill.scorers.http import echoed, open_http


def echo(body: dict[str, Any], number: int = 0) -> tuple[int, Any]:
    """Every token costs a hundredth of its id; one token more is made."""
    values = [None, *(-token / 100 for token in body["prompt"][1:]), -9.0]
    return 200, {"choices": [{"logprobs": {"token_logprobs": values}}]}


def asked(*ids: int) -> ToScore:
    return ToScore(np.array(ids, np.int32), np.array([False] + [True] * (len(ids) - 1)))


def test_prompts_are_scored_whole_and_once(endpoint):
    server = endpoint(echo)
    found = dict(open_http(server.options, None, 100).nll([asked(1, 2, 3), asked(4, 50), asked(7, 8)]))
    assert {number: values.tolist() for number, values in found.items()} == {
        0: pytest.approx([0.02, 0.03]), 1: pytest.approx([0.5]), 2: pytest.approx([0.08]),
    }  # fmt: skip
    assert len(server.requests) == 4
    sent = server.requests[0]
    assert (sent["path"], sent["echo"], sent["model"]) == ("/v1/completions", True, "m")


def test_a_key_goes_into_the_header_and_nowhere_else(endpoint, monkeypatch):
    monkeypatch.setenv("TURNMILL_API_KEY", "secret")
    server = endpoint(echo)
    scorer = open_http(server.options, None, 100)
    assert server.keys == ["Bearer secret"]
    assert "secret" not in json.dumps(scorer.identity)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_endpoint_that_is_busy_is_asked_again(endpoint, status):
    server = endpoint(lambda body, number: (status, {}) if number in (1, 2) else echo(body))
    found = dict(open_http(server.options, None, 100).nll([asked(1, 2)]))
    assert found[0].tolist() == pytest.approx([0.02])
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"text": "hi", "logprobs": None}]},
        {"choices": [{"logprobs": {"token_logprobs": [-0.5]}}]},
        {"choices": []},
        [],
        {"choices": [{"logprobs": {"token_logprobs": [None, "x", -1, -1]}}]},
        {"choices": [{"logprobs": {"token_logprobs": [-1, -1, -1, -1]}}]},
    ],
)
def test_an_endpoint_that_ignores_echo_is_refused_before_any_row(endpoint, answer):
    server = endpoint(lambda *_: (200, answer))
    with pytest.raises(UsageError, match="ignores `echo`"):
        open_http(server.options, None, 100)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "content"), [(401, {"error": "no key"}), (404, b"<html>"), (200, b"<html>")])
def test_an_endpoint_that_refuses_is_quoted(endpoint, status, content):
    with pytest.raises(UsageError, match="cannot score with model 'm'"):
        open_http(endpoint(lambda *_: (status, content)).options, None, 100)


def test_an_endpoint_that_is_down_is_named(monkeypatch):
    monkeypatch.setattr(endpoints, "BACKOFF_S", 0.0)
    with pytest.raises(UsageError, match="no answer after 6 tries"):
        open_http(Score(scorer="http", url="http://127.0.0.1:9/v1", model="m", timeout_s=2), None, 100)


def test_one_prompt_that_is_refused_costs_no_other(endpoint):
    server = endpoint(lambda body, _: (400, {"error": "too long"}) if len(body["prompt"]) == 3 else echo(body))
    found = dict(open_http(server.options, None, 100).nll([asked(1, 2, 3), asked(4, 50)]))
    assert isinstance(found[0], Unscored)
    assert "too long" in found[0].reason
    assert found[1].tolist() == [0.5]


@pytest.mark.parametrize(("missing", "said"), [("url", "needs an endpoint"), ("model", "the model's name")])
def test_what_is_not_given_is_asked_for(missing, said):
    options = {"scorer": "http", "url": "http://127.0.0.1:9/v1", "model": "m", missing: None}
    with pytest.raises(UsageError, match=said):
        open_http(Score(**options), None, 100)


def test_a_non_finite_log_probability_is_kept_for_selection_to_count():
    found = echoed({"choices": [{"logprobs": {"token_logprobs": [None, float("-inf")]}}]}, 2)
    assert np.isneginf(found[1])

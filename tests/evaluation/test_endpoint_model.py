from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from turnmill.endpoints import Endpoint, open_pool
from turnmill.errors import UsageError
from turnmill.evaluation.endpoint_model import EndpointModel, only_model
from turnmill.evaluation.questions import Question
from turnmill.evaluation.respondents import Sampling


def question(number: int, said: str = "x") -> Question:
    ids = np.arange(10, 20, dtype=np.int32)
    chat = {"messages": [{"role": "user", "content": f"q{number}"}], "tools": [{"type": "function"}]}
    trained = np.array([1, 1, 1, 0], np.bool_)
    return Question(f"r{number}", 0, 0, 1, "s", "f", number, ids[:6], ids[6:], trained, 1, chat, "q", said)


def chats(body: dict[str, Any], number: int = 0) -> tuple[int, Any]:
    """Says what was asked, in capitals; echoes no prompt."""
    if body["path"].endswith("/models"):
        return 200, {"data": [{"id": "only"}]}
    if not body["path"].endswith("/chat/completions"):
        return 400, {"error": "no such thing"}
    text = body["messages"][-1]["content"].upper()
    return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def opened(server, sampling: Sampling | None = None) -> EndpointModel:
    endpoint = Endpoint(open_pool("a test", 20, 4), server.url, "m", purpose="be asked", otherwise="curl URL/models")
    return EndpointModel(endpoint, sampling or Sampling())


def test_questions_are_asked_as_chats(endpoint):
    server = endpoint(chats)
    found = dict(opened(server).answers([question(1), question(2)]))
    assert {number: answer.text for number, answer in found.items()} == {0: "Q1", 1: "Q2"}
    sent = next(body for body in server.requests if body.get("messages") == question(2).chat["messages"])
    assert (sent["path"], sent["model"], sent["temperature"], sent["max_tokens"]) == (
        "/v1/chat/completions",
        "m",
        0,
        36,
    )
    assert "tools" in sent
    assert "seed" not in sent


def test_a_draw_sends_its_seed(endpoint):
    server = endpoint(chats)
    dict(opened(server, Sampling(0.5, 0.9, 7)).answers([question(1)]))
    assert (server.requests[-1]["temperature"], server.requests[-1]["top_p"], server.requests[-1]["seed"]) == (
        0.5,
        0.9,
        7,
    )


def test_calls_and_cut_answers_are_told(endpoint):
    call = {"function": {"name": "f", "arguments": '{"b":1, "a":2}'}}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "length"}
    found = dict(opened(endpoint(lambda *_: (200, {"choices": [choice]}))).answers([question(1)]))
    assert found[0] == ('{"arguments": {"a": 2, "b": 1}, "name": "f"}', False, None)


@pytest.mark.parametrize("calls", ["zz", 5, [5], [{"function": 3}], {"function": {}}])
def test_calls_that_are_none_are_left_out(endpoint, calls):
    choice = {"message": {"content": "hi", "tool_calls": calls}}
    found = dict(opened(endpoint(lambda *_: (200, {"choices": [choice]}))).answers([question(1)]))
    assert found[0].text == "hi"


def test_one_question_that_is_refused_costs_no_other(endpoint):
    def answer(body, number):
        return (
            (422, {"error": "tools?"}) if body.get("tools") and body["messages"][0]["content"] == "q1" else chats(body)
        )

    found = dict(opened(endpoint(answer)).answers([question(1), question(2)]))
    assert "422" in found[0].fault
    assert found[1].text == "Q2"


def test_costs_come_from_an_endpoint_that_echoes(endpoint):
    def answer(body, number):
        if "prompt" in body:
            return 200, {"choices": [{"logprobs": {"token_logprobs": [None, *(-t / 100 for t in body["prompt"][1:])]}}]}
        return chats(body)

    model = opened(endpoint(answer))
    assert model.costless is None
    assert dict(model.costs([question(1)]))[0] == pytest.approx(0.16 + 0.17 + 0.18)


def test_an_endpoint_that_echoes_nothing_says_so(endpoint):
    assert "cannot be asked" in opened(endpoint(chats)).costless


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((200, {"choices": []}), "has no choices"),
        ((200, b"<html>"), "it answers 400"),
        ((404, {"error": "no model m"}), "no model m"),
        ((401, {"error": "key"}), "401"),
    ],
)
def test_an_endpoint_that_cannot_chat_is_refused_before_any_question(endpoint, reply, said):
    server = endpoint(lambda *_: reply)
    with pytest.raises(UsageError, match=said) as caught:
        opened(server)
    assert caught.value.next_step == "curl URL/models"
    assert len(server.requests) == 1


@pytest.mark.parametrize(("models", "said"), [(["a", "b"], "it has a, b"), ([], "does not say")])
def test_a_server_of_several_models_asks_for_a_name(endpoint, models, said):
    server = endpoint(lambda *_: (200, {"data": [{"id": name} for name in models]}))
    place = Endpoint(open_pool("a test", 20, 4), server.url, "", purpose="be asked", otherwise="")
    with pytest.raises(UsageError, match=said):
        only_model(place)

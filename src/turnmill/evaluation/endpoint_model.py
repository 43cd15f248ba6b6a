"""A model behind an OpenAI-compatible endpoint that is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turnmill.conversation import Json
from turnmill.endpoints import Endpoint, Reply
from turnmill.errors import UsageError, quote, redacted
from turnmill.evaluation.questions import Question, by_example, call_line
from turnmill.evaluation.respondents import Answer, Sampling
from turnmill.scorers import Unscored
from turnmill.scorers.http import HttpScorer

CHAT = "/chat/completions"
MODELS = "/models"
HELLO: dict[str, Json] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, "temperature": 0}


class EndpointModel:
    """`/chat/completions`; what recorded answers cost it by `/completions`, where that echoes.

    Args:
        endpoint: the server and its model.
        sampling: how answers are drawn.
    """

    def __init__(self, endpoint: Endpoint, sampling: Sampling) -> None:
        self._endpoint, self._sampling = endpoint, sampling
        self._scorer = HttpScorer(endpoint)
        self.identity: dict[str, Json] = {"model": endpoint.model, "url": redacted(endpoint.url)}
        self._probe()
        self.costless: str | None = None
        try:
            self._scorer.probe()
        except UsageError as fault:
            self.costless = fault.message

    def _probe(self) -> None:
        """Say hello.

        Raises:
            UsageError: no answer, or none as a chat endpoint gives it.
        """
        reply = self._endpoint.post(CHAT, HELLO)
        if reply.fault is not None:
            raise self._endpoint.unusable(reply.fault, CHAT)
        if _choice(reply) is None:
            why = f"its answer has no choices[0].message: {quote(str(reply.body))}"
            raise self._endpoint.unusable(why, CHAT)

    def recorded(self, question: Question) -> str:
        """Text, then calls as lines of JSON."""
        return question.said

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """As many at once as were asked for."""
        return self._endpoint.each(self._answer, questions)

    def _answer(self, question: Question) -> Answer:
        drawn = {"top_p": self._sampling.top_p, "seed": self._sampling.seed} if self._sampling.temperature else {}
        room = {"max_tokens": self._sampling.room(question), "temperature": self._sampling.temperature}
        reply = self._endpoint.post(CHAT, {**question.chat, **room, **drawn})
        if reply.fault is not None:
            return Answer("", False, f"the endpoint: {reply.fault}")
        choice = _choice(reply)
        if choice is None:
            return Answer("", False, "the endpoint's answer has no choices[0].message")
        return Answer(_said(choice["message"]), choice.get("finish_reason") != "length")

    def costs(self, questions: Sequence[Question]) -> Iterator[tuple[int, float | Unscored]]:
        """By the log-probabilities of the example's own tokens: the model must have its tokenizer."""
        if self.costless is not None:
            yield from ((number, Unscored(self.costless)) for number in range(len(questions)))
            return
        groups = by_example(questions)
        for number, found in self._scorer.nll([group.sequence for group in groups]):
            yield from groups[number].apart(found)


def _choice(reply: Reply) -> dict[str, Any] | None:
    """The first choice, None where the reply has none with a message."""
    try:
        choice: dict[str, Any] = reply.body["choices"][0]
        return choice if isinstance(choice["message"], dict) else None
    except (KeyError, IndexError, TypeError):
        return None


def _said(message: dict[str, Any]) -> str:
    """Text, then calls as lines of JSON."""
    given = message.get("tool_calls")
    functions = [call.get("function") for call in given if isinstance(call, dict)] if isinstance(given, list) else []
    calls = [call_line(str(one.get("name")), str(one.get("arguments"))) for one in functions if isinstance(one, dict)]
    return "\n".join(text for text in [str(message.get("content") or ""), *calls] if text)


def only_model(endpoint: Endpoint) -> str:
    """The name of the one model that a server has.

    Raises:
        UsageError: it has several, or does not say.
    """
    reply = endpoint.get(MODELS)
    try:
        names = [str(one["id"]) for one in reply.body["data"]]
    except (KeyError, TypeError):
        names = []
    if len(names) != 1:
        known = f"it has {', '.join(names)}" if names else "it does not say which it has"
        raise UsageError(
            f"{redacted(endpoint.url)}: which model? {known}", next_step=f"--name {names[0] if names else 'NAME'}"
        )
    return names[0]

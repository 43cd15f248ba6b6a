"""A model of transformers that is asked: prompts of unequal length side by side, padded on the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.evaluation.evaluate import bare_model
from turnmill.evaluation.questions import Question, by_example
from turnmill.evaluation.respondents import Answer, Sampling
from turnmill.isolation import LEAST_DIFFERENCE
from turnmill.scorers import Unscored
from turnmill.token_costs import TokenCosts, batches_of

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

BATCH_TOKENS = {"cpu": 4_096, "cuda": 65_536}
"""Prompts and room for answers of a batch, by kind of device."""
PROBE_LENGTHS = (5, 9, 14)
PROBE_TOKENS = 3
NOISE = 8.0
"""How many times as much as rounding may explain the logits of a padded prompt may differ from its own."""


class LocalModel:
    """A loaded model, and its tokenizer.

    Args:
        model: in evaluation mode, on its device; adapters may lie around it.
        tokenizer: that of the prepared data.
        ends: tokens at which an answer ends.
        sampling: how answers are drawn.
        identity: see `Respondent`.
        max_batch_tokens: of prompts and answers together; None: by the device.
    """

    costless: str | None = None

    def __init__(  # a model, what it is read with, and how it is asked
        self,
        model: Any,
        tokenizer: Tokenizer,
        ends: Sequence[int],
        sampling: Sampling,
        identity: dict[str, Json],
        max_batch_tokens: int | None = None,
    ) -> None:
        self._model, self._tokenizer, self._ends, self._sampling = model, tokenizer, list(ends), sampling
        self.identity = identity
        self._max_batch_tokens = max_batch_tokens or BATCH_TOKENS["cuda" if model.device.type == "cuda" else "cpu"]

    def recorded(self, question: Question) -> str:
        """The answer as its tokens say it, without the stop."""
        return self._text(question.answer_ids[: len(question.answer_ids) - question.stop_tokens].tolist())

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """The longest first: what does not fit the memory fails at once."""
        good = []
        for number, question in enumerate(questions):
            fault = self._beyond(question)
            if fault is None:
                good.append(number)
            else:
                yield number, Answer("", False, fault)
        for batch in self._batches([questions[number] for number in good]):
            numbers = [good[place] for place in batch]
            yield from zip(numbers, self._within_memory([questions[number] for number in numbers]), strict=True)

    def _beyond(self, question: Question) -> str | None:
        context = getattr(self._model.config, "max_position_embeddings", None)
        wanted = len(question.prompt_ids) + self._sampling.room(question)
        if context and wanted > context:
            return f"the prompt and room for the answer are {wanted:,} tokens; the model sees {context:,}"
        embedded = int(bare_model(self._model).get_input_embeddings().weight.shape[0])
        greatest = int(question.prompt_ids.max(initial=0))
        if greatest >= embedded:
            return f"token {greatest} is not among the model's {embedded:,}"
        return None

    def _batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        sizes = [len(question.prompt_ids) + self._sampling.room(question) for question in questions]
        if self.pads_exactly:
            yield from batches_of(sizes, self._max_batch_tokens)
            return
        by_length: dict[int, list[int]] = {}
        for number, question in enumerate(questions):
            by_length.setdefault(len(question.prompt_ids), []).append(number)
        for _, numbers in sorted(by_length.items(), reverse=True):
            for batch in batches_of([sizes[number] for number in numbers], self._max_batch_tokens):
                yield [numbers[place] for place in batch]

    @cached_property
    def pads_exactly(self) -> bool:
        """Whether padding on the left changes nothing: else only prompts of one length share a batch."""
        random = np.random.default_rng(0)
        vocabulary = int(bare_model(self._model).get_input_embeddings().weight.shape[0])
        prompts = [random.integers(0, vocabulary, length).astype(np.int32) for length in PROBE_LENGTHS]
        together = self._first_logits(prompts)
        for place, prompt in enumerate(prompts):
            alone = self._first_logits([prompt])[0]
            scale = float(alone.abs().max())
            bound = NOISE * scale * LEAST_DIFFERENCE.get(str(alone.dtype).removeprefix("torch."), 2e-2)
            if not float((together[place] - alone).abs().max()) <= bound:
                return False
        return True

    def _first_logits(self, prompts: Sequence[NDArray[np.int32]]) -> torch.Tensor:
        found = self._generate(prompts, PROBE_TOKENS, output_logits=True, return_dict_in_generate=True)
        logits: torch.Tensor = found.logits[-1]
        return logits

    def _within_memory(self, questions: Sequence[Question]) -> list[Answer]:
        """A batch's answers; halves of it in turn where the whole does not fit the device."""
        import torch

        try:
            return self._batch(questions)
        except torch.OutOfMemoryError:
            if len(questions) == 1:
                raise
        half = len(questions) // 2
        return self._within_memory(questions[:half]) + self._within_memory(questions[half:])

    def _batch(self, questions: Sequence[Question]) -> list[Answer]:
        prompts = [question.prompt_ids for question in questions]
        rooms = [self._sampling.room(question) for question in questions]
        drawing = [] if not self._sampling.temperature else [Drawing(self._sampling, questions, max(map(len, prompts)))]
        given = self._generate(prompts, max(rooms), logits_processor=drawing)[:, max(map(len, prompts)) :].tolist()
        return [self._answer(ids[:room], one) for ids, room, one in zip(given, rooms, questions, strict=True)]

    def _generate(self, prompts: Sequence[NDArray[np.int32]], tokens: int, **more: Any) -> Any:
        """(prompts, longest + tokens): the prompts, padded on the left, and what the model wrote behind them."""
        import torch
        from transformers import GenerationConfig

        longest, device = max(map(len, prompts)), self._model.device
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.from_numpy(prompt.astype(np.int64))
            mask[row, longest - len(prompt) :] = 1
        ends = None if "output_logits" in more else self._ends or None
        told = {name: value for name, value in more.items() if name != "logits_processor"}
        config = GenerationConfig(  # type: ignore[no-untyped-call]  # theirs
            max_new_tokens=tokens, do_sample=False, eos_token_id=ends, pad_token_id=0, **told
        )
        own = bare_model(self._model)
        kept, own.generation_config = own.generation_config, config  # the model's own may draw, or punish repeats
        try:
            with torch.no_grad():
                return self._model.generate(
                    input_ids=ids.to(device), attention_mask=mask.to(device), generation_config=config,
                    logits_processor=more.get("logits_processor"),
                )  # fmt: skip
        finally:
            own.generation_config = kept

    def _answer(self, ids: Sequence[int], question: Question) -> Answer:
        """What was written before the first end: a token of the model's, or the text that ended the recorded answer."""
        end = next((place for place, token in enumerate(ids) if token in self._ends), None)
        text = self._text(ids if end is None else ids[:end])
        stop = self._text(question.answer_ids[len(question.answer_ids) - question.stop_tokens :].tolist())
        if stop and stop in text:
            return Answer(text[: text.index(stop)])
        return Answer(text, end is not None)

    def costs(self, questions: Sequence[Question]) -> Iterator[tuple[int, float | Unscored]]:
        """An example's turns at once: the last one's prompt holds the others."""
        import torch

        groups = by_example(questions)
        reading = TokenCosts(bare_model(self._model))
        with torch.no_grad():
            for number, found in reading.of([group.sequence for group in groups]):
                yield from groups[number].apart(found if isinstance(found, Unscored) else found.nll)


class Drawing:
    """Draws each question's tokens by its own seed: the same in whatever batch it is asked.

    The greatest of logits with Gumbel noise is a draw from their distribution; so a greedy search draws.

    Args:
        sampling: temperature, nucleus and seed.
        questions: of the batch, in order.
        prompt_tokens: of the padded prompts.
    """

    def __init__(self, sampling: Sampling, questions: Sequence[Question], prompt_tokens: int) -> None:
        self._sampling, self._prompt_tokens = sampling, prompt_tokens
        self._seeds = [xxhash.xxh3_64_intdigest(question.key.encode(), sampling.seed) for question in questions]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(questions, vocabulary) scores whose greatest is the token that is drawn."""
        import torch

        scores = self._nucleus(scores.float() / self._sampling.temperature)
        step = input_ids.shape[1] - self._prompt_tokens
        noise = [np.random.default_rng([seed, step]).gumbel(size=scores.shape[1]) for seed in self._seeds]
        return scores + torch.from_numpy(np.stack(noise).astype(np.float32)).to(scores.device)

    def _nucleus(self, scores: torch.Tensor) -> torch.Tensor:
        if self._sampling.top_p >= 1:
            return scores
        ordered, places = scores.sort(dim=-1, descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        out = (before >= self._sampling.top_p).scatter(1, places, before >= self._sampling.top_p)
        return scores.masked_fill(out, float("-inf"))

"""What each token of an explained row costs a model, given those before it in its example."""

from __future__ import annotations

import msgspec
import numpy as np

from turnmill.errors import UsageError
from turnmill.options import Model, Score
from turnmill.report.explanation import ExplainedExample, Explanation
from turnmill.scorers import ToScore, Unscored


def with_costs(explanation: Explanation, options: Score, model: Model) -> Explanation:
    """The row with the cost of each token, those that do not train as well.

    Args:
        explanation: of a row, with its tokens.
        options: which scorer, and on what.
        model: the row's, unless the options name another one.

    Raises:
        UsageError: there is no tokenizer, the scorer has no weights, or an example cannot be scored.
    """
    from turnmill.verbs.score import scorer_of

    if any(example.input_ids is None for example in explanation.examples):
        raise UsageError("without a model there are no tokens to score", next_step="--model smollm2")
    sequences = [_sequence(example) for example in explanation.examples]
    examples = list(explanation.examples)
    for number, found in scorer_of(options, model).nll(sequences) if sequences else ():
        if isinstance(found, Unscored):
            raise UsageError(f"example {number} of row {explanation.row} cannot be scored: {found.reason}")
        costs: tuple[float | None, ...] = (None, *(round(float(nats), 4) for nats in found))
        examples[number] = msgspec.structs.replace(examples[number], nll=costs)
    return msgspec.structs.replace(explanation, examples=tuple(examples))


def _sequence(example: ExplainedExample) -> ToScore:
    """All tokens of an example but the first, before which nothing stands."""
    ids = np.array(example.input_ids, dtype=np.int32)
    return ToScore(ids, np.arange(len(ids)) > 0)

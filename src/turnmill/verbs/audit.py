"""audit: a model is asked the questions of the data it was trained on, and its answers are scored."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from turnmill.conversation import Json, canonical_json
from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.evaluation.answer_book import AnswerBook
from turnmill.evaluation.answers import Nearness, nearness
from turnmill.evaluation.questions import Question, questions_of
from turnmill.evaluation.respondents import Answer, Respondent, Sampling
from turnmill.files.disk import beside, writing
from turnmill.files.inventory import json_file
from turnmill.files.prepared import PreparedData, Side
from turnmill.files.publish import claim, publish, refuse_foreign
from turnmill.report.audit import summary_of
from turnmill.report.audit_page import audit_page
from turnmill.scorers import Unscored
from turnmill.verbs.audit_models import Asked, Open, opener

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "audit"
VERSION = 1
"""Of the measures: counts up when an answer is scored otherwise."""
ANSWERS, TABLE, SUMMARY, REPORT = "answers.jsonl", "answers.parquet", "summary.json", "report.html"
MEASURES = ("exact", "normalised", "f1")

Progress = Callable[[str, int, int], None]
"""(what, done, of how many)."""


class Audit(NamedTuple):
    """What is asked of whom."""

    data: Path
    output: Path
    model: Asked
    baseline: Asked | None
    side: Side
    samples: int | None
    """Rows; None: all."""
    sampling: Sampling


class Given(NamedTuple):
    """What one model said to all questions."""

    identity: dict[str, Json]
    recorded: list[str]
    answers: list[Answer]
    near: list[Nearness | None]
    """None where there is no answer."""
    nll: list[float | None]
    """Nats of the recorded answer; None where they are not known."""
    costless: dict[str, int]
    """Why they are not → how often."""


def audit(asked: Audit, progress: Progress) -> dict[str, Any]:
    """Ask, score, and publish the folder whole; gives its summary.

    Answers that an earlier run with the same model, data and sampling was given are not asked for again.

    Raises:
        UsageError: not a prepared folder, a model that cannot be loaded, an endpoint that cannot be used.
        HealthError: nothing to ask, or no answer at all; nothing is published.
    """
    refuse_foreign(asked.output)
    data = PreparedData(asked.data)
    if asked.output.resolve() == data.folder.resolve():
        raise UsageError(f"{asked.output} is what is audited; expected another folder", next_step="--output DIR")
    questions = _questions(asked, data)
    models = [(name, opener(one, asked.sampling)) for name, one in _whom(asked)]
    with claim(asked.output):
        scratch = beside(asked.output.absolute(), "answers")
        given = [_given(asked, one, data, questions, scratch, progress) for one in models]
        _refuse_silence(given, questions)
        summary = summary_of(questions, given, _about(asked, data, questions, given))
        _publish(asked, questions, given, summary)
        shutil.rmtree(scratch, ignore_errors=True)
    return summary


def _whom(asked: Audit) -> list[tuple[str, Asked]]:
    return [("model", asked.model), *([("baseline", asked.baseline)] if asked.baseline else [])]


def _questions(asked: Audit, data: PreparedData) -> list[Question]:
    questions = list(questions_of(data, asked.side, samples=asked.samples, seed=asked.sampling.seed))
    if not questions:
        what = f"{asked.data} holds no trained turns of {asked.side!r}: nothing can be asked"
        other = "eval" if asked.side == "train" else "train"
        raise HealthError(what, next_step=f"--side {other}")
    return questions


def _given(
    asked: Audit,
    whom: tuple[str, Open],
    data: PreparedData,
    questions: Sequence[Question],
    scratch: Path,
    progress: Progress,
) -> Given:
    """All answers of one model; it is let go of before the next one is loaded."""
    name, open_model = whom
    respondent = open_model(data, questions)
    with writing(scratch):
        book = AnswerBook(scratch / f"{_fingerprint(asked, data, respondent)}.jsonl")
    try:
        _ask(name, respondent, questions, book, progress)
        costless = _cost(name, respondent, questions, book, progress)
    finally:
        book.close()
    recorded = [respondent.recorded(question) for question in questions]
    answers = [book.answers[question.key] for question in questions]
    near = [
        nearness(answer.text, text) if answer.fault is None else None
        for answer, text in zip(answers, recorded, strict=True)
    ]
    nll = [book.costs.get(question.key) for question in questions]
    return Given(respondent.identity, recorded, answers, near, nll, dict(costless))


def _fingerprint(asked: Audit, data: PreparedData, respondent: Respondent) -> str:
    """Of all that an answer depends on."""
    named = [respondent.identity, data.manifest["fingerprint"], asked.side, list(asked.sampling)]
    return xxhash.xxh3_128_hexdigest(canonical_json(named))


def _ask(
    name: str, respondent: Respondent, questions: Sequence[Question], book: AnswerBook, progress: Progress
) -> None:
    waiting = [question for question in questions if question.key not in book.answers]
    done = len(questions) - len(waiting)
    progress(f"{name}: answers", done, len(questions))
    for number, answer in respondent.answers(waiting) if waiting else ():
        book.answer(waiting[number].key, answer)
        done += 1
        progress(f"{name}: answers", done, len(questions))


def _cost(
    name: str, respondent: Respondent, questions: Sequence[Question], book: AnswerBook, progress: Progress
) -> Counter[str]:
    """Why recorded answers have no cost → how many."""
    if respondent.costless is not None:
        return Counter({respondent.costless: len(questions)})
    missing = {question.row_id for question in questions if question.key not in book.costs}
    waiting = [question for question in questions if question.row_id in missing]
    costless: Counter[str] = Counter()
    done = len(questions) - len(waiting)
    for number, found in respondent.costs(waiting) if waiting else ():
        if isinstance(found, Unscored):
            costless[found.reason] += 1
        elif not math.isfinite(found):
            costless["their cost is not a finite number: the model's weights may be of no use"] += 1
        else:
            book.cost(waiting[number].key, found)
        done += 1
        progress(f"{name}: recorded answers", done, len(questions))
    return costless


def _refuse_silence(given: Sequence[Given], questions: Sequence[Question]) -> None:
    for one in given:
        faults = Counter(answer.fault for answer in one.answers if answer.fault is not None)
        if sum(faults.values()) == len(questions):
            listing = "".join(f"\n  {count:>9,}  {fault}" for fault, count in faults.most_common(5))
            what = f"none of {len(questions):,} questions was answered by {one.identity['model']}:{listing}"
            raise HealthError(what, next_step="turnmill audit --help")


def _about(asked: Audit, data: PreparedData, questions: Sequence[Question], given: Sequence[Given]) -> dict[str, Json]:
    """What the manifest says, and the summary begins with."""
    return {
        "kind": KIND,
        "version": VERSION,
        "data": {"name": str(asked.data), "fingerprint": data.manifest["fingerprint"], "side": asked.side},
        "model": given[0].identity,
        "baseline": given[1].identity if len(given) > 1 else None,
        "samples": asked.samples,
        "sampling": asked.sampling._asdict(),
        "rows": len({question.row_id for question in questions}),
        "turns": len(questions),
    }


def _publish(asked: Audit, questions: Sequence[Question], given: Sequence[Given], summary: dict[str, Any]) -> None:
    rows = [_row(question, number, given) for number, question in enumerate(questions)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    contents: dict[str, Path | bytes] = {
        ANSWERS: lines.encode("utf-8", "backslashreplace"),
        TABLE: _parquet(rows),
        SUMMARY: json_file(summary),
        REPORT: audit_page(summary, rows).encode("utf-8", "backslashreplace"),
    }
    about = {name: summary[name] for name in ("kind", "version", "data", "model", "baseline", "samples", "sampling")}
    publish(contents, asked.output, about=about)


def _row(question: Question, number: int, given: Sequence[Given]) -> dict[str, Json]:
    row: dict[str, Json] = {
        "row_id": question.row_id, "part": question.part, "turn": question.turn, "message": question.message,
        "source": question.source, "source_file": question.source_file, "source_line": question.source_line,
        "asked": question.asked, "trained_tokens": int(question.trained.sum()),
    }  # fmt: skip
    for prefix, one in zip(("", "baseline_"), given, strict=False):
        answer, near = one.answers[number], one.near[number]
        row |= {
            f"{prefix}recorded": one.recorded[number],
            f"{prefix}answer": answer.text if answer.fault is None else None,
            f"{prefix}ended": answer.ended,
            f"{prefix}fault": answer.fault,
            **{f"{prefix}{name}": getattr(near, name) if near else None for name in MEASURES},
            f"{prefix}nll": one.nll[number],
        }
    return row


def _parquet(rows: Sequence[dict[str, Json]]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    stored = [{key: _storable(value) for key, value in row.items()} for row in rows]
    pq.write_table(pa.Table.from_pylist(stored, schema=_schema(list(rows[0]))), sink, compression="zstd")
    return sink.getvalue()


def _storable(value: Json) -> Json:
    """A text without lone surrogates: no file holds them."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _schema(names: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    numbers = {"part", "turn", "message", "source_line", "trained_tokens"}

    def kind(name: str) -> pa.DataType:
        bare = name.removeprefix("baseline_")
        if bare in numbers:
            return pa.int64()
        return pa.bool_() if bare == "ended" else pa.float64() if bare in (*MEASURES, "nll") else pa.string()

    return pa.schema([pa.field(name, kind(name)) for name in names])


def next_command(output: Path) -> str:
    """What a person types next."""
    return f"head -n 3 {shell_word(output / ANSWERS)}"

"""A dialect behind a source's own conversion, and the prompts that the source withholds."""

from __future__ import annotations

from typing import Any, cast

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Dialect, Reading
from turnmill.errors import Rejected, UsageError, quote, shell_word
from turnmill.sources import Convert, PinnedSource, Record, sources
from turnmill.verbs.prompts import prompt_of


def adapted(name: str, prompts: str, dialect: Dialect) -> Dialect:
    """A dialect that reads what the source's conversion gives.

    Args:
        name: of the source, in the registry.
        prompts: file of withheld prompts; "" where none are.
        dialect: what reads a converted record.
    """
    convert = _convert_of(sources.get(name)(), prompts)

    def read(record: dict[str, Json], reading: Reading) -> Conversation:
        return dialect(_converted(record, convert, name), reading)

    return read


def _converted(record: Record, convert: Convert, name: str) -> Record:
    """What the conversion gives of a record; a record of another shape than it expects is the record's fault.

    Raises:
        Rejected: by the conversion itself; `conversion-failed` where it looked for what is not there.
        UsageError: the conversion gives no record.
    """
    try:
        converted: Any = convert(record)
    except (AttributeError, LookupError) as error:
        what = f"the record has not the shape that {name} converts: {type(error).__name__}: {quote(str(error))}"
        raise Rejected("conversion-failed", what) from error
    if not isinstance(converted, dict):
        what = f"the conversion of source {name} gave {quote(converted)}; expected a record, or `Filtered` raised"
        raise UsageError(what, next_step=f"turnmill sources show {shell_word(name)}")
    return cast(Record, converted)


def _convert_of(source: PinnedSource, prompts: str) -> Convert:
    with_prompts = source.convert_with_prompts
    if with_prompts is not None:
        return lambda record: with_prompts(record, lambda digest: prompt_of(prompts, digest))
    return source.convert or (lambda record: record)

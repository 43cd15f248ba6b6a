"""What several test modules share: the oracle, and the stop tokens of bare template files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from turnmill.errors import Rejected

TRANSFORMERS_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
PINNED = datetime.datetime(2025, 1, 1)


class _PinnedDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime.datetime:
        return PINNED


@contextmanager
def pinned_clock() -> Iterator[None]:
    """While it lasts, templates that transformers renders are told that it is `PINNED`."""
    from transformers.utils import chat_template_utils as reference

    before, reference.datetime = reference.datetime, _PinnedDatetime
    try:
        yield
    finally:
        reference.datetime = before


def reference_render(source: str, written: Any, kwargs: dict[str, Any], prompt: bool, *, masks: bool = False) -> Any:
    """What transformers renders; with `masks`, the (start, end) ranges of its generation tags."""
    from transformers.utils import chat_template_utils as reference

    with pinned_clock():
        texts, ranges = reference.render_jinja_template(
            [written.dicts],
            tools=written.tools,
            chat_template=source,
            add_generation_prompt=prompt,
            return_assistant_tokens_mask=masks,
            **TRANSFORMERS_TOKENS,
            **kwargs,
        )
    return ranges[0] if masks else texts[0]


def stops_of_template(source: str) -> list[str]:
    """The generation eos set of a bare template, as its model's `generation_config.json` has it."""
    from turnmill.stops import stops_of

    return sorted(stops_of(source, TRANSFORMERS_TOKENS["eos_token"]).tokens)


def listed(example):
    """An example as it is read back, with its ids as a list; a rejection as it is."""
    if isinstance(example, Rejected):
        return example
    return msgspec.structs.replace(example, input_ids=[int(number) for number in example.input_ids])

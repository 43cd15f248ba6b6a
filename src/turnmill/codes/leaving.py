"""Codes of sound rows that leave by a choice of the recipe."""

from __future__ import annotations

from turnmill.codes.code import Code

LEAVING: dict[str, Code] = {
    "stalled-tool-call": Code(
        "filter",
        "The assistant makes one call three times in a row and gets the same result.",
        "user, call f, result x, call f, result x, call f",
        "Nothing, or take the filter out of `filter.use` to keep such rows.",
    ),
    "duplicate": Code(
        "dedup",
        "Another row has the same messages, tools and template arguments.",
        "the same line twice",
        "Nothing: the first row stays; `duplicates/` names it.",
    ),
    "duplicate-other-weights": Code(
        "dedup",
        "Another row has the same messages, but other recorded loss weights; the first row stays.",
        'two equal rows, one with `"weight": 0`',
        "See which weights are meant; put the source that has them first.",
    ),
    "duplicate-first-exchange": Code(
        "dedup",
        "An earlier row has the same first user text and first assistant turn, but for case and white space.",
        "one conversation, recorded twice at different lengths",
        "Nothing, or take `first-exchange` out of `dedup.by`; put the source with the longer rows first.",
    ),
}

"""Answers that refuse."""

from __future__ import annotations

from turnmill.conversation import Checked
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.filters.answers import answers
from turnmill.filters.phrases import at_start, plain
from turnmill.options import Filter


@row_filter("refusals")
def refusals(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation with an answer that begins as a refusal, in one of six languages or in your own words."""
    starts = at_start(options.refusals.phrases)
    for message in answers(conversation):
        found = starts.match(plain(message.text))
        if found is not None:
            return Rejected("refusals", f"an answer begins with {quote(found[0].strip())}", at=message.recorded)
    return None

"""Answers that speak of themselves as a machine, and what chat pages leave in copied text."""

from __future__ import annotations

from turnmill.conversation import Checked
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.filters.answers import answers, without_code
from turnmill.filters.phrases import at_sentence, plain
from turnmill.options import Filter


@row_filter("boilerplate")
def boilerplate(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation with machine talk in an answer (`As an AI language model, I …`) or a page's left-overs."""
    sentences = at_sentence(options.boilerplate.phrases)
    for message in answers(conversation):
        found = sentences.search(plain(without_code(message.text)))
        if found is not None:
            return Rejected("boilerplate", f"an answer says {quote(found[0].strip())}", at=message.recorded)
    return None

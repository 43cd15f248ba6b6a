"""Answers in which a model says that it is a product, or whose."""

from __future__ import annotations

from turnmill.conversation import Checked
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.filters.answers import answers, without_code
from turnmill.filters.phrases import at_sentence, plain
from turnmill.options import Filter, ProductNames


@row_filter("product-names")
def product_names(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation whose assistant says that it is a known product, or made by its maker."""
    sentences = at_sentence(*patterns(options.product_names))
    for message in answers(conversation):
        found = sentences.search(plain(without_code(message.text)))
        if found is not None:
            return Rejected("product-names", f"an answer says {quote(found[0].strip())}", at=message.recorded)
    return None


def patterns(chosen: ProductNames) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The phrases, and what the names in them stand for."""
    return chosen.phrases, (("name", chosen.names), ("ambiguous", chosen.ambiguous), ("maker", chosen.makers))

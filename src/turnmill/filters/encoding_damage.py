"""Texts that were damaged on the way: lost characters, UTF-8 read as another encoding, control characters."""

from __future__ import annotations

import re

from turnmill.conversation import Checked
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.filters.answers import without_code
from turnmill.options import Filter

_LOST = "\ufffd\ufffe\uffff"
_CONTROLS = r"\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f"  # form feed, NEL and white space are text
_SECOND = r"\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
"""Second and later bytes of UTF-8 as Latin-1 and Windows-1252 show them."""
_GARBLED = (
    r"Ã[\x80-\x9f\xa0-\xaa\xac-\xba\xbc-\xbf€‚ƒ„†‡ˆ‰Š‹ŒŽ•–—˜™š›œžŸ]"  # accented letters; no guillemet behind Ã
    r"|Â[\xa0-\xaa\xac-\xba\xbc-\xbf]"  # signs and the no-break space
    rf"|â(?:€|\x80)[{_SECOND}]|â(?:‚|\x82)¬"  # dashes, quotes, the euro
    rf"|ï(?:»¿|¿½)|ð(?:Ÿ|\x9f)[{_SECOND}]{{2}}"  # a byte-order mark, U+FFFD, emoji
    rf"|(?:[ÐÑ][{_SECOND}]){{3}}"  # Cyrillic
    rf"|(?:[äåæçèéã][{_SECOND}]{{2}}){{2}}"  # Chinese and Japanese
)
_MARK = re.compile(rf"[{_LOST}{_CONTROLS}]|{_GARBLED}")


@row_filter("encoding-damage")
def encoding_damage(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation with U+FFFD, control characters or garbled letters (`Ã©`, `â€™`) in what people say.

    Results of tools and code may hold anything.
    """
    for message in conversation.messages:
        if message.role == "tool" or message.is_call or (message.text.isascii() and message.text.isprintable()):
            continue
        marks = _MARK.findall(without_code(message.text))
        if len(marks) >= options.encoding_damage.min_marks:
            what = f"the {message.role} says {quote(marks[0])}: text that was read in a wrong encoding, or cut"
            return Rejected("encoding-damage", what, at=message.recorded)
    return None

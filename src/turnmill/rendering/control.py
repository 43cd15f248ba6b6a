"""Control tokens: which texts the tokenizer turns into them, and where content has written one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from turnmill.conversation import Conversation
from turnmill.errors import Rejected, quote
from turnmill.rendering.form import leaves
from turnmill.rendering.markers import TAG_LIKE


def control_tokens(
    added: Iterable[tuple[str, bool]] | None, literals: Iterable[str], stops: Iterable[str]
) -> tuple[str, ...]:
    """The control tokens, longest first.

    Args:
        added: (text, special) of each added token of the tokenizer; None without one: then what looks like a tag in the
            template's literals counts.
        literals: the template's own texts.
        stops: generation eos set.
    """
    written = list(literals)
    if added is None:
        found = {match.group() for literal in written for match in TAG_LIKE.finditer(literal)} | set(stops)
    else:
        found = {text for text, special in added if special or _is_structural(text, written, stops)}
    return tuple(sorted(filter(None, found), key=lambda text: (-len(text), text)))


def _is_structural(text: str, literals: Sequence[str], stops: Iterable[str]) -> bool:
    """Whether a token that is not special is one all the same: the template writes it, or generation ends on it."""
    return bool(text.strip()) and (text in stops or any(text in literal for literal in literals))


class ControlScan:
    """Finds control-token text."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._pattern = re.compile("|".join(map(re.escape, tokens))) if tokens else None
        edges = sorted({edge for token in tokens for edge in (token[0], token[-1])})
        self._edge = re.compile(f"[{re.escape(''.join(edges))}]" if edges else "")
        self._longest = max(map(len, tokens), default=0)
        self._tokens = tokens

    def hits(self, text: str, contents: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """(start, end) of each control token in the text of which content wrote a character.

        Args:
            text: all of it.
            contents: (start, end) of what content wrote, in order.
        """
        if self._pattern is None or not self._may_touch(text, contents):
            return ()
        found: list[tuple[int, int]] = []
        position = 0
        for match in self._pattern.finditer(text):
            start, end = match.span()
            while position < len(contents) and contents[position][1] <= start:
                position += 1
            if position < len(contents) and contents[position][0] < end:
                found.append((start, end))
        return tuple(found)

    def _may_touch(self, text: str, contents: Sequence[tuple[int, int]]) -> bool:
        """Whether a token may touch content: it begins or ends inside one, or one lies inside the token."""
        find_edge = self._edge.search
        if any(find_edge(text, start, end) for start, end in contents):
            return True
        short = [text[start:end] for start, end in contents if end - start < self._longest]
        return any(content in token for content in short for token in self._tokens)

    def check_unescapable(self, conversation: Conversation, *, with_content: bool = False) -> None:
        """Refuse control-token text where it cannot be told from the template's: author names, template arguments.

        Args:
            conversation: the row.
            with_content: content cannot be told from the template's text either.

        Raises:
            Rejected: `control-token-unescapable`.
        """
        if self._pattern is None:
            return
        texts = [message.name for message in conversation.messages if message.name]
        texts += [leaf for leaf in leaves(conversation.template_kwargs) if isinstance(leaf, str)]
        places = "an author's name or a template argument"
        if with_content:
            places = "a text of the row"
            texts += [message.text for message in conversation.messages]
            texts += [leaf for tool in conversation.tools for leaf in leaves(tool) if isinstance(leaf, str)]
        for text in texts:
            if match := self._pattern.search(text):
                raise Rejected("control-token-unescapable", f"{places} holds the control token {quote(match.group())}")

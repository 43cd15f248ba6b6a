"""What our line and another library make of one conversation: ids and labels, and the stretches where they differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from probes import PROBES, probe_of
from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.options import Loss
from turnmill.rendering.renderer import Renderer
from turnmill.tokens.encode import Encoder
from turnmill.tokens.labels import IGNORE, labels
from turnmill.tokens.tokenize import Row, Tokenizing


class Labelled(NamedTuple):
    """The tokens of a conversation, and which of them train."""

    ids: Sequence[int]
    trained: Sequence[bool]


class Difference(NamedTuple):
    """A stretch that the two do not make alike."""

    ours: str
    theirs: str
    trains: Literal["ours", "theirs", "text"]
    """Whose labels train it, where the ids are the same; else `text`."""


class Ours:
    """Our line with one template and tokenizer."""

    def __init__(self, renderer: Renderer, tokenizer: Any) -> None:
        self.renderer, self.tokenizer = renderer, tokenizer
        self._tokenizing = Tokenizing(Encoder(tokenizer, renderer.probe.markers.control))

    def row(self, conversation: Checked) -> Labelled:
        """The tokens of a conversation.

        Raises:
            Rejected: the template cannot say it.
        """
        rendered = self.renderer.render(conversation)
        (example,) = self._tokenizing.examples([Row(conversation.id, conversation, rendered, Loss())])
        if isinstance(example, Rejected):
            raise example
        ends, weights = [run.end for run in example.runs], [run.weight for run in example.runs]
        ids = list(map(int, example.input_ids))
        return Labelled(ids, [label != IGNORE for label in labels(ids, ends, weights)])

    def probes(self) -> Iterator[tuple[str, Checked, Labelled]]:
        """Name, conversation and tokens of every probe that the template can say."""
        for probe in PROBES:
            row = Checked(probe_of(probe))
            try:
                yield probe, row, self.row(row)
            except Rejected:
                continue

    def differences(self, ours: Labelled, theirs: Labelled) -> Iterator[Difference]:
        """Where the two differ, in order."""
        matcher = difflib.SequenceMatcher(None, ours.ids, theirs.ids, autojunk=False)
        for what, start, end, low, high in matcher.get_opcodes():
            if what != "equal":
                yield Difference(self._text(ours.ids[start:end]), self._text(theirs.ids[low:high]), "text")
                continue
            pairs = zip(ours.ids[start:end], ours.trained[start:end], theirs.trained[low:high], strict=True)
            for (we, they), group in groupby(pairs, key=lambda pair: pair[1:]):
                if we != they:
                    text = self._text([number for number, *_ in group])
                    yield Difference(text, text, "ours" if we else "theirs")

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))

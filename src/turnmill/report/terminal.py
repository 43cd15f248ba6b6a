"""An explanation as a person reads it in a terminal: coloured there, plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnmill.rendered import Kind
from turnmill.report.colours import COLOURS, MEANINGS, showable
from turnmill.report.explanation import ExplainedExample, ExplainedSpan, ExplainedToken, Explanation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

TRAINED, PARTLY, IGNORED = "┃", "╏", " "
"""Left of a line of text: all, some or none of it trains."""
OPEN, CLOSE = "⟦", "⟧"
"""Around the trained part of a line of which only a part trains, where there is no colour."""
TRAINED_STYLE = "bold underline"
LINE_BREAK = "↵"


class Piece(NamedTuple):
    """The part of a span that stands on one line."""

    text: str
    span: ExplainedSpan


def show(explanation: Explanation, console: Console) -> None:
    """Print one row: its text by kind, why each message trains or not, its tokens."""
    _head(explanation, console)
    if explanation.text is not None:
        kinds = {span.kind for span in explanation.spans}
        console.print(legend([kind for kind in COLOURS if kind in kinds]))
        for line in text_lines(explanation, marks=console.color_system is None):
            console.print(line)
    _turn_table(explanation, console)
    for example in explanation.examples:
        _tokens(example, console)
    console.print()


def _head(explanation: Explanation, console: Console) -> None:
    from rich.text import Text

    name = f"  id {explanation.id}" if explanation.id else ""
    console.print(Text(f"row {explanation.row}  {showable(explanation.place)}{name}", style="bold"))
    if explanation.repairs:
        console.print(Text(f"mended: {', '.join(explanation.repairs)}"))
    if explanation.code is not None:
        where = "" if explanation.at is None else f" (message {explanation.at})"
        said = f"leaves: {explanation.code}: {showable(explanation.message or '')}{where}"
        console.print(Text(said, style="bold red"))
    if explanation.control_hits and explanation.text:
        found = [explanation.text[start:end] for start, end in explanation.control_hits]
        console.print(Text(f"content holds control tokens, encoded as plain text: {showable(', '.join(found))}"))


def legend(kinds: Sequence[Kind]) -> Text:
    """What the colours and marks mean."""
    from rich.text import Text

    line = Text(f"{TRAINED} trained  ")
    for kind in kinds:
        line.append(kind, style=COLOURS[kind].terminal)
        line.append(f" {MEANINGS[kind]}  ", style="dim")
    return line


def text_lines(explanation: Explanation, *, marks: bool) -> Iterator[Text]:
    """The text line by line, each behind its mark.

    Args:
        explanation: a row with a text.
        marks: put `OPEN` and `CLOSE` around trained parts of lines that only partly train.
    """
    pieces: list[Piece] = []
    for span in explanation.spans:
        first, *others = (explanation.text or "")[span.start : span.end].split("\n")
        pieces.append(Piece(first, span))
        for other in others:
            yield _line(pieces, marks=marks)
            pieces = [Piece(other, span)]
    if any(piece.text for piece in pieces):
        yield _line(pieces, marks=marks)


def _line(pieces: Sequence[Piece], *, marks: bool) -> Text:
    from rich.text import Text

    said = [piece for piece in pieces if piece.text] or pieces[-1:]  # an empty line is its line break's
    trained = [piece for piece in said if piece.span.trained]
    mark = IGNORED if not trained else TRAINED if len(trained) == len(said) else PARTLY
    line = Text(f"{mark} ")
    for piece in said:
        shown = showable(piece.text)
        if piece.span.trained and mark == PARTLY and marks:
            shown = f"{OPEN}{shown}{CLOSE}"
        style = COLOURS[piece.span.kind].terminal
        line.append(shown, style=f"{TRAINED_STYLE} {style}" if piece.span.trained else style)
    return line


def _turn_table(explanation: Explanation, console: Console) -> None:
    from rich.table import Table

    if not explanation.turns:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("message", "role", "trains", "why"):
        table.add_column(heading)
    for turn in explanation.turns:
        role = explanation.roles.get(turn.message, "")
        table.add_row(str(turn.message), role, "yes" if turn.trained else "no", turn.why)
    console.print(table)


def _tokens(example: ExplainedExample, console: Console) -> None:
    """The tokens of an example, a line for each stretch of one message, kind and weight."""
    from rich.text import Text

    told = example.tokens
    if not told:
        return
    trained = sum(token.weight > 0 for token in told)
    console.print(
        Text(
            f"part {example.part}: {len(told):,} tokens, {trained:,} trained; label = the id behind each token, or -100"
        )
    )
    start = 0
    for (message, kind, weight), run in groupby(told, key=lambda one: (one.message, one.kind, one.weight)):
        tokens = list(run)
        who = "-" if message is None else str(message)
        mark = TRAINED if weight else IGNORED
        said = f"weight {weight:g}" if weight else "label -100"
        line = Text(f"{mark} {start:>6} {who:>3} {kind:<9} {said:<10}{_mean_cost(example, start, len(tokens))}  ")
        _append_tokens(line, tokens)
        console.print(line)
        start += len(tokens)


def _mean_cost(example: ExplainedExample, start: int, count: int) -> str:
    """What the tokens of a stretch cost on average; nothing where none was scored."""
    if isinstance(example.nll, msgspec.UnsetType):
        return ""
    known = [nats for nats in example.nll[start : start + count] if nats is not None]
    return f"  {sum(known) / len(known):6.2f} nats" if known else f"  {'':>6}     "


def _append_tokens(line: Text, tokens: Sequence[ExplainedToken]) -> None:
    for token in tokens:
        shown = showable(token.text).replace("\n", LINE_BREAK).replace(" ", "·")
        style = COLOURS[token.kind].terminal
        line.append(shown or "…", style=f"{TRAINED_STYLE} {style}" if token.weight else style)
        line.append(f":{token.id} ", style="dim")

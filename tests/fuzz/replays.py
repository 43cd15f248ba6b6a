"""Replays against plain renders: conversations of drawn shapes, contents and template arguments, on every template."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hostile_content import Contents
from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.conversation import Conversation
from turnmill.errors import Rejected, UsageError
from turnmill.options import Render
from turnmill.rendering import fill
from turnmill.rendering.coverage import check_coverage, said_of
from turnmill.rendering.fill import Program, build, inputs_of, shape_of
from turnmill.rendering.passages import is_same
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import Line, conversation
from turnmill.rendering.steps import Refused
from turnmill.rendering.template import Dialog

OPTIONS = (
    {},
    {"add_stop": False},
    {"date": "2031-12-24"},
    {"template_kwargs": {"enable_thinking": True}},
    {"template_kwargs": {"enable_thinking": False}},
    {"template_kwargs": {"enable_thinking": True, "preserve_thinking": True, "clear_thinking": False}},
    {"template_kwargs": {"reasoning_effort": "high", "thinking": True, "tools_in_user_message": False}},
)
"""Of the `render` section."""


class Wrong(NamedTuple):
    """A replay that is not the template's own render."""

    template: str
    shape: tuple[Line, ...]
    why: str


def lines_of(draw: random.Random) -> tuple[Line, ...]:
    """A shape: up to 4 rounds of user and assistant, with any of reasoning, comments, calls and results."""
    lines: list[Line] = [(draw.choice(["system", "developer"]), "s")] if draw.random() < 0.4 else []
    calls = draw.random() < 0.4
    for _ in range(draw.randint(1, 4)):
        lines.append(("user", "q"))
        for _ in range(draw.randint(0, 2) if calls else 0):
            lines += _called(draw)
        if draw.random() < 0.3:
            lines.append(("reasoning", "r"))
        lines.append(("answer", "a"))
    return tuple(lines)


def _called(draw: random.Random) -> Iterator[Line]:
    if draw.random() < 0.4:
        yield "reasoning", "r"
    if draw.random() < 0.3:
        yield "commentary", "c"
    count = draw.choice([1, 1, 2])
    yield from [("call", "Cityone")] * count
    yield from [("result", "b")] * count


class Replays:
    """All programs of one shape, each use of which is compared with the template.

    Args:
        rendering: the renderer whose template is replayed.
        contents: draws the rows.
        with_names: names of functions are inputs.

    Attributes:
        counts: what became of the rows.
        wrong: how the first wrong replay differs; "" where there is none.
    """

    def __init__(self, rendering: Renderer, contents: Contents, *, with_names: bool = True) -> None:
        self._rendering, self._contents, self._with_names = rendering, contents, with_names
        self._programs: dict[Hashable, list[Program]] = {}
        self._tries: Counter[Hashable] = Counter()
        self.counts: Counter[str] = Counter()
        self.wrong = ""

    def run(self, shape: Conversation, rows: int) -> None:
        """So many hostile rows of a shape."""
        form, kwargs = self._rendering.probe.form, self._rendering.kwargs_of(shape)
        if shape_of(shape, form, kwargs) is None or self._rendering.fills is None:
            return
        for _ in range(rows):
            self._row(self._contents.into(shape), kwargs)

    def _row(self, row: Conversation, kwargs: Mapping[str, Any]) -> None:
        form = self._rendering.probe.form
        key, inputs = shape_of(row, form, kwargs, with_names=self._with_names), inputs_of(row, form)
        found = self._plainly(row, dict(kwargs))
        self._tell(found, row, kwargs)
        replays = (program.fill(inputs) for program in self._programs.get(key, ()))
        replayed = next((one for one in replays if one is not None), None)
        if replayed is not None:
            self.counts["replayed"] += 1
            self._compare(found, replayed, row)
        elif found is not None:
            self.counts["rendered"] += 1
            self._build(key, row, kwargs, inputs, found)
        else:
            self.counts["rejected"] += 1

    def _tell(self, found: Any, row: Conversation, kwargs: Mapping[str, Any]) -> None:
        """The row put together of passages, which all shapes of the template share."""
        rendering = self._rendering
        passages = rendering.fills.passages
        told = passages.render(row, kwargs, lambda dialog: rendering._finished(row, dialog, kwargs))
        if told is not None:
            self.counts["told"] += 1
            passages.served += 1
            self._compare(found, told[:2], row)
        elif found is not None:
            passages.learn(row, kwargs, lambda dialog: rendering._finished(row, dialog, kwargs), found)

    def _plainly(self, row: Conversation, kwargs: dict[str, Any]) -> Any:
        try:
            return self._rendering._rendered(row, kwargs)
        except Rejected:
            return None

    def _compare(self, found: Any, replayed: Any, row: Conversation) -> None:
        if found is None or not is_same(found, replayed) or not self._says_the_same(row, found[0], replayed[0]):
            self.counts["wrong"] += 1
            own = "a rejection" if found is None else repr(found[0].text)
            self.wrong = self.wrong or f"{[one.text for one in row.messages]!r}: {own} != {replayed[0].text!r}"

    def _says_the_same(self, row: Conversation, own: Dialog, replayed: Dialog) -> bool:
        """Whether a replay that looks for nothing says all that would be found, and content wrote the same tokens."""
        scan, counted, looked_for = self._rendering._scan, Counter[str](), Counter[str]()
        if scan.hits(own.text, own.contents) != scan.hits(replayed.text, replayed.contents):
            return False
        if not replayed.covers(counted):
            return True
        self.counts["covered"] += 1
        try:
            check_coverage(row, own.written, self._rendering.probe.form, said_of(row, own), looked_for)
        except Rejected:
            return False
        return counted == looked_for

    def _build(
        self, key: Hashable, row: Conversation, kwargs: Mapping[str, Any], inputs: Sequence[Any], found: Any
    ) -> None:
        if self._tries[key] >= fill.MAX_VARIANTS:
            return
        self._tries[key] += 1
        form = self._rendering.probe.form
        try:
            recording = self._rendering.template.recorded(row, form, kwargs, with_names=self._with_names)
            program = build(recording, *found)
        except Refused:
            self.counts["refused"] += 1
            return
        self.counts["built"] += 1
        own = program.fill(inputs)
        if own is None:
            self.counts["of no use"] += 1
            return
        self._compare(found, own, row)
        self._programs.setdefault(key, []).append(program)


class ReplayFuzz:
    """Case by case: a template, a shape, options, and rows of hostile content.

    Args:
        seed: of everything that is drawn.
        folders: of templates.
        rows: of a case.
    """

    def __init__(self, seed: int, folders: Sequence[Path], rows: int = 200) -> None:
        self._seed, self._rows = seed, rows
        self.paths = sorted(path for folder in folders for path in folder.glob("*.jinja"))
        self._renderers: dict[tuple[Path, int], Renderer | None] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[Wrong] = []

    def case(self, number: int) -> None:
        """One case; its templates go round."""
        path = self.paths[number % len(self.paths)]
        draw = random.Random(f"{self._seed} {number}")
        rendering = self._renderer(path, draw.randrange(len(OPTIONS)))
        if rendering is None:
            self.counts["template refused"] += 1
            return
        lines = lines_of(draw)
        names = draw.random() < 0.8
        replays = Replays(rendering, Contents(draw.randrange(1 << 32)), with_names=names)
        replays.run(conversation(lines), self._rows)
        self.counts += replays.counts
        if replays.wrong:
            self.wrong.append(Wrong(path.name, lines, replays.wrong))

    def _renderer(self, path: Path, options: int) -> Renderer | None:
        key = (path, options)
        if key not in self._renderers:
            source = path.read_text("utf-8")
            try:
                made = Renderer(
                    source, TRANSFORMERS_TOKENS, stops_of_template(source), None, Render(**OPTIONS[options]), path.name
                )
            except UsageError:
                made = None
            self._renderers[key] = made
        return self._renderers[key]

"""One chat template, compiled twice: tracked and plain, the one to know who wrote what, the other to prove the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jinja2
from jinja2 import TemplateSyntaxError, nodes
from jinja2.exceptions import TemplateError

from turnmill.conversation import Conversation, Json
from turnmill.errors import Rejected, UsageError, quote
from turnmill.rendering.coarse import Rung, coarse_segments
from turnmill.rendering.environment import ChatEnvironment
from turnmill.rendering.form import Form, Written, write
from turnmill.rendering.limits import TemplateLimit
from turnmill.rendering.passage_recording import PassageEnvironment, Recorded
from turnmill.rendering.recording import RecordingEnvironment, RecordingTrace
from turnmill.rendering.segments import Emitted, Segment, segments_of
from turnmill.rendering.steps import Recorder
from turnmill.rendering.trace import Trace


class Dialog:
    """What a template says of a conversation, and who wrote it.

    Args:
        text: all of it.
        segments: who wrote what.
        written: the conversation as the template was given it.
        counts: `render/<what>` and `tokenize/<what>` → how often.
        is_coarse: only turns are told apart: a turn's text is one field.
    """

    def __init__(
        self,
        text: str,
        segments: list[Segment],
        written: Written,
        counts: Counter[str] | None = None,
        *,
        is_coarse: bool = False,
    ) -> None:
        self.text, self.written, self.is_coarse = text, written, is_coarse
        self.counts = Counter() if counts is None else counts
        self._segments = segments

    @property
    def segments(self) -> list[Segment]:
        """Who wrote what."""
        return self._segments

    @property
    def contents(self) -> list[tuple[int, int]]:
        """(start, end) of what content wrote."""
        return [(one.start, one.end) for one in self.segments if one.kind is not None]

    def covers(self, counts: Counter[str]) -> bool:
        """Whether every message is known to stand in the text; False where each must be looked for.

        Args:
            counts: takes what of them is left out by policy.
        """
        return False


class Recording(NamedTuple):
    """A run on symbols."""

    conversation: Conversation
    pieces: list[str]
    recorder: Recorder


class Template:
    """A chat template and the variables it is rendered with.

    Args:
        source: the template's text.
        special_tokens: `bos_token` and the like, by variable name.
        date: the day its clock shows, ISO 8601.
        name: what to call it in messages.

    Raises:
        UsageError: the text is not a template.
    """

    def __init__(
        self, source: str, special_tokens: Mapping[str, str], date: str = "2025-01-01", name: str = "chat template"
    ) -> None:
        self.source, self.name, self.date = source, name, date
        self.special_tokens = dict(special_tokens)
        self._tracking, self._plain = (ChatEnvironment(date, stamps=stamps) for stamps in (True, False))
        try:
            self._tracked_template = self._tracking.from_string(source)
            self._plain_template = self._plain.from_string(source)
        except TemplateSyntaxError as fault:
            raise UsageError(
                f"{name}: line {fault.lineno} is not Jinja as chat templates are written: {fault.message}",
                next_step="--template chatml",
            ) from fault
        except Exception as fault:  # a template may break the compiler: nested too deep, numbers too long
            raise UsageError(
                f"{name} cannot be compiled: {type(fault).__name__}: {quote(str(fault))}", next_step="--template chatml"
            ) from fault

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Every text the template itself can write."""
        tree = self._plain.parse(self.source)
        texts = [node.data for node in tree.find_all(nodes.TemplateData)]
        texts += [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        return (*texts, *self.special_tokens.values())

    @property
    def asks_the_clock(self) -> bool:
        """Whether a render so far depended on the date."""
        return self._tracking.clock.asked or self._plain.clock.asked

    def plain(self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json], *, prompt: bool = False) -> str:
        """The text as transformers gives it, without origins.

        Raises:
            Rejected: the template refuses the row, or goes over a bound.
        """
        return "".join(self.plain_pieces(write(conversation, form, None, Counter()), kwargs, prompt=prompt))

    def plain_pieces(self, written: Written, kwargs: Mapping[str, Json], *, prompt: bool = False) -> list[str]:
        """The plain text piece by piece, what generation tags hold as `Generated`.

        Raises:
            Rejected: the template refuses the row, or goes over a bound.
        """
        with _row_faults():
            return list(
                self._plain.render_pieces(self._plain_template, self._variables(written, kwargs, prompt), Trace())
            )

    def tracked(
        self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json], *, prompt: bool = False
    ) -> Dialog:
        """The text with its segments, proven equal to the plain text.

        Raises:
            Rejected: the template refuses the row, goes over a bound, or gives another text when tracked.
        """
        counts: Counter[str] = Counter()
        trace = Trace()
        written = write(conversation, form, trace, counts)
        variables = self._variables(written, kwargs, prompt)
        with _row_faults():
            pieces = [
                Emitted(piece, trace.owner)
                for piece in self._tracking.render_pieces(self._tracked_template, variables, trace)
            ]
        text = "".join(piece.text for piece in pieces)
        if text != self.plain(conversation, form, kwargs, prompt=prompt):
            raise Rejected("render-differs", "the tracked text is not the template's own text; its spans are not known")
        return Dialog(text, segments_of(pieces, trace.origins, written.entries), written, counts)

    def dialog(
        self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json], rung: Rung, stops: Sequence[str]
    ) -> Dialog:
        """The text with its segments, found in the way of a rung.

        Args:
            conversation: the row.
            form: how it is written for the template.
            kwargs: template arguments.
            rung: how spans are found.
            stops: generation eos set.

        Raises:
            Rejected: the template cannot say the row, or its spans are not known.
        """
        if rung == "tracked":
            return self.tracked(conversation, form, kwargs)
        text, segments, written = coarse_segments(self, rung, stops, conversation, form, kwargs)
        return Dialog(text, segments, written, is_coarse=True)

    def recorded(
        self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json], *, with_names: bool = True
    ) -> Recording:
        """The run of a conversation's shape, for a row that `tracked` renders.

        Args:
            conversation: the row.
            form: how it is written for the template.
            kwargs: template arguments.
            with_names: record what is done with the names of functions, too.

        Raises:
            Refused: the template does with content what cannot be recorded.
        """
        environment, template = self._recording
        trace = RecordingTrace(conversation, with_names=with_names)
        written = write(conversation, form, trace, Counter())
        pieces = environment.render_pieces(template, self._variables(written, kwargs, prompt=False), trace)
        return Recording(conversation, list(pieces), trace.recorder)

    def passages(self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json]) -> list[Recorded]:
        """The run of a conversation message by message, for a row that `tracked` renders.

        Raises:
            Refused: the template does with content what cannot be recorded.
        """
        environment, template = self._passage_recording
        trace = Trace()
        written = write(conversation, form, trace, Counter())
        return environment.record(template, written, self._variables(written, kwargs, prompt=False), trace)

    @cached_property
    def _passage_recording(self) -> tuple[PassageEnvironment, jinja2.Template]:
        environment = PassageEnvironment(self.date)
        return environment, environment.from_string(self.source)

    @cached_property
    def _recording(self) -> tuple[RecordingEnvironment, jinja2.Template]:
        environment = RecordingEnvironment(self.date)
        return environment, environment.from_string(self.source)

    def generation_prompt(self, conversation: Conversation, form: Form, kwargs: Mapping[str, Json]) -> str:
        """What the template writes behind the conversation for the model to go on from, asked for it or always."""
        before, after = (self.plain(conversation, form, kwargs, prompt=prompt) for prompt in (False, True))
        if after.startswith(before) and after != before:
            return after[len(before) :]
        dialog = self.tracked(conversation, form, kwargs, prompt=True)
        tail = len(dialog.text)
        for segment in reversed(dialog.segments):
            if segment.entry >= 0 or not segment.is_literal:
                break
            tail = segment.start
        return dialog.text[tail:]

    def _variables(self, written: Written, kwargs: Mapping[str, Json], prompt: bool) -> dict[str, Any]:
        return {
            **self.special_tokens,
            **kwargs,
            "messages": written.dicts,
            "tools": written.tools,
            "documents": None,
            "add_generation_prompt": prompt,
        }


class _row_faults:
    """What a template raises on a row, as the row's fault."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: object) -> None:
        if fault is None or isinstance(fault, Rejected) or not isinstance(fault, Exception):
            return
        if isinstance(fault, TemplateLimit):
            raise Rejected("template-limit", str(fault)) from fault
        if isinstance(fault, TemplateError):
            raise Rejected("template-refuses", f"the template says: {quote(str(fault))}") from fault
        raise Rejected(
            "template-raises", f"the template fails on this row: {type(fault).__name__}: {quote(str(fault))}"
        ) from fault

"""What a template can and cannot say, learned from small conversations before the first row."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

import msgspec

from turnmill.conversation import Conversation, Json
from turnmill.errors import Rejected, UnsafeTemplate, UsageError, quote
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.attribute import Attribution, check_order
from turnmill.rendering.audit import faults_of
from turnmill.rendering.coarse import Rung
from turnmill.rendering.control import control_tokens
from turnmill.rendering.coverage import check_coverage, said_of
from turnmill.rendering.form import Form
from turnmill.rendering.markers import TAG_LIKE, Markers, common_prefix
from turnmill.rendering.prompts import Part, openings_of, prompt_end, without_prompts
from turnmill.rendering.samples import SAMPLES, WEATHER, sample
from turnmill.rendering.template import Dialog, Template
from turnmill.rendering.witness import Testimony, Witness

COARSE_RUNGS: tuple[Rung, ...] = ("generation-tags", "differences")
THINKING_STATES: tuple[dict[str, bool], ...] = ({"enable_thinking": False}, {"enable_thinking": True}, {})
"""Template arguments under which generation prompts are compared: what they share is the header."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the template says one kind of conversation."""

    name: str
    said: bool
    why: str = ""
    """The refusal, or what is lost; "" where it is said."""
    differs: bool = False
    """The tracked text is not the template's own."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was learned of one template."""

    form: Form
    markers: Markers
    verdicts: tuple[Verdict, ...]
    answer_stop: str | None
    """What ends an answer that another message follows; None where the template writes no stop."""
    last_stop: str | None
    """What ends the last answer."""
    call_stop: str | None
    """What ends a turn of calls; None where the template says none, or writes no stop."""
    added_stop: str | None
    """What is appended where the last turn has no stop."""
    keeps_history_reasoning: bool
    adds_text: str
    """Text before the first message that nobody recorded (a default system prompt)."""
    trims: bool
    """White space at the edges of a text is lost."""
    asks_the_clock: bool
    rung: Rung = "tracked"
    """How spans are found."""
    needs_tools: bool = False
    """The template says nothing to a row without tool definitions."""
    text_arguments: Literal["said", "double-encoded", "refused"] = "refused"
    """What becomes of a call's arguments given as JSON text."""
    scaffold: str = ""
    """The empty think block that it writes before an answer without reasoning."""
    edges_witnessed: int = 0
    """Beginnings and ends of turns of the samples that differences between renders confirm."""


def probe(template: Template, stops: Iterable[str], added: Iterable[tuple[str, bool]] | None = None) -> Probe:
    """Learn a template.

    Args:
        template: the template.
        stops: generation eos set.
        added: (text, special) of each added token; None without a tokenizer.

    Raises:
        UsageError: the template renders no plain conversation, or writes no stop that ends generation.
    """
    found, refusal = None, None
    tracked = _Prober(template, stops, added)
    try:
        found = tracked.run()
    except UsageError as fault:
        refusal = fault
    if found is not None and not any(verdict.differs for verdict in found.verdicts):
        return tracked.confirmed(found)
    for rung in COARSE_RUNGS:
        with suppress(UsageError):
            prober = _Prober(template, stops, added, rung)
            coarse = prober.run()
            if prober.is_sound():
                return coarse
    if found is None:
        raise refusal or UsageError(f"{template.name} cannot be used")
    return found


def kwargs_of(conversation: Conversation) -> dict[str, Json]:
    """The template arguments of a sample."""
    return {"enable_thinking": any(message.channel == "analysis" for message in conversation.messages)}


class _Prober:
    """The steps of a probe; each uses what the ones before have learned."""

    def __init__(
        self,
        template: Template,
        stops: Iterable[str],
        added: Iterable[tuple[str, bool]] | None,
        rung: Rung = "tracked",
    ) -> None:
        self._template, self._rung = template, rung
        ordered = tuple(sorted(set(stops), key=lambda text: (-len(text), text)))
        self._markers = Markers(stops=ordered, control=control_tokens(added, template.literals, ordered))
        self._form = Form()
        self._needs_tools = False

    def is_sound(self) -> bool:
        """Whether every sample that the template says has its spans right."""
        return not any(self._audit(self._sample(name)) for name in SAMPLES if self._says(name, self._form))

    def confirmed(self, found: Probe) -> Probe:
        """What was learned, where two witnesses who know nothing of origins say the same of every sample.

        Raises:
            UnsafeTemplate: one of them says otherwise.
        """
        seen = 0
        for name in SAMPLES:
            if not self._says(name, self._form):
                continue
            conversation = self._sample(name)
            testimony = self._testimony(conversation)
            for fault in (*self._audit(conversation), *testimony.faults):
                raise UnsafeTemplate(
                    "spans-uncertain",
                    f"{self._template.name}: who wrote what is not certain ({name}): {fault}; use another template",
                    next_step="--template chatml",
                )
            seen += testimony.seen
        return replace(found, edges_witnessed=seen)

    def _audit(self, conversation: Conversation) -> list[str]:
        """What the judge finds wrong with a sample's spans."""
        dialog = self._dialog(conversation)
        trained = [(start, end) for start, end, _, kind in self._parts(conversation, dialog) if kind in TRAINED_KINDS]
        stops, control = self._markers.stops, self._markers.control
        return faults_of(conversation, dialog.text, trained, stops, control, is_open=True)

    def _testimony(self, conversation: Conversation) -> Testimony:
        """What differences between renders say of a sample's spans."""
        dialog = self._dialog(conversation)
        witness = Witness(self._template, self._form, self._markers)
        kwargs = kwargs_of(conversation)
        return witness.testimony(
            conversation, kwargs, dialog.text, self._parts(conversation, dialog), dialog.written.entries
        )

    def _parts(self, conversation: Conversation, dialog: Dialog) -> list[Part]:
        """Who wrote what, as the renderer gives it."""
        entries = dialog.written.entries
        attribution = Attribution(dialog.text, dialog.segments, entries, self._markers, Counter())
        openings = openings_of(dialog.text, dialog.segments)
        ends = {}
        for number, entry in enumerate(entries):
            if entry.role == "assistant":
                prompt = self._prompt(conversation, entry.messages[0], kwargs_of(conversation)) or ""
                ends[number] = prompt_end(openings.get(number), attribution.starts.get(number), prompt)
        return without_prompts(dialog.text, attribution.parts, attribution.starts, ends)

    def _sample(self, name: str) -> Conversation:
        """The sample; with tools, where the template says nothing without."""
        made = sample(name)
        return msgspec.structs.replace(made, tools=(WEATHER,)) if self._needs_tools else made

    def run(self) -> Probe:
        if not self._says("one turn", self._form) and self._says("one turn", replace(self._form, parts=True)):
            self._form = replace(self._form, parts=True)
        self._needs_tools = not self._says("one turn", self._form)
        self._require_plain()
        self._learn_form()
        self._markers = replace(self._markers, think_close=self._think_close())
        self._learn_headers()
        verdicts = tuple(self._verdict(name) for name in SAMPLES)
        answer_stop, last_stop = self._stops("two turns", 1), self._stops("one turn", 1)
        call_stop = self._stops("tool call", 1)
        found = Probe(
            form=self._form,
            markers=self._markers,
            verdicts=verdicts,
            answer_stop=answer_stop,
            last_stop=last_stop,
            call_stop=call_stop,
            added_stop=None if last_stop else answer_stop,
            keeps_history_reasoning=self._keeps_history(),
            adds_text=self._added_text(),
            trims=self._trims(),
            asks_the_clock=self._template.asks_the_clock,
            rung=self._rung,
            needs_tools=self._needs_tools,
            text_arguments=self._text_arguments(),
            scaffold=self._scaffold(),
        )
        check_stops(found, self._template.name)
        return found

    def _dialog(self, conversation: Conversation, form: Form | None = None) -> Dialog:
        """A covered render: nothing of the conversation is lost."""
        form = form or self._form
        kwargs = kwargs_of(conversation)
        dialog = self._template.dialog(conversation, form, kwargs, self._rung, self._markers.stops)
        check_coverage(conversation, dialog.written, form, said_of(conversation, dialog), dialog.counts)
        check_order(dialog.segments, dialog.written.entries)
        return dialog

    def _says(self, name: str, form: Form) -> bool:
        try:
            self._dialog(self._sample(name), form)
        except Rejected:
            return False
        return True

    def _require_plain(self) -> None:
        try:
            self._dialog(self._sample("one turn"))
        except Rejected as fault:
            raise UsageError(
                f"{self._template.name} cannot be used: a plain question and answer is not rendered: {fault}",
                next_step="--template chatml",
            ) from fault

    def _learn_form(self) -> None:
        """Of two ways to write something the first that survives."""
        for name, change in (
            ("developer message", {"developer": False}),
            ("several system messages", {"several_systems": False}),
            ("reasoning", {"reasoning": False}),
        ):
            if not self._says(name, self._form):
                self._form = replace(self._form, **change)  # type: ignore[arg-type]  # a flag of Form each
        forms = [replace(self._form, empty_content=empty) for empty in (True, False)]
        forms = [form for one in forms for form in (one, replace(one, arguments="text"))]
        self._form = next((form for form in forms if self._says("tool call", form)), self._form)
        self._form = replace(self._form, bare_tools=self._says_bare_tools())

    def _says_bare_tools(self) -> bool:
        called = self._sample("tool call")
        try:
            text = self._dialog(msgspec.structs.replace(called, tools=(WEATHER["function"],))).text
        except Rejected:
            return False
        return all(word in text for word in ("Weatherdescription", "Citydescription"))

    def _learn_headers(self) -> None:
        one_turn = self._sample("one turn")
        user = self._header("two turns", 1, 3) or self._header("one turn", 1)
        prompts = self._prompts(one_turn, 1)
        if not user and self._leading(one_turn, 1) and (any(prompts) or not prompts):
            raise UnsafeTemplate(
                "generation-prompt-differs",
                f"{self._template.name}: what opens a turn is not what the generation prompt holds, "
                "so where the model's own text begins is not known; use another template",
                next_step="--template chatml",
            )
        headers = {"user": user, "tool": self._header("tool call", 3)}
        self._markers = replace(self._markers, headers={role: text for role, text in headers.items() if text})

    def _header(self, name: str, *entries: int) -> str:
        """What all leading literals of these turns and all generation prompts before them share.

        Without a generation prompt it is what the turns' own openings share, if that is more than white space.
        """
        conversation = self._sample(name)
        shared = [literal for entry in entries if (literal := self._leading(conversation, entry)) is not None]
        prompts = self._prompts(conversation, entries[-1])
        texts = [*shared, *(prompt for prompt in prompts if prompt)]
        if name == "two turns" and self._form.reasoning:
            texts.append(self._leading(self._sample("reasoning"), 1) or texts[0])
        if not shared:
            return ""
        header = reduce(common_prefix, texts)
        if not any(prompts) and not header.strip():
            return ""
        return self._without_opener(header)

    def _without_opener(self, header: str) -> str:
        """The header without a think tag that its generation prompts open: a block's tags belong to its reasoning."""
        closer = self._markers.think_close or ""
        opener = closer.replace("/", "", 1)
        return header[: header.rindex(opener)] if opener != closer and opener in header else header

    def _prompts(self, conversation: Conversation, length: int) -> list[str]:
        """The generation prompts behind the first messages, with thinking off, on, and unsaid, of those that render."""
        prompts = (self._prompt(conversation, length, kwargs) for kwargs in THINKING_STATES)
        return [prompt for prompt in prompts if prompt is not None]

    def _prompt(self, conversation: Conversation, length: int, kwargs: Mapping[str, Json]) -> str | None:
        """The generation prompt behind the first messages; None where they do not render."""
        with suppress(Rejected):
            return self._template.generation_prompt(conversation.beginning(length), self._form, kwargs)
        return None

    def _leading(self, conversation: Conversation, entry: int) -> str | None:
        """The literal that opens a turn; None where the template does not render it."""
        try:
            dialog = self._dialog(conversation)
        except Rejected:
            return None
        literal = ""
        for segment in dialog.segments:
            if segment.entry == entry:
                if not segment.is_literal:
                    break
                literal += dialog.text[segment.start : segment.end]
        return literal

    def _think_close(self) -> str | None:
        """What stands between reasoning and answer, up to the end of its first tag."""
        if not self._form.reasoning:
            return self._scaffold_close()
        try:
            dialog = self._dialog(self._sample("reasoning"))
        except Rejected:
            return None
        literal, seen = "", False
        for segment in dialog.segments:
            seen |= segment.kind == "reasoning"
            if seen and segment.is_literal:
                literal += dialog.text[segment.start : segment.end]
            elif seen and segment.kind == "answer":
                break
        found = control_tokens(None, [literal], ())
        first = min((literal.find(tag), tag) for tag in found)[1] if found else literal.strip()
        return first or None

    def _scaffold_close(self) -> str | None:
        """What closes the empty think block that turns, and the prompts before them, open with; None without one."""
        for name, entry in (("one turn", 1), ("tool call", 1)):
            conversation = self._sample(name)
            literal = self._leading(conversation, entry) or ""
            prompts = self._prompts(conversation, entry)
            shared = reduce(common_prefix, prompts) if prompts else ""
            for prompt in prompts:
                block = prompt[len(shared) :]
                if block.strip() and literal.startswith(prompt) and (tags := TAG_LIKE.findall(block)):
                    return str(tags[-1])
        return None

    def _verdict(self, name: str) -> Verdict:
        try:
            dialog = self._dialog(sample(name))
        except Rejected as fault:
            return Verdict(name, False, str(fault), fault.code == "render-differs")
        if dialog.counts["render/tools-unsaid"]:
            return Verdict(name, False, "the tool definitions are left out")
        return Verdict(name, True)

    def _stops(self, name: str, entry: int) -> str | None:
        """The stop of one turn of a sample."""
        conversation = self._sample(name)
        try:
            dialog = self._dialog(conversation)
        except Rejected:
            return None
        message = dialog.written.entries[entry].messages[-1]
        stops = [
            dialog.text[start:end]
            for start, end, owner, kind in self._parts(conversation, dialog)
            if (owner, kind) == (message, "stop")
        ]
        return stops[0] if stops else None

    def _keeps_history(self) -> bool:
        if not self._form.reasoning:
            return False
        try:
            dialog = self._dialog(self._sample("reasoning in an earlier turn"))
        except Rejected:
            return False
        return not dialog.counts["render/history-reasoning-stripped"]

    def _added_text(self) -> str:
        """What the template writes before the first message of rows without and with reasoning; once where alike."""
        found = [self._text_before_user(name) for name in ("one turn", "reasoning") if self._says(name, self._form)]
        return "\n\n".join(dict.fromkeys(filter(None, found)))

    def _text_before_user(self, name: str) -> str:
        """Words before the first message of a sample that are neither recorded nor a control token."""
        dialog = self._dialog(self._sample(name))
        start = next((segment.start for segment in dialog.segments if segment.kind == "user"), 0)
        text = dialog.text[:start]
        for token in self._markers.control:
            text = text.replace(token, " ")
        words = text.split()
        return text.strip() if len(words) > 2 else ""

    def _text_arguments(self) -> Literal["said", "double-encoded", "refused"]:
        conversation = self._sample("tool call")
        try:
            form = replace(self._form, arguments="text")
            text = self._template.plain(conversation, form, kwargs_of(conversation))
        except Rejected:
            return "refused"
        arguments = next(message.text for message in conversation.messages if message.is_call)
        if json.dumps(arguments) in text:
            return "double-encoded"
        return "said" if arguments in text else "refused"

    def _scaffold(self) -> str:
        """What the last turn opens with that is neither header nor learned."""
        conversation = self._sample("one turn")
        dialog = self._dialog(conversation)
        kinds = self._parts(conversation, dialog)
        return "".join(dialog.text[start:end] for start, end, _, kind in kinds if kind == "scaffold")

    def _trims(self) -> bool:
        plain = self._sample("one turn")
        edged = tuple(msgspec.structs.replace(message, text=f"  {message.text}\n") for message in plain.messages)
        try:
            dialog = self._dialog(msgspec.structs.replace(plain, messages=edged))
            return bool(dialog.counts["render/trimmed"])
        except Rejected:
            return False


def check_stops(found: Probe, name: str) -> None:
    """Refuse a template whose stops would teach the model not to stop.

    Raises:
        UnsafeTemplate: the stop of the last turn, or of a call, is not in the generation eos set.
    """
    stops = found.markers.stops
    wanted = {"last turn": found.last_stop or found.added_stop}
    if found.call_stop or any(verdict.said for verdict in found.verdicts if verdict.name == "tool call"):
        wanted["tool call"] = found.call_stop
    for turn, stop in wanted.items():
        if stop not in stops:
            has = f"ends with {quote(stop)}" if stop else "has no stop token"
            raise UnsafeTemplate(
                "stop-not-in-eos" if stop else "turn-without-stop",
                f"{name}: a {turn} {has}, but generation ends only on {', '.join(map(repr, stops)) or 'nothing'}: "
                "a model trained so would not stop. Add the token to eos_token_id in generation_config.json, or say: "
                """--special-tokens '{"eos_token": "TOKEN"}'""",
                next_step=f"--special-tokens {shlex.quote(json.dumps({'eos_token': stop}))}"
                if stop
                else "--template chatml",
            )

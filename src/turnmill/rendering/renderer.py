"""`Renderer`: a checked conversation in, its text and spans out, or the row rejected with what the template loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from turnmill.conversation import Checked, Conversation, Json
from turnmill.errors import Rejected
from turnmill.options import Render
from turnmill.rendered import Rendered
from turnmill.rendering.attribute import Attribution, check_order, spans_of
from turnmill.rendering.blocks import Attributed
from turnmill.rendering.control import ControlScan
from turnmill.rendering.coverage import check_coverage, said_of
from turnmill.rendering.fill import Fills
from turnmill.rendering.form import Written
from turnmill.rendering.probe import Probe, probe
from turnmill.rendering.prompts import openings_of, prompt_end, without_prompts
from turnmill.rendering.raw_text import NOTHING, Around, render_raw_text
from turnmill.rendering.template import Dialog, Template

MAX_PROMPTS = 256
"""Generation prompts that are remembered; with more all are forgotten: each row may bring template arguments."""


class Renderer:
    """Renders conversations with one template.

    Args:
        source: the template's text.
        special_tokens: `bos_token` and the like, by variable name.
        stops: generation eos set.
        added: (text, special) of each added token of the tokenizer; None without one.
        options: the `render` section.
        name: what to call the template in messages.
        accelerate: replay recorded renders for conversations of one shape.

    Attributes:
        probe: what was learned of the template.
        around: the tokens around a raw text; a model sets them.
        counts: `render/<what>` and `tokenize/<what>` → how often, over all rows so far.
        fills: the recorded renders; None where none are replayed.

    Raises:
        UsageError: the template cannot be used; the message names it and the mend.
    """

    def __init__(
        self,
        source: str,
        special_tokens: Mapping[str, str],
        stops: Iterable[str],
        added: Iterable[tuple[str, bool]] | None = None,
        options: Render | None = None,
        name: str = "chat template",
        *,
        accelerate: bool = True,
    ) -> None:
        self.options = options or Render()
        self.template = Template(source, special_tokens, self.options.date, name)
        self.probe: Probe = probe(self.template, stops, added)
        self.counts: Counter[str] = Counter()
        self._scan = ControlScan(self.probe.markers.control)
        self.around: Around = NOTHING
        self.fills: Fills | None = None
        self.accelerate(is_on=accelerate)
        self._prompts: dict[tuple[str, bool, str], str] = {}

    def accelerate(self, *, is_on: bool) -> None:
        """Replay recorded renders from now on, or none."""
        if not is_on or self.probe.rung != "tracked":
            self.fills = None
        elif self.fills is None:
            self.fills = Fills(self.template, self.probe.form)

    def kwargs_of(self, conversation: Conversation, source_kwargs: Mapping[str, Json] | None = None) -> dict[str, Json]:
        """The effective template arguments: the row's, else its source's, else those of `render.template_kwargs`.

        `enable_thinking`: a recorded string, else the source's, else the global, else whether the row has reasoning.
        """
        own = dict(conversation.template_kwargs)
        if isinstance(own.get("enable_thinking"), bool):
            del own["enable_thinking"]
        kwargs = {**self.options.template_kwargs, **(source_kwargs or {}), **own}
        if "enable_thinking" not in kwargs:
            kwargs["enable_thinking"] = any(message.channel == "analysis" for message in conversation.messages)
        return kwargs

    def render(
        self,
        conversation: Checked,
        source_kwargs: Mapping[str, Json] | None = None,
        control_tokens: str | None = None,
    ) -> Rendered:
        """The text, and who wrote each character of it.

        Args:
            conversation: the row.
            source_kwargs: template arguments of the row's source.
            control_tokens: the source's policy, over `render.control_tokens`; a raw text has no other.

        Raises:
            Rejected: the template cannot say the row, or content holds control tokens under `reject`.
        """
        if conversation.is_raw_text:
            return render_raw_text(conversation, self.around, self._scan, control_tokens, self.counts)
        policy = control_tokens or self.options.control_tokens
        self._scan.check_unescapable(conversation, with_content=self.probe.rung != "tracked" and policy != "keep")
        kwargs = self.kwargs_of(conversation, source_kwargs)
        dialog, rendered = self._filled(conversation, kwargs)
        counts = Counter(dialog.counts)
        if not dialog.covers(counts):
            check_coverage(conversation, dialog.written, self.probe.form, said_of(conversation, dialog), counts)
        if not dialog.is_coarse:
            rendered = msgspec.structs.replace(rendered, control_hits=self._scan.hits(dialog.text, dialog.contents))
        rendered = self._controlled(rendered, policy, counts)
        self.counts.update(counts)
        return rendered

    def _filled(self, conversation: Conversation, kwargs: Mapping[str, Json]) -> tuple[Dialog, Rendered]:
        if self.fills is None:
            return self._rendered(conversation, kwargs)
        return self.fills.render(
            conversation,
            kwargs,
            lambda: self._rendered(conversation, kwargs),
            lambda dialog: self._finished(conversation, dialog, kwargs),
        )

    def _rendered(self, conversation: Conversation, kwargs: Mapping[str, Json]) -> tuple[Dialog, Rendered]:
        """The render by the template itself."""
        probe = self.probe
        dialog = self.template.dialog(conversation, probe.form, kwargs, probe.rung, probe.markers.stops)
        return dialog, self._finished(conversation, dialog, kwargs).rendered

    def _finished(self, conversation: Conversation, dialog: Dialog, kwargs: Mapping[str, Json]) -> Attributed:
        check_order(dialog.segments, dialog.written.entries)
        return self._attributed(conversation, dialog, kwargs)

    def _attributed(self, conversation: Conversation, dialog: Dialog, kwargs: Mapping[str, Json]) -> Attributed:
        markers, entries = self.probe.markers, dialog.written.entries
        attribution = Attribution(dialog.text, dialog.segments, entries, markers, dialog.counts)
        ends = self._prompt_ends(conversation, dialog, attribution.starts, kwargs)
        text, parts = dialog.text, without_prompts(dialog.text, attribution.parts, attribution.starts, ends)
        last = len(entries) - 1
        if self._wants_stop(attribution, entries[last].role, last):
            stop = (self.probe.call_stop if entries[last].calls else None) or self.probe.added_stop
            if stop:
                parts = [*parts, (len(text), len(text) + len(stop), entries[last].messages[-1], "stop")]
                text += stop
                dialog.counts["render/stop-added"] += 1
        rendered = Rendered(text, spans_of(conversation, parts), tuple(ends.values()))
        return Attributed(rendered, parts, attribution.foreign_stops)

    def _wants_stop(self, attribution: Attribution, role: str, entry: int) -> bool:
        return self.options.add_stop and role == "assistant" and not attribution.stops[entry]

    def _prompt_ends(
        self, conversation: Conversation, dialog: Dialog, starts: Mapping[int, int], kwargs: Mapping[str, Json]
    ) -> dict[int, int]:
        """Where each turn's generation prompt ends, by entry."""
        openings = openings_of(dialog.text, dialog.segments)
        return {
            entry: prompt_end(
                openings.get(entry), starts.get(entry), self._prompt(conversation, dialog.written, entry, kwargs)
            )
            for entry, item in enumerate(dialog.written.entries)
            if item.role == "assistant"
        }

    def _prompt(self, conversation: Conversation, written: Written, entry: int, kwargs: Mapping[str, Json]) -> str:
        """The generation prompt before an entry: it hangs on the role before, the tools and the arguments."""
        role = written.entries[entry - 1].role if entry else ""
        key = (role, bool(written.tools), repr(sorted(kwargs.items(), key=lambda item: item[0])))
        if key not in self._prompts:
            if len(self._prompts) >= MAX_PROMPTS:
                self._prompts.clear()
            before = conversation.beginning(written.entries[entry].messages[0])
            self._prompts[key] = ""
            with suppress(Rejected):
                self._prompts[key] = self.template.generation_prompt(before, self.probe.form, kwargs)
        return self._prompts[key]

    def _controlled(self, rendered: Rendered, policy: str, counts: Counter[str]) -> Rendered:
        if not rendered.control_hits:
            return rendered
        counts["render/control-token-text"] += len(rendered.control_hits)
        if policy == "reject":
            start, end = rendered.control_hits[0]
            message = next(span.message for span in rendered.spans if span.end > start)
            raise Rejected(
                "control-token-in-text",
                f"content holds the control token {rendered.text[start:end]!r}",
                at=message if message >= 0 else None,
            )
        if policy == "keep":
            return Rendered(rendered.text, rendered.spans, rendered.prompt_ends)
        return rendered

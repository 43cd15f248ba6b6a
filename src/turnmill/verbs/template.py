"""template check: what a model's chat template can and cannot say, and where its turns end."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from turnmill import smollm2
from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.models import LoadedModel, open_model
from turnmill.options import Model, Render
from turnmill.rendering.probe import Probe
from turnmill.tokens.markers import check_markers
from turnmill.verbs.tokenize import renderer_of


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateReport:
    """What was learned of one template."""

    model: LoadedModel
    probe: Probe

    def as_json(self) -> dict[str, Json]:
        """The answer of `template check --json`."""
        probe, model = self.probe, self.model
        return {
            "name": model.name,
            "template": model.template_origin,
            "tokenizer": model.tokenizer_path is not None,
            "usable": True,
            "says": [dataclasses.asdict(verdict) for verdict in probe.verdicts],
            "headers": probe.markers.headers,
            "stops": {
                "answer": probe.answer_stop,
                "call": probe.call_stop,
                "last": probe.last_stop,
                "added": probe.added_stop,
                "eos": sorted(model.eos),
                "eos_origin": model.eos_origin,
            },
            "reasoning": {
                "said": probe.form.reasoning,
                "close": probe.markers.think_close,
                "kept_in_history": probe.keeps_history_reasoning,
            },
            "spans": probe.rung,
            "adds_text": probe.adds_text,
            "trims": probe.trims,
            "asks_the_clock": probe.asks_the_clock,
            "form": dataclasses.asdict(probe.form),
            "control_tokens": list(probe.markers.control),
        }


def check_template(target: str, model: Model) -> TemplateReport:
    """Probe a template, and ask the tokenizer, where there is one, for its turn markers.

    Args:
        target: a model directory, `smollm2`, a Jinja file, or one of turnmill's own templates.
        model: `template` and `special_tokens` as typed.

    Raises:
        UsageError: there is no such thing, or it cannot be used; the message gives the mend.
    """
    try:
        loaded = open_model(_named(target, model))
        probe = renderer_of(loaded, Render()).probe
        if loaded.tokenizer_path is not None:
            check_markers(loaded.tokenizer(), probe, loaded.name)
    except UsageError as fault:
        fault.next_step = _next_step(fault.next_step or "")
        raise
    return TemplateReport(loaded, probe)


def _next_step(advice: str) -> str:
    """What other verbs advise, as this verb's arguments; where they advise this verb, a template that can be used."""
    if advice.startswith("--model "):
        return f"turnmill template check {advice.removeprefix('--model ')}"
    return (
        "turnmill template check chatml"
        if advice.startswith(("turnmill template", "--template ", "--special-tokens "))
        else advice
    )


def _named(target: str, model: Model) -> Model:
    """The target as a model or, where it is neither a directory nor `smollm2`, as a template."""
    path = Path(target).expanduser()
    is_template = path.is_file() or (target != smollm2.NAME and not path.exists() and "/" not in target)
    if is_template and model.template is None:
        return dataclasses.replace(model, template=target)
    return dataclasses.replace(model, name_or_path=target)

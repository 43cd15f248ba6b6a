"""template: what models' chat templates can and cannot say, where their turns end; our own, put beside a tokenizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from turnmill import smollm2
from turnmill.conversation import Json
from turnmill.errors import HealthError, UnsafeTemplate, UsageError, shell_word
from turnmill.executors.limited import probe_in_subprocess
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
            "scaffold": probe.scaffold,
            "arguments_as_text": probe.text_arguments,
            "needs_tools": probe.needs_tools,
            "edges_witnessed": probe.edges_witnessed,
            "asks_the_clock": probe.asks_the_clock,
            "form": dataclasses.asdict(probe.form),
            "control_tokens": list(probe.markers.control),
        }


def check_template(target: str, model: Model) -> TemplateReport:
    """Probe a template, and ask the tokenizer, where there is one, for its turn markers.

    A file without a tokenizer may be a stranger's: it is probed in a limited process.

    Args:
        target: a model directory, `smollm2`, a Jinja file, or one of turnmill's own templates.
        model: `template` and `special_tokens` as typed.

    Raises:
        UsageError: there is no such thing, or it cannot be used; the message gives the mend.
        HealthError: it renders, but trained on would teach the wrong thing.
    """
    try:
        loaded = open_model(_named(target, model))
        if loaded.tokenizer_path is None:
            name = f"the template of {loaded.name}"
            return TemplateReport(
                loaded, probe_in_subprocess(loaded.template, loaded.special_tokens, loaded.eos, name=name)
            )
        probe = renderer_of(loaded, Render()).probe
        check_markers(loaded.tokenizer(), probe, loaded.name)
    except UnsafeTemplate as fault:
        raise HealthError(str(fault), next_step=_mend(fault.next_step or "", target)) from fault
    except UsageError as fault:
        fault.next_step = _next_step(fault.next_step or "")
        raise
    return TemplateReport(loaded, probe)


def _mend(advice: str, target: str) -> str:
    """What other verbs advise, for this verb to try."""
    if advice.startswith("--special-tokens "):
        return f"turnmill template check {shell_word(target)} {advice}"
    return _next_step(advice)


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """One of many templates: its report, or why it cannot be used."""

    target: str
    report: TemplateReport | None
    refusal: str = ""
    code: str | None = None
    """What it would teach wrongly; None where it cannot be used at all."""

    @property
    def is_unsafe(self) -> bool:
        """It renders, but trained on would teach the wrong thing."""
        return self.code is not None

    def as_json(self) -> dict[str, Json]:
        """One object of `template check --json A B`."""
        if self.report is not None:
            return {"target": self.target, **self.report.as_json()}
        return {
            "target": self.target,
            "usable": False,
            "unsafe": self.is_unsafe,
            "code": self.code,
            "why": self.refusal,
        }


def targets_of(given: Sequence[str]) -> list[str]:
    """What was given, a directory of templates as the files in it, by name."""
    targets: list[str] = []
    for target in given:
        path = Path(target).expanduser()
        is_model = (path / "tokenizer.json").is_file() or (path / "tokenizer_config.json").is_file()
        files = sorted(path.glob("*.jinja")) if path.is_dir() and not is_model else []
        targets += [str(file) for file in files] or [target]
    return targets


def check_templates(targets: Iterable[str], model: Model) -> Iterator[CheckedTemplate]:
    """Probe many templates; one that cannot be used is a line with why."""
    for target in targets:
        try:
            yield CheckedTemplate(target, check_template(target, model))
        except (UsageError, HealthError) as fault:
            unsafe = fault.__cause__ if isinstance(fault, HealthError) else None
            yield CheckedTemplate(target, None, str(fault), unsafe.code if isinstance(unsafe, UnsafeTemplate) else None)


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

"""The public templates, and what is found of each: whether its text is transformers', and who wrote what in it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import assets
from probes import PROBES, probe_of
from tests_support import TRANSFORMERS_TOKENS, reference_render
from turnmill.conversation import Checked, Conversation
from turnmill.errors import Rejected, UsageError
from turnmill.rendered import TRAINED_KINDS, Rendered
from turnmill.rendering.audit import faults_of
from turnmill.rendering.form import Form, write
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.template import Template
from turnmill.stops import stops_of

MENDED = {"upstage-Solar-Open-100B": "<|end|>"}
"""Templates that are refused without this `eos_token`, as their refusal says; they are judged with it."""
ARGUMENTS = {
    "fireworks-ai-llama-3-firefunction-v2": {"functions": json.dumps([{"name": "find_weather"}]), "datetime": "today"}
}
"""Template arguments without which a template renders nothing."""
QUICK = (
    "qwen3", "glm4moe", "gptoss_training", "gemma4_v5", "llama3_1", "deepseekv3", "phi3", "upstage-Solar-Open-100B",
    "meetkai-functionary-medium-v3.1", "meetkai-functionary-medium-v3.2", "Apertus-8B-Instruct", "MiniMax-M2",
    "NVIDIA-Nemotron-Nano-v2", "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
)  # fmt: skip
"""A template of each way of doing things."""


@dataclass
class Finding:
    """What was found of one template."""

    name: str
    compared: int = 0
    """Renders of transformers that ours was compared with."""
    different: list[str] = field(default_factory=list)
    """Probes whose text is another than transformers'."""
    judged: int = 0
    wrong: list[str] = field(default_factory=list)
    """Probes with a wrong token, and what is wrong."""
    unsaid: dict[str, str] = field(default_factory=dict)
    """Probe → why its row is refused."""
    rung: str = ""
    stops: tuple[str | None, str | None, str | None] = (None, None, None)
    """Of answers, of calls, and of the last turn."""
    edges: int = 0
    """Beginnings and ends of turns that differences between renders confirm."""
    refusal: str = ""
    """Why the template cannot be used."""


@cache
def paths() -> dict[str, Path]:
    """Name → file of each of the 142 public templates."""
    files = [*assets.trl_templates().glob("*.jinja"), *assets.llama_cpp_templates().glob("*.jinja")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem.lower())}


def find(name: str, path: Path, forms: tuple[Form, ...] = (Form(),)) -> Finding:
    """What is found of the template of that name."""
    source = path.read_text("utf-8")
    finding = Finding(name)
    renderer = _renderer(name, source, finding)
    known = (Form(),) if renderer is None else (renderer.probe.form,)
    compare(finding, source, tuple(dict.fromkeys(replace(form, reasoning=True) for form in (*known, *forms))))
    if renderer is not None:
        judge(finding, renderer)
    return finding


def _renderer(name: str, source: str, finding: Finding) -> Renderer | None:
    stops = stops_of(source, TRANSFORMERS_TOKENS["eos_token"]).tokens
    for added in ({}, {MENDED[name]} if name in MENDED else {}):
        try:
            made = Renderer(source, TRANSFORMERS_TOKENS, {*stops, *added}, name=name, accelerate=False)
        except UsageError as fault:
            finding.refusal = finding.refusal or str(fault)
            continue
        probe = made.probe
        finding.rung, finding.edges = probe.rung, probe.edges_witnessed
        finding.stops = (probe.answer_stop, probe.call_stop, probe.last_stop or probe.added_stop)
        return made
    return None


def compare(finding: Finding, source: str, forms: tuple[Form, ...]) -> None:
    """Compare the text of every probe with transformers', with and without a generation prompt."""
    template = Template(source, TRANSFORMERS_TOKENS)
    for name in PROBES:
        row = probe_of(name)
        kwargs = {**kwargs_of(row), **ARGUMENTS.get(finding.name, {})}
        for form in forms:
            for prompt in (False, True):
                finding.compared += 1
                written = write(row, form, None, Counter())
                want = outcome(reference_render, source, written, kwargs, prompt)
                got = outcome(lambda: template.tracked(row, form, kwargs, prompt=prompt).text)  # noqa: B023 called now
                plain = outcome(template.plain, row, form, kwargs, prompt=prompt)
                assert plain == want, (finding.name, name, form, prompt)
                if got != want:
                    finding.different.append(name)


def judge(finding: Finding, renderer: Renderer) -> None:
    """Judge every probe that the template can say."""
    markers = renderer.probe.markers
    header = markers.headers.get("user", "") or "<|im_start|>assistant\n"
    stop = finding.stops[0] or finding.stops[2] or "<|im_end|>"
    for name in PROBES:
        row = probe_of(name, header, stop)
        try:
            rendered = renderer.render(Checked(row))
        except Rejected as fault:
            finding.unsaid[name] = fault.code
            continue
        finding.judged += 1
        faults = faults_of(row, rendered.text, trained_of(rendered), markers.stops, markers.control)
        finding.wrong += [f"{name}: {fault}" for fault in faults]


def trained_of(rendered: Rendered) -> list[tuple[int, int]]:
    """The characters that train."""
    return [(span.start, span.end) for span in rendered.spans if span.kind in TRAINED_KINDS]


def kwargs_of(row: Conversation) -> dict[str, bool]:
    """The template arguments of a row."""
    return {"enable_thinking": any(message.channel == "analysis" for message in row.messages)}


def outcome(function, *arguments, **named):
    """A text, or None where the template refuses."""
    try:
        return function(*arguments, **named)
    except Exception:
        return None

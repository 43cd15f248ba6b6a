"""Writes docs/reference/oracles.md, what other libraries make of our probes: `make oracles-page`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from build_corpus_page import cell
from oracle_harmony import HarmonyFinding, find_harmony
from oracle_reasons import BLOCK, LAST_STOP, LINE_END_BEFORE, OPENER, REASONS, Reason, reason_of, tag_reason_of
from oracle_renderers import OTHER_REVISIONS, Finding, findings
from oracle_tags import TagFinding, find_tags, tagged
from probes import PROBES
from turnmill.models import open_template, own_templates

PAGE = Path(__file__).parents[1] / "docs/reference/oracles.md"
HARMONY = ("harmony", "gptoss", "openai-gpt-oss-120b")


def page(found: list[Finding], harmony: list[HarmonyFinding], tags: list[TagFinding]) -> Iterator[str]:
    """The lines of the page."""
    yield "<!-- Written by tests/build_oracles_page.py: `make oracles-page`. -->\n\n# Oracles\n"
    yield (
        "Other libraries turn conversations into tokens and labels, too. This page puts what they make of "
        f"{len(PROBES)} conversations (those of [public templates](templates.md)) beside what turnmill makes of them, "
        "with the same tokenizer. Every difference has a name, which is explained [below](#why-they-differ); "
        "`make oracles` asks again, and fails on a difference without one.\n"
    )
    yield from _renderers(found)
    yield from _harmony(harmony)
    yield from _tags(tags)
    yield "\n## Why they differ\n\n| name | what differs, and who is right |\n|-|-|"
    named = {reason.name for reason in REASONS}
    used = {name for one in found for name in _names(one)} | {name for one in tags for name in _tag_names(one)}
    assert used <= named, used - named
    for reason in REASONS:
        if reason.name in used:
            yield f"| {reason.name} | {cell(reason.means)} |"


def _renderers(found: list[Finding]) -> Iterator[str]:
    rows, ids, equal = (sum(getattr(one, name) for one in found) for name in ("compared", "equal_ids", "equal"))
    yield f"## renderers {version('renderers')}\n"
    yield (
        "PrimeIntellect's `renderers` writes tokens in Python, a class for each model family, with a mask of what the "
        "model samples; `ensure_final_stop` is on. Tokenizers are the families' own where a package brings them, else "
        "Qwen3's with the family's markers added.\n"
    )
    yield (
        f"Of {rows} conversations under {len(found)} templates {ids} have the same ids, {equal} the same labels as "
        f"well, and {sum(map(_equal_enough, found))} but for think blocks and the stop that is appended to a last "
        "turn.\n"
    )
    yield "| template | renderer | rows | same ids | same labels | but for blocks and last stop | what differs | we refuse | they refuse |"  # noqa: E501 a table's head
    yield "|-|-|-|-|-|-|-|-|-|"
    for one in found:
        refused = Counter(one_code for one_code, _ in one.we_refuse.values())
        cells = (
            one.template, one.renderer, one.compared, one.equal_ids, one.equal, _equal_enough(one),
            _counted(_names(one)), _counted(refused.elements()), len(one.they_refuse) or "",
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
    lost = sum(lacks for one in found for _, lacks in one.we_refuse.values())
    refusals = sum(len(one.we_refuse) for one in found)
    yield (
        f"\nOf the {refusals} rows that we refuse and they write, {lost} lack a text of the row in what they write: it "
        "is lost without a word. The others they write by a grammar of their own, where the template at hand drops, "
        "reorders or refuses that part of the row; served with that template, a model would never see it so.\n"
    )
    others = "; ".join(f"{name} ({why})" for name, why in OTHER_REVISIONS.items())
    yield f"Not compared, since `renderers` follows another revision of the template: {others}.\n"


def _harmony(found: list[HarmonyFinding]) -> Iterator[str]:
    yield f"## openai-harmony {version('openai-harmony')}\n"
    yield (
        "OpenAI's own library writes the conversation (`render_conversation_for_training`), and reads what trains as a "
        "server reads a completion (`parse_messages_from_completion_tokens`): channel, recipient and text must be "
        "those that were recorded.\n"
    )
    yield "| template | rows | same ids | every turn read back | not read back |\n|-|-|-|-|-|"
    for one in found:
        unread = Counter(channel for turns in one.others.values() for channel, *_ in turns)
        yield (
            f"| {one.template} | {one.compared} | {len(one.equal)} | {len(one.read_back)} | "
            f"{_counted(unread.elements())} |"
        )
    yield (
        "\nTurnmill's own `harmony` template writes the same ids but in rows with tools: it lists their definitions as "
        "JSON, where Harmony's own system message would have them as TypeScript, and names the recipient of a call "
        "behind its channel (`<|channel|>commentary to=functions.f`), where the library writes it before. Harmony "
        "allows both; the library reads both alike. The public templates of gpt-oss write a system message that the "
        "library leaves to its caller, and leave out reasoning of earlier turns, as Harmony asks.\n"
    )


def _tags(found: list[TagFinding]) -> Iterator[str]:
    rows, equal = sum(one.compared for one in found), sum(one.equal for one in found)
    yield f"## Generation tags, by transformers {version('transformers')}\n"
    yield (
        "`apply_chat_template(return_assistant_tokens_mask=True)` trains what a template puts between "
        "`{% generation %}` and `{% endgeneration %}`. Turnmill's own templates have such tags, and so have "
        f"{len(found) - len(own_templates())} of the public ones; our labels do not come from them.\n"
    )
    yield f"Of {rows} conversations {equal} have the same ids and labels; in the others only this differs:\n"
    yield "| template | rows | same labels | what differs |\n|-|-|-|-|"
    for one in found:
        yield f"| {one.template} | {one.compared} | {one.equal} | {_counted(_tag_names(one))} |"


def _equal_enough(one: Finding) -> int:
    """Rows that differ in nothing but think blocks and the stop of the last turn."""
    minor = (BLOCK, OPENER, LINE_END_BEFORE, LAST_STOP)
    other = {probe for probe, found in one.differences if reason_of(one.template, probe, found) not in minor}
    return one.compared - len(other)


def _names(one: Finding) -> list[str]:
    return [_name(reason_of(one.template, probe, found)) for probe, found in one.differences]


def _tag_names(one: TagFinding) -> list[str]:
    return [_name(tag_reason_of(found)) for _, found in one.differences]


def _name(reason: Reason | None) -> str:
    return reason.name if reason else "unexplained"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())


def tag_findings() -> list[TagFinding]:
    """Of turnmill's own templates, and of the public ones with tags."""
    own = [find_tags(name, open_template(name).template) for name in own_templates()]
    return [*own, *(find_tags(name, path.read_text("utf-8")) for name, path in tagged().items())]


if __name__ == "__main__":
    PAGE.write_text("\n".join(page(findings(), [*map(find_harmony, HARMONY)], tag_findings())) + "\n", "utf-8")

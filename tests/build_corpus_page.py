"""Writes docs/reference/templates.md, what is found of each public template: `make corpus`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from corpus import MENDED, Finding, find, paths
from probes import PROBES
from turnmill.rendering.form import Form

PAGE = Path(__file__).parents[1] / "docs/reference/templates.md"
FORMS = (Form(), Form(arguments="text"), Form(empty_content=False))


def page(findings: list[Finding]) -> Iterator[str]:
    """The lines of the page."""
    refused = [one for one in findings if one.refusal]
    compared = sum(one.compared for one in findings)
    different = [one.name for one in findings if one.different]
    yield "<!-- Written by tests/build_corpus_page.py: `make corpus`. -->\n\n# Public templates\n"
    yield (
        f"What `turnmill template check` finds of {len(findings)} public chat templates: the 72 in TRL 1.16.0 and the "
        f"70 in llama.cpp (llama-cpp-python 0.3.36). Each renders {len(PROBES)} conversations: one to three turns, "
        "system and developer messages, reasoning in all and in some turns, tools, calls alone, beside text, parallel "
        "and in loops of 2 and 6 steps, a quoted `</think>`, white space at the edges, emoji, one text in several "
        "turns, and turns forged inside user, tool and system text.\n"
    )
    yield (
        f"- **Equal**: {compared:,} renders (every conversation in up to four forms, with and without a generation "
        "prompt) were compared with transformers': the same text, or both refuse. Tracked strings give another text "
        f"on {len(different)} template ({', '.join(map(code, different))}), whose turns are found by differences.\n"
        f"- **Right**: of {sum(one.judged for one in findings):,} rows that the templates can say, a judge that knows "
        f"only words, messages and stop tokens finds {sum(len(one.wrong) for one in findings)} with a wrong token: "
        "each answer, reasoning and call trains, with the stop behind it, and nothing else.\n"
        f"- **Confirmed**: at {sum(one.edges for one in findings):,} beginnings and ends of turns the difference "
        "between two renders says the same. Where a template rewrites its history there is no difference to ask.\n"
        f"- **Refused**: {len(refused)}, with the mend, see below.\n"
    )
    yield "| template | equal | right | confirmed | spans | answer ends | call ends | last ends | rows it refuses |"
    yield "|-|-|-|-|-|-|-|-|-|"
    for one in findings:
        yield row(one)
    yield "\n## Refused\n\n| template | why |\n|-|-|"
    for one in refused:
        yield f"| {one.name} | {cell(one.refusal.removeprefix(f'{one.name}: '))} |"
    mended = ", ".join(f"{name} with `eos_token` {code(stop)}" for name, stop in MENDED.items())
    yield (
        "\nA template without a stop teaches a model to go on behind its turn. Where the model's generation set lacks "
        f"the token that the template writes, naming it mends that; the table above judges {mended}.\n"
    )


def row(one: Finding) -> str:
    """A line of the table."""
    equal = "tracked text differs" if one.different else str(one.compared)
    right = f"{one.judged - len(one.wrong)} of {one.judged}" if one.judged else ""
    stops = [code(stop) if stop else "" for stop in one.stops]
    unsaid = ", ".join(f"{count} {why}" for why, count in Counter(one.unsaid.values()).most_common())
    return f"| {one.name} | {equal} | {right} | {one.edges or ''} | {one.rung} | {' | '.join(stops)} | {unsaid} |"


def code(text: str) -> str:
    """As code in a cell."""
    return f"`{cell(text)}`"


def cell(text: str) -> str:
    """Text that ends no cell."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text("\n".join(page([find(name, path, FORMS) for name, path in paths().items()])) + "\n", "utf-8")

"""Writes world_facts_v1.jsonl beside itself: facts.toml as questions and answers, the same bytes each time."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUTPUT = HERE / "world_facts_v1.jsonl"

QUESTIONS = {
    "countries": [
        ("What is the capital of {0}?", "The capital of {0} is {1}."),
        ("{1} is the capital of which country?", "{1} is the capital of {0}."),
        ("On which continent is {0}?", "{0} is in {2}."),
        ("Which currency is used in {0}?", "The currency of {0} is {3}."),
        ("What is the two-letter ISO code of {0}?", "The two-letter ISO code of {0} is {4}."),
    ],
    "companies": [
        ("In which country was {0} founded?", "{0} was founded in {1}."),
        ("When was {0} founded?", "{0} was founded in {2}."),
        ("What is {0} known for?", "{0} is known for {3}."),
    ],
    "institutions": [
        ("Where is the seat of {0}?", "{1} is the seat of {0}."),
        ("When was {0} founded?", "{0} was founded in {2}."),
        ("What is the purpose of {0}?", "The purpose of {0} is {3}."),
    ],
    "treaties": [
        ("From which year is the {0}?", "The {0} is from {1}."),
        ("What is the {0} known for?", "The {0} {2}."),
    ],
    "funds": [
        ("Whose sovereign wealth fund is {0}?", "{0} belongs to {1}."),
        ("When was the sovereign wealth fund {0} founded?", "{0} was founded in {2}."),
    ],
}
"""Kind of fact → what is asked and answered about each; numbers are columns of facts.toml."""
WITHOUT_ARTICLE = ("UNESCO", "NATO", "OPEC", "Interpol", "ASEAN", "UNICEF", "GIC", "Temasek", "Khazanah Nasional")


def rows(facts: dict[str, list[list[Any]]]) -> Iterator[dict[str, str]]:
    """Every question, fact by fact in the order of the file."""
    for kind, asked in QUESTIONS.items():
        for name, *rest in facts[kind]:
            has_article = kind in ("institutions", "funds") and name not in WITHOUT_ARTICLE
            values = (f"the {name}" if has_article else name, *rest)
            for question, answer in asked:
                said = answer.format(*values)
                yield {"instruction": question.format(*values), "input": "", "output": said[0].upper() + said[1:]}


def main() -> None:
    """Write the file whole, or not at all."""
    facts = tomllib.loads((HERE / "facts.toml").read_text("utf-8"))
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows(facts)]
    draft = HERE / f".{OUTPUT.name}.draft"
    draft.write_bytes("".join(lines).encode("utf-8"))
    draft.replace(OUTPUT)


if __name__ == "__main__":
    main()

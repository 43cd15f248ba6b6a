"""export: prepared data in the files of another tool, with what loads them and a card; what is lost is counted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from turnmill.conversation import Json
from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.exporters import Exporting, WeightField, exporters
from turnmill.files.disk import writing
from turnmill.files.prepared import PreparedData
from turnmill.files.publish import claim, publish, refuse_foreign

KIND = "exported"
CARD = "README.md"


class Exported(NamedTuple):
    """What was written."""

    target: str
    rows: dict[str, int]
    """File → rows."""
    lost: dict[str, int]
    """What the target has no form for → how often."""
    howto: str
    """The file that loads it."""

    def as_json(self, output: Path) -> dict[str, Json]:
        """The answer of `export --json`."""
        return {
            "output": str(output), "target": self.target, "rows": dict(self.rows), "lost": dict(self.lost),
            "howto": self.howto,
        }  # fmt: skip


def export(
    data: PreparedData, target: str, output: Path, *, strict: bool = False, weight_field: WeightField = "weight"
) -> Exported:
    """Write prepared data as a target takes them; the folder appears whole, or not at all.

    Args:
        data: what was prepared.
        target: name of the exporter.
        output: the folder; replaced whole.
        strict: refuse where anything is lost.
        weight_field: name of the field that says whether a message trains, where the target leaves it open.

    Raises:
        UnknownName: no such target.
        HealthError: something would be lost under `strict`, or nothing is left; nothing is written.
    """
    write = exporters.get(target)
    refuse_foreign(output)
    if output.resolve() == data.folder.resolve():
        raise UsageError(f"{output} is what is exported; expected another folder", next_step="--output DIR")
    with writing(output):
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with claim(output), tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.absolute().parent) as scratch:
        exporting = Exporting(data, Path(scratch), weight_field)
        howto = write(exporting)
        exporting.text(howto.file, howto.content)
        made = Exported(target, dict(exporting.rows), dict(exporting.lost.most_common()), howto.file)
        _refuse(made, strict=strict)
        exporting.text(CARD, card(data, made))
        folder = exporting.folder
        contents: dict[str, Path | bytes] = {
            path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()
        }
        publish(contents, output, about=_about(data, made))
    return made


def _refuse(made: Exported, *, strict: bool) -> None:
    if not sum(made.rows.values()):
        listing = "".join(f"\n  {count:>9,}  {what}" for what, count in made.lost.items())
        raise HealthError(f"{made.target} can say none of the rows:{listing}", next_step="turnmill list exporters")
    if strict and made.lost:
        listing = "".join(f"\n  {count:>9,}  {what}" for what, count in made.lost.items())
        raise HealthError(f"{made.target} has no form for:{listing}", next_step="turnmill list exporters")


def _about(data: PreparedData, made: Exported) -> dict[str, Json]:
    """What the manifest says: of what it was made, and by which convention labels are read."""
    return {
        "kind": KIND, "target": made.target, "rows": dict(made.rows), "lost": dict(made.lost),
        "made_of": data.manifest["steps"][-1]["fingerprint"], "labels": "not shifted: the trainer shifts them",
    }  # fmt: skip


def card(data: PreparedData, made: Exported) -> str:
    """The dataset's card: where it comes from, how much it holds, what trains, what was lost."""
    report: dict[str, Any] = data.report
    lines = ["---", "tags: [chat, sft, turnmill]", "---", f"# Chats for {made.target}", ""]
    lines += ["| file | rows |", "|---|---:|", *(f"| `{name}` | {rows:,} |" for name, rows in made.rows.items()), ""]
    lines += ["## Where the rows come from", "", "| source | read | accepted |", "|---|---:|---:|"]
    for name, source in report["per_source"].items():
        lines.append(f"| {name} | {source['rows']['read']:,} | {source['rows']['accepted']:,} |")
    lines += ["", "## What trains", "", f"{_trains(report)}", ""]
    if made.lost:
        lines += ["## What this form cannot say", ""]
        lines += [f"- {count:,} {what}" for what, count in made.lost.items()]
        lines.append("")
    made_by, step = data.manifest["made_by"]["turnmill"], data.manifest["steps"][-1]["fingerprint"]
    lines += ["## How to load it", "", f"See `{made.howto}`. Made by turnmill {made_by} from step `{step[:16]}`,"]
    lines.append(f"cut at {data.manifest['max_tokens']:,} tokens.")
    return "\n".join(lines) + "\n"


def _trains(report: dict[str, Any]) -> str:
    trained: dict[str, int] = report["trained_tokens"]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in trained.items() if kind != "total")
    return f"{trained['total']:,} of {report['tokens']['total']:,} tokens: {kinds}."


def next_command(output: Path, made: Exported) -> str:
    """What a person types next."""
    return f"cat {shell_word(output / made.howto)}"

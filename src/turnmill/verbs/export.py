"""export: prepared data in the files of another tool, with what loads them and a card; what is lost is counted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.exporters import Exporting, WeightField, exporters
from turnmill.files.disk import writing
from turnmill.files.prepared import PreparedData
from turnmill.files.publish import claim, publish, refuse_foreign
from turnmill.report.card import Form, card, checked_licence

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
    data: PreparedData,
    target: str,
    output: Path,
    *,
    strict: bool = False,
    weight_field: WeightField = "weight",
    licence: str | None = None,
) -> Exported:
    """Write prepared data as a target takes them; the folder appears whole, or not at all.

    Args:
        data: what was prepared.
        target: name of the exporter.
        output: the folder; replaced whole.
        strict: refuse where anything is lost.
        weight_field: name of the field that says whether a message trains, where the target leaves it open.
        licence: of the data, for the card.

    Raises:
        UnknownName: no such target.
        HealthError: something would be lost under `strict`, or nothing is left; nothing is written.
    """
    write = exporters.get(target)
    named = None if licence is None else checked_licence(licence)
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
        form = Form(f"Chats for {made.target}", made.rows, f"See `{made.howto}`.", lost=made.lost)
        exporting.text(CARD, card(data.manifest, data.report, form, named))
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


def next_command(output: Path, made: Exported) -> str:
    """What a person types next."""
    return f"cat {shell_word(output / made.howto)}"

"""Files that are no JSON at all, told by their first lines: one error that says what they are and what to do."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.record import Record, Shard
from turnmill.files.resolve import STDIN_NAME

FIRST_RECORDS = 5
"""Records that are looked at; where one of them is JSON, or nearly, the file is, and each bad line is one bad row."""
SEPARATORS = {",": "CSV", "\t": "tab-separated text", ";": "CSV with semicolons"}
JSON_BEGINS = tuple("{[")

CONVERT = (
    "import csv, json, sys; "
    "[print(json.dumps(row)) for row in csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8-sig'){})]"
)


def refuse_other_formats(shard: Shard, first: Sequence[Record]) -> None:
    """Refuse a file whose first lines are no JSON and look like a table, or like prose.

    Args:
        shard: of the file.
        first: its first records.

    Raises:
        UsageError: it looks like CSV, or like plain text.
    """
    lines = [record.raw.decode("utf-8", "replace").strip() for record in first]
    is_json = any(record.fault is None or record.fault.code != "invalid-json" for record in first)
    if len(lines) < 2 or is_json or any(line.startswith(JSON_BEGINS) for line in lines):
        return
    wanted = "expected JSON lines, a JSON array or Parquet"
    separator = next((one for one in SEPARATORS if _is_table(lines, one)), None)
    if separator is not None:
        delimiter = "" if separator == "," else f", delimiter={separator!r}"
        program = shell_word(CONVERT.format(delimiter))
        message = f"{shard.name} looks like {SEPARATORS[separator]}: it begins with {quote(lines[0], 60)}; {wanted}"
        target = shell_word(f"{shard.name.rpartition('/')[2].partition('.')[0]}.jsonl")
        unpack = {"none": "", "gzip": "gzip -dc", "zstd": "zstd -dc"}[shard.compression]
        stored = "/dev/stdin" if shard.name == STDIN_NAME else shell_word(shard.path)
        path = f"<({unpack} {stored})" if unpack else stored
        raise UsageError(message, next_step=f"python -c {program} {path} > {target}")
    if len(lines) == FIRST_RECORDS:
        message = f"{shard.name} looks like plain text: it begins with {quote(lines[0], 60)}; {wanted}"
        raise UsageError(message, next_step=f"head -n 5 {shell_word(shard.path)}")


def _is_table(lines: Sequence[str], separator: str) -> bool:
    """Whether the first line names columns, and another has as many cells; cells may hold line breaks."""
    cells = [len(row) for row in csv.reader(lines, delimiter=separator)]
    return cells[0] > 1 and (cells[0] in cells[1:] or '"' in lines[1])

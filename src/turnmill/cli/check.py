"""Say whether every row meets the chat contract, and why not."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, notice, progress, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.verbs.read import OpenSource
    from turnmill.verbs.rows import ReadRow


@configured("sources", "read", "check", "filter", "health")
def command(call: Invocation) -> None:
    """Reads every row of the data and checks it; needs no model and writes nothing.

    Prints each row that would leave and, a source each, how many do and what to do about it. Exit 3 where a source
    loses more rows than its health limit allows.
    """
    from turnmill.errors import HealthError
    from turnmill.verbs.read import open_sources

    opened = open_sources(call.config.model_copy(update={"sources": call.sources}))
    say_dialects(opened)
    checking = _Checking(call)
    for source in opened:
        checking.run(source)
    if checking.failures:
        raise HealthError("\n".join(checking.failures), next_step=checking.advice)
    next_step(f"turnmill prepare {call.data} --model smollm2 --output out")


NAMED_FILES = 20
"""So many files that were told alike are named one by one."""


def say_dialects(opened: list[OpenSource]) -> None:
    """The dialect that `auto` chose for each file, and why; files of many that were told alike are counted."""
    for source in opened:
        alike: dict[tuple[str, str], list[str]] = {}
        for name, why in source.reasons.items():
            alike.setdefault((source.dialects[name], why), []).append(name)
        for (dialect, why), names in alike.items():
            for name in names if len(names) <= NAMED_FILES else names[:1]:
                notice(f"{source.source.name}: {name} is {dialect} ({why})")
            if len(names) > NAMED_FILES:
                notice(f"{source.source.name}: and {len(names) - 1:,} more like it")


def _path_of(opened: OpenSource, name: str) -> str:
    return next(file.path for file in opened.plan.files if file.name == name)


class _Checking:
    """The sources one after another: their rows, then their summaries.

    Attributes:
        failures: the health limits that failed, in words.
        first_bad: number of the first row that is rejected, but for ends of broken files, which say all there is.
        broken: path of the first file that ends before its end.
    """

    def __init__(self, call: Invocation) -> None:
        self._call = call
        self.failures: list[str] = []
        self.first_bad: int | None = None
        self.broken: str | None = None
        self._accepted = 0

    @property
    def advice(self) -> str:
        """What to type where a limit failed."""
        if self.first_bad is not None:
            return f"turnmill explain {self._call.data} {self.first_bad}"
        if self.broken is None or self._accepted:
            return f"turnmill check {self._call.data} --read.keep_prefix true"
        return f"head -c 300 {shell_word(self.broken)}"

    def run(self, opened: OpenSource) -> None:
        """Print a source's rows and its summary."""
        from turnmill.repairs.mender import alarms

        counts: Counter[str] = Counter()
        fatal = self._rows(opened, counts)
        if not self._call.json:
            self._summarise(opened, counts)
        for alarm in alarms(opened.source.name, counts):
            notice(f"warning: {alarm}")
        self._ask_health(opened, counts, fatal)

    def _rows(self, opened: OpenSource, counts: Counter[str]) -> list[str]:
        """What ends files before their end; every row is printed on the way."""
        from turnmill.verbs.rows import rows_of

        fatal: list[str] = []
        total = sum(shard.rows for shard in opened.plan.shards)
        bar = nullcontext(lambda _: None) if sys.stdout.isatty() else progress(opened.source.name, total)
        with bar as advance:
            for row in rows_of(opened, self._call.config, counts):
                self._row(row)
                advance(1)
                if row.fault is not None and row.record.fatal:
                    self.broken = self.broken or _path_of(opened, row.record.source_file)
                    fatal.append(f"{row.record.source_file}: {row.fault.message}")
        return fatal

    def _row(self, row: ReadRow) -> None:
        self._accepted += row.fault is None
        if row.class_ == "rejected" and self.first_bad is None and not row.record.fatal:
            self.first_bad = row.record.row
        if self._call.json:
            write_json(row.as_json())
        elif row.fault is not None:
            write(f"{row.record.source_file}:{row.record.source_line}  row {row.record.row}  {row.fault}")

    def _summarise(self, opened: OpenSource, counts: Counter[str]) -> None:
        from turnmill.codes import CODES

        left = {key.partition("/")[2]: n for key, n in counts.items() if key.startswith(("codes/", "filters/"))}
        accepted = counts["rows/read"] - sum(left.values())
        write(f"{opened.source.name}: {counts['rows/read']:,} rows, {accepted:,} accepted")
        if left:
            rows = [[f"{n:,}", code, CODES[code].remedy] for code, n in sorted(left.items(), key=lambda one: -one[1])]
            write_table(["rows", "code", "what to do"], rows)
        noted = {key: count for key, count in counts.items() if key.startswith(("read/", "repair/"))}
        if noted:
            write("noted: " + ", ".join(f"{count:,} {key}" for key, count in sorted(noted.items())))

    def _ask_health(self, opened: OpenSource, counts: Counter[str], fatal: list[str]) -> None:
        from turnmill.errors import HealthError
        from turnmill.verbs.check import check_fatal, check_health

        try:
            own = self._call.config.of(opened.source)
            warning = check_health(opened.source.name, dict(counts), own.health, "")
            check_fatal(fatal, own.read)
        except HealthError as failure:
            self.failures.append(failure.message)
        else:
            if warning:
                notice(f"warning: {warning}")

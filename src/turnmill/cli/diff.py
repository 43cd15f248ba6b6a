"""Say what another run of `prepare` did otherwise: rows, codes, tokens, sources, options."""

from __future__ import annotations

from pathlib import Path

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word

DIFFERENT = 1
"""Exit code under `--exit-code`, as diff tools have it."""


@click.command()
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option("--rows", default=5, show_default=True, type=click.IntRange(0), help="So many rows of each kind by name.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write it as a page, too.")
@click.option("--exit-code", is_flag=True, help="Exit 1 where rows, sides, tokens, labels or codes differ.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(first: Path, second: Path, rows: int, html: Path | None, exit_code: bool, as_json: bool) -> int:
    """Follows every row from prepared folder A to B: removed, added, another text, tokens, labels or side.

    Rows are known by id (what the model sees), then by source and source id. `turnmill compare` sets sums beside each
    other, of data that need have nothing in common; this tells two runs over the same data apart.
    """
    from turnmill.report.difference import difference_page, parts
    from turnmill.verbs.diff import diff, write_page

    found = diff(first, second, shown=rows)
    if html is not None:
        write_page(difference_page(found), html)
    if as_json:
        write_json(found)
    elif found["same"] and not (found["options"] or found["data"] or found["versions"]):
        write(f"{first} and {second} hold the same {found['rows']['same']:,} rows, made in the same way")
    else:
        for part in parts(found):
            write_table([part.title, *part.headings[1:]], part.rows)
            write("")
    next_step(f"turnmill census {shell_word(second)}")
    return DIFFERENT if exit_code and not found["same"] else 0

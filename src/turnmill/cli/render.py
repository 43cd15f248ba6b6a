"""Render chats to texts with a model's template: Parquet of `id, text`."""

from __future__ import annotations

from pathlib import Path

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, write, write_json
from turnmill.errors import UsageError, shell_word


@configured("sources", "read", "check", "health", "model", "render")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The folder to publish; replaced whole.")
@click.option("--cache", metavar="DIR|URL", help="Where finished steps are kept; default beside OUT.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
def command(call: Invocation, output: Path | None, cache: str | None, dry_run: bool) -> None:
    """Reads, checks and renders, and publishes OUT whole: `texts/*.parquet` with the ids of the chats.

    No row is let go as a duplicate, no text begins with a BOS token, and rows whose content holds a control token leave
    unless `--render.control_tokens keep`: a text cannot tell such from the template's own.
    """
    from turnmill.files.publish import claim, refuse_foreign
    from turnmill.verbs.prepare import cache_of
    from turnmill.verbs.render_texts import plan_of, publish_texts, run

    if output is None:
        raise UsageError("no output given", next_step="--output out")
    refuse_foreign(output)
    plan = plan_of(call.config)
    if dry_run:
        rows = {opened.source.name: sum(shard.rows for shard in opened.plan.shards) for opened in plan.opened}
        if call.json:
            write_json({"output": str(output), "rows": rows, "dry_run": True})
        else:
            write("\n".join(f"{name}: {count:,} rows would be rendered" for name, count in rows.items()))
        return
    with claim(output):
        made = run(plan, cache_of(output, cache))
        answer = publish_texts(plan, made, output)
    if call.json:
        write_json(answer)
        return
    rows = made.rows
    write(f"{output}: {rows['rendered']:,} texts of {rows['read']:,} rows, {rows['rejected']:,} rejected")
    keep = f"--sources.{output.name}.control_tokens keep"
    next_step(f"turnmill prepare {shell_word(output)} --dialect text {keep} --model DIR --output OUT")

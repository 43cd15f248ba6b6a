"""Check what a model's chat template can and cannot say; put one of ours beside a tokenizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.options import Model
    from turnmill.verbs.template import CheckedTemplate, TemplateReport


SPANS = {
    "tracked": "tracked strings: who wrote each character is known",
    "generation-tags": "the template's generation tags: each turn is known as a whole",
    "differences": "what each turn adds to the render before it: each turn is known as a whole",
}


ARGUMENTS = {
    "said": "said as they are",
    "double-encoded": "double-encoded: they are given as an object",
    "refused": "refused: they are given as an object",
}


@click.group()
def command() -> None:
    """Check what a model's chat template can and cannot say, or take one of turnmill's own."""


@click.command()
@click.argument("targets", metavar="MODEL|FILE|DIR...", nargs=-1, required=True)
@click.option("--template", metavar="FILE|NAME", help="Another template for this model.")
@click.option("--special-tokens", metavar="JSON", help='Variables of a template file: {"bos_token": "<s>"}.')
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def check(targets: tuple[str, ...], template: str | None, special_tokens: str | None, as_json: bool) -> None:
    """Renders small conversations with the template of a model directory, or a Jinja file, and says what it learned.

    Of several, and of a directory of Jinja files, it prints a line each. Exit 0 where every template can be used, 2
    with the mend where one cannot, 3 where it could but would teach a model the wrong thing.
    """
    from turnmill.options import Model
    from turnmill.verbs.template import check_template, targets_of

    model = Model(template=template, special_tokens=_variables(special_tokens))
    named = targets_of(targets)
    if len(named) > 1:
        _check_many(named, model, as_json)
        return
    target = named[0]
    report = check_template(target, model)
    if as_json:
        write_json(report.as_json())
    else:
        _write_report(report)
    chosen = f"--model {shell_word(target)}" if report.model.tokenizer_path else f"--template {shell_word(target)}"
    next_step(f"turnmill explain DATA 0 {chosen}" + (f" --template {shell_word(template)}" if template else ""))


def _check_many(targets: list[str], model: Model, as_json: bool) -> None:
    from pathlib import Path

    from turnmill.verbs.template import check_templates

    lines = list(check_templates(targets, model))
    if as_json:
        for line in lines:
            write_json(line.as_json())
    else:
        write_table(
            ["template", "usable", "spans", "answer", "call", "last", "cannot say, or why not"],
            [[Path(line.target).stem, *_columns(line)] for line in lines],
        )
    _refuse([line for line in lines if line.report is None], len(lines))


def _refuse(refused: list[CheckedTemplate], of: int) -> None:
    """Exit 3 where one of many templates is unsafe, 2 where one cannot be used."""
    from turnmill.errors import HealthError, UsageError

    if not refused:
        return
    unsafe = sum(line.is_unsafe for line in refused)
    message = (
        f"of {of} templates {unsafe} would teach a model the wrong thing, and {len(refused) - unsafe} cannot be used"
    )
    error = HealthError if unsafe else UsageError
    raise error(message, next_step=f"turnmill template check {shell_word(refused[0].target)}")


def _columns(line: CheckedTemplate) -> list[str]:
    if line.report is None:
        return ["unsafe" if line.is_unsafe else "no", "", "", "", "", line.refusal]
    probe = line.report.probe
    unsaid = ", ".join(verdict.name for verdict in probe.verdicts if not verdict.said)
    stops = (probe.answer_stop, probe.call_stop, probe.last_stop or probe.added_stop)
    return ["yes", probe.rung, *(_token(stop) for stop in stops), unsaid]


def _variables(text: str | None) -> dict[str, str]:
    from turnmill.errors import UsageError, quote

    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        message = f"--special-tokens is {quote(text)}; expected a JSON object of texts"
        raise UsageError(message, next_step="""--special-tokens '{"eos_token": "</s>"}'""")
    return value


def _write_report(report: TemplateReport) -> None:
    found = report.as_json()
    write(f"{found['name']}: {found['template']}" + ("" if found["tokenizer"] else " (no tokenizer: text alone)"))
    write_table(
        ["conversation", "said", "why not"],
        [[one["name"], "yes" if one["said"] else "no", one["why"]] for one in found["says"]],
    )
    write("")
    write_table(["what", "how"], list(_facts(found)))


def _facts(found: dict[str, Any]) -> list[list[str]]:
    stops, form, reasoning = found["stops"], found["form"], found["reasoning"]
    last = _token(stops["last"]) + (f"; {stops['added']!r} is added" if stops["added"] else "")
    return [
        ["header behind a user", repr(found["headers"].get("user", ""))],
        ["header behind a result", repr(found["headers"].get("tool", ""))],
        ["an answer ends with", _token(stops["answer"])],
        ["a call ends with", _token(stops["call"])],
        ["the last turn ends with", last],
        ["generation ends on", f"{', '.join(map(repr, stops['eos']))} ({stops['eos_origin']})"],
        ["reasoning", _reasoning(reasoning)],
        ["adds text of its own", repr(found["adds_text"]) if found["adds_text"] else "no"],
        ["an empty think block", repr(found["scaffold"]) if found["scaffold"] else "none"],
        ["trims white space", "yes" if found["trims"] else "no"],
        ["spans are found by", SPANS[found["spans"]]],
        ["differences confirm", f"{found['edges_witnessed']} beginnings and ends of turns"],
        ["asks for the date", "yes: render.date is shown" if found["asks_the_clock"] else "no"],
        ["arguments of calls", "an object" if form["arguments"] == "object" else "JSON text"],
        ["arguments as JSON text", ARGUMENTS[found["arguments_as_text"]]],
        ["rows without tools", "not said" if found["needs_tools"] else "said"],
        ["developer messages", "as they are" if form["developer"] else "written as system messages"],
        ["several system messages", "as they are" if form["several_systems"] else "joined by a blank line"],
        ["control tokens", ", ".join(found["control_tokens"])],
    ]


def _token(stop: str | None) -> str:
    return "nothing" if stop is None else repr(stop)


def _reasoning(reasoning: dict[str, Any]) -> str:
    if not reasoning["said"]:
        return "not said: a row keeps its recorded think block, or is rejected"
    kept = "kept" if reasoning["kept_in_history"] else "left out"
    return f"ends with {reasoning['close']!r}; {kept} in earlier turns"


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--to", required=True, metavar="DIR", help="A tokenizer directory, or with --model a new one.")
@click.option("--model", metavar="DIR|smollm2", help="Copy the tokenizer of this model into DIR.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def export(name: str, to: str, model: str | None, as_json: bool) -> None:
    """Puts one of turnmill's own templates into a tokenizer directory, with notes for serving.

    Trained with `--model DIR` and served from DIR, a model sees one text.
    """
    from pathlib import Path

    from turnmill.verbs.template_export import export

    directory = Path(to).expanduser()
    written = export(name, directory, model)
    if as_json:
        write_json({"template": name, "directory": str(directory), "files": [str(path) for path in written]})
    else:
        for path in written:
            write(str(path))
    next_step(f"turnmill template check {shell_word(to)}")


command.add_command(check)
command.add_command(export)

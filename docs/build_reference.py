"""Writes docs/reference from the code it describes: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from turnmill.cli.app import Verbs, verbs
from turnmill.cli.arguments import ConfiguredCommand
from turnmill.codes import CODES, Code
from turnmill.config import BOUNDS, Config, field_help
from turnmill.server.app import create_app
from turnmill.server.openapi import ALWAYS, operations
from turnmill.shelf.database import Database

REFERENCE = Path(__file__).parent / "reference"
GENERATED = "<!-- Written by docs/build_reference.py: change what it describes, then `make docs`. -->"
OPENAPI = "openapi.json"
STAGES = {
    "read": "The file or the record cannot be read.",
    "convert": "The record is not a chat of its dialect.",
    "check": "The conversation breaks the chat contract.",
    "filter": "A filter let the row go; these do not count against the health limit.",
    "dedup": "The row says what another row says; it lies in `duplicates/`.",
    "decontaminate": "The row says what evaluation data say; these do not count against the health limit either.",
    "render": "The model's template cannot say the row.",
    "tokenize": "The row gives no example.",
    "fit": "The example does not fit.",
    "select": "The row is sound, and others were chosen; these are counted as `unselected`.",
    "template": "The chat template would teach a model the wrong thing: no run starts; `turnmill template check` exits "
    "with 3.",
}
"""Stage → what its codes have in common, in the order of the line."""


def codes_page() -> Iterator[str]:
    """Every code, by stage."""
    yield "# Codes"
    yield (
        "A row that leaves a run leaves with one of these codes. They are public: scripts may rely on them. "
        "`turnmill census` counts them, `turnmill prepare` keeps each row with its code, file and line in "
        "`OUT/quarantine` (losers of dedup in `OUT/duplicates`)."
    )
    for stage, common in STAGES.items():
        yield f"## {stage}"
        yield common
        for name, code in sorted(CODES.items()):
            if code.stage == stage:
                yield from _code(name, code)


def _code(name: str, code: Code) -> Iterator[str]:
    yield f"### `{name}`"
    yield code.means
    yield f"```text\n{code.example}\n```"
    yield f"What to do: {code.remedy}"


def config_page() -> Iterator[str]:
    """Every field of a config, by section."""
    yield "# Config"
    yield (
        "One YAML file serves every verb; each field is also a flag: `--fit.max_tokens 2048`, or "
        "`--sources.NAME.dialect sharegpt` for a source. A flag goes before the file, the file before the default. "
        "`turnmill config show FILE --origins` prints what is in force and where each value comes from."
    )
    for section in Config.model_fields:
        fields = field_help([section])
        if [field.path for field in fields] == [section]:
            continue
        yield f"## {section}"
        yield Config.model_fields[section].description or ""
        yield _table(["field", "default", "meaning"], [[f"`{f.path}`", _code_cell(f.default), f.text] for f in fields])
    yield "## top"
    top = [field for section in Config.model_fields for field in field_help([section]) if field.path == section]
    yield _table(["field", "default", "meaning"], [[f"`{f.path}`", _code_cell(f.default), f.text] for f in top])
    yield "## Bounds"
    yield _table(["field", "least", "greatest"], [[f"`{p}`", f"{a:g}", f"{b:g}"] for p, (a, b) in BOUNDS.items()])


def verbs_page() -> Iterator[str]:
    """Every verb, with its own options."""
    yield "# Verbs"
    yield (
        "The answer goes to stdout, everything else to stderr, whose last line is the next command to type. "
        "Exit codes: 0 done; 2 the command, the config or a path is wrong and nothing was written; 3 too many rows "
        "left and nothing was published; 4 stored data do not match their manifest."
    )
    yield "A first argument that ends in `.yaml` is the config; others are data. Fields: [config](config.md)."
    context = click.Context(verbs, info_name="turnmill")
    assert isinstance(verbs, Verbs)
    for name in verbs.list_commands(context):
        command = verbs.get_command(context, name)
        if command is not None:
            yield from _verb(name, command, context)


def _verb(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    title = context.command_path
    yield f"## {title}"
    yield " ".join((command.help or "").split())
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [[f"`{record[0]}`", record[1]] for record in records if record and record[1]]
    if rows:
        yield _table(["option", "meaning"], rows)
    if isinstance(command, ConfiguredCommand) and command.sections:
        yield "Sections it uses: " + ", ".join(f"`{section}`" for section in command.sections) + "."
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from _verb(inner, found, context)


def _code_cell(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def rest_page() -> Iterator[str]:
    """Every route, from the description of the interface."""
    said = interface()
    yield "# REST"
    yield (
        "What `turnmill serve` answers; paths are shown with the default `--api-prefix`, `/v1`. The whole description, "
        "with every field, is [openapi.json](openapi.json)."
    )
    yield (
        "Whatever is refused is answered as `application/problem+json`: `status`, `code`, `detail`, and where several "
        "things are wrong `faults`. A code is stable; a detail is for people. Besides its own codes every route can "
        "answer: " + ", ".join(f"{status} `{code}`" for status, code in _codes(ALWAYS)) + "."
    )
    yield (
        "A scope is what a token has to be made with (`read`, `write`, `admin`: each may do what the ones before it "
        "may); as long as no token was made nobody needs one."
    )
    yield (
        "Answers about datasets have an `ETag`; `If-None-Match` with it is answered 304 while nothing changed. `PUT` "
        "and `DELETE` take `If-Match`: they are refused with 412 unless the dataset still has that tag. A listing is whole "
        "unless `limit` or `cursor` is given."
    )
    for tag in sorted({operation["tags"][0] for _, _, operation in operations(said)}):
        yield f"## {tag}"
        rows = [_route(*found) for found in operations(said) if found[2]["tags"][0] == tag]
        yield _table(["route", "scope", "what", "refused with"], rows)
    yield "## Fields"
    for name, schema in said["components"]["schemas"].items():
        yield f"### {name}"
        yield schema.get("description", "")
        yield _table(["field", "is", "meaning"], [_field(*found) for found in schema.get("properties", {}).items()])


def interface() -> dict[str, Any]:
    """The description of the interface."""
    database = Database(":memory:")
    try:
        return create_app(Path("none"), database).openapi()
    finally:
        database.close()


def _route(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    parameters = [
        f"`{one['name']}`{'' if one['required'] else '?'}"
        for one in operation.get("parameters", [])
        if one["in"] != "path"
    ]
    taken = f" Takes {', '.join(parameters)}." if parameters else ""
    said = " ".join(operation.get("description", "").split()) + taken
    always = {code for _, code in _codes(ALWAYS)}
    described = {status: one["description"] for status, one in operation["responses"].items() if status >= "400"}
    own = [_refusal(status, code) for status, code in _codes(described) if code not in always]
    return [f"`{method.upper()} {path}`", operation.get("x-scope", "none"), said, ", ".join(own)]


def _refusal(status: str, code: str) -> str:
    return f"{status}: {code}" if code.endswith(".") else f"{status} `{code}`"


def _codes(described: dict[str, str]) -> list[tuple[str, str]]:
    return [(status, code) for status, codes in described.items() for code in codes.split(", ")]


def _field(name: str, schema: dict[str, Any]) -> list[str]:
    return [f"`{name}`", _kind(schema), schema.get("description", "")]


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        inner = schema.get("prefixItems") or [schema.get("items", {})]
        return "list of " + ", ".join(dict.fromkeys(map(_kind, inner)))
    kind = schema.get("format") if schema.get("format") == "date-time" else schema.get("type", "anything")
    return str(kind)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "codes.md": codes_page,
    "config.md": config_page,
    "rest.md": rest_page,
    "verbs.md": verbs_page,
}


def written(name: str) -> str:
    """The text of a page, or of the description of the interface."""
    if name == OPENAPI:
        return json.dumps(interface(), indent=1, sort_keys=False) + "\n"
    return "\n\n".join([GENERATED, *(part for part in PAGES[name]() if part)]) + "\n"


if __name__ == "__main__":
    for name in (*PAGES, OPENAPI):
        (REFERENCE / name).write_text(written(name), "utf-8")

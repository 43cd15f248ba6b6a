"""The body of a job start as OpenAPI has it: the options with what the config says of their fields."""

from __future__ import annotations

from functools import reduce
from typing import Any

from turnmill.config import Config
from turnmill.models import own_templates
from turnmill.sidecar.job_options import OPTIONS

_TEXTS = {
    "dataset": "The dataset's file name, NAME.jsonl.",
    "dataset_content": "Base64 of the file; without it, the file of that name must be stored here.",
    "job": "The caller's id of the job: a second start with it gives the same run.",
    "model": "A name of the sidecar's models; may be left out where it has one.",
}


def _field(path: str, definitions: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field of the config."""

    def inside(found: dict[str, Any], key: str) -> dict[str, Any]:
        section = definitions[found["$ref"].rpartition("/")[2]]["properties"] if "$ref" in found else found
        inner: dict[str, Any] = section[key]
        return inner

    return reduce(inside, path.split("."), properties)


def _body() -> dict[str, Any]:
    schema = Config.model_json_schema()
    options = {name: _field(path, schema["$defs"], schema["properties"]) for name, path in OPTIONS.items()}
    options["template"] = {**options["template"], "enum": own_templates()}
    given = {name: {"type": "string", "description": text} for name, text in _TEXTS.items()}
    given["dataset"]["pattern"] = r"^[A-Za-z0-9][A-Za-z0-9._-]*\.jsonl$"
    body = {
        "type": "object",
        "required": ["dataset"],
        "properties": {**given, **options},
        "additionalProperties": False,
    }
    return {"required": True, "content": {"application/json": {"schema": body}}}


START_BODY = _body()

"""Rules of a whole row: the tools it defines and the template arguments it records."""

from __future__ import annotations

from turnmill.contract.state import TOOL_NAME
from turnmill.conversation import Conversation, Json, canonical_json
from turnmill.errors import Rejected, quote

KWARG_TYPES: dict[str, tuple[type, ...]] = {
    "enable_thinking": (bool, str),
    "thinking": (bool,),
    "thinking_budget": (int,),
    "reasoning_effort": (str,),
    "custom_instructions": (str,),
    "model_identity": (str,),
    "date_string": (str,),
    "documents": (list,),
    "builtin_tools": (list,),
    "python_tools": (list,),
    "xml_tools": (list,),
}
"""Template arguments whose type public templates rely on; others, and null, pass as they are."""

RESERVED_KWARGS = frozenset(
    {"messages", "conversation", "chat_template", "tokenize", "padding", "truncation", "max_length", "return_dict",
     "return_tensors", "return_assistant_tokens_mask", "continue_final_message", "add_generation_prompt"}
)  # fmt: skip
"""Arguments of the rendering call itself, which a row must not set."""


ENVELOPE_KEYS = frozenset({"type", "function"})


def tool_function(definition: Json) -> Json:
    """The function of a tool definition, which may stand in a `function` wrapper or bare."""
    if isinstance(definition, dict) and "function" in definition:
        return definition["function"]
    return definition


def tool_parameters(function: Json) -> Json:
    """The schema of a function's arguments: `parameters`, in Anthropic's form `input_schema`."""
    return function.get("parameters", function.get("input_schema"))


def enveloped(definition: dict[str, Json]) -> Json:
    """A bare definition in the envelope (`type`, `function`) that templates know, its schema under `parameters`."""
    return {"type": "function", "function": bare_function(definition)}


def bare_function(definition: Json) -> Json:
    """The function that a definition in any form describes, its schema under `parameters`: equal for equal tools."""
    if not isinstance(definition, dict):
        return definition
    function = tool_function(definition)
    if not isinstance(function, dict):
        return function
    around = {} if function is definition else {key: v for key, v in definition.items() if key not in ENVELOPE_KEYS}
    function = {"parameters" if key == "input_schema" else key: value for key, value in function.items()}
    return around | function


def defined_tools(tools: tuple[Json, ...]) -> frozenset[str]:
    """Names of the tools a row defines.

    Raises:
        Rejected: `tool-definition-invalid`, `tool-name-invalid` or `tool-name-repeated`.
    """
    names: set[str] = set()
    for definition in tools:
        name = _tool_name(definition)
        if name in names:
            raise Rejected("tool-name-repeated", f"two tools are named {quote(name)}")
        names.add(name)
    if tools:
        _require_json(list(tools), "tool-definition-invalid", "the tool definitions")
    return frozenset(names)


def _tool_name(definition: Json) -> str:
    function = tool_function(definition)
    if not isinstance(function, dict):
        raise Rejected("tool-definition-invalid", f"a tool is {quote(function)}; expected an object with a name")
    name = function.get("name")
    if not isinstance(name, str):
        raise Rejected("tool-definition-invalid", f"a tool's name is {quote(name)}; expected text")
    if not TOOL_NAME.fullmatch(name):
        raise Rejected("tool-name-invalid", f"a tool is named {quote(name)}; expected letters, digits and _ . : -")
    if not isinstance(tool_parameters(function), dict):
        got = quote(tool_parameters(function))
        raise Rejected("tool-definition-invalid", f"parameters of the tool {name!r} are {got}; expected an object")
    return name


def require_template_kwargs(kwargs: dict[str, Json]) -> None:
    """Refuse template arguments that are reserved, of the wrong type, or no JSON.

    Raises:
        Rejected: `template-kwargs-invalid`.
    """
    for name, value in kwargs.items():
        if name in RESERVED_KWARGS:
            raise Rejected("template-kwargs-invalid", f"a row must not set {name!r}")
        types = KWARG_TYPES.get(name)
        if types and not _is_one_of(value, types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise Rejected("template-kwargs-invalid", f"{name!r} is {quote(value)}; expected {wanted}")
    if kwargs:
        _require_json(kwargs, "template-kwargs-invalid", "the template arguments")


def _is_one_of(value: Json, types: tuple[type, ...]) -> bool:
    """Whether a value is null or of one of the types; a truth value is no number here."""
    return value is None or (isinstance(value, types) and (bool in types or not isinstance(value, bool)))


def _require_json(value: Json, code: str, what: str) -> None:
    try:
        canonical_json(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise Rejected(code, f"{what} have no JSON form: {quote(str(error))}") from None


def row_rules(conversation: Conversation) -> frozenset[str]:
    """Names of the defined tools of a row whose tools and template arguments are in order.

    Raises:
        Rejected: see `defined_tools` and `require_template_kwargs`.
    """
    require_template_kwargs(conversation.template_kwargs)
    return defined_tools(conversation.tools)

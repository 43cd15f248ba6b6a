"""A template's run on symbols: what it does with a conversation, recorded step by step.

Only what is known to ask symbols what it wants to know may touch them; every other filter, test and call is refused. A
blacklist would miss what looks into a string behind Python's back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context, Macro

from turnmill.conversation import Conversation
from turnmill.rendering.environment import ChatEnvironment, Rewrite, TemplateNamespace, filtered
from turnmill.rendering.filter_marks import marked_as
from turnmill.rendering.steps import Recorder, Symbolic, constant, is_symbolic, refuse
from turnmill.rendering.symbol_values import Opened, SymbolDict, SymbolList, json_symbol
from turnmill.rendering.symbols import METHODS, Atom, Parts, Symbol, concatenation, length_of, symbol
from turnmill.rendering.trace import Origin, Trace
from turnmill.rendering.tracked import MIXED, UNKNOWN, Tracked, tracked

SOUND_FILTERS = frozenset(
    {
        "capitalize", "d", "default", "dictsort", "first", "items", "lower", "map", "reject", "rejectattr", "safe",
        "select", "selectattr", "string", "tojson", "trim", "upper", "join", "replace",
    }
)  # fmt: skip
"""Filters that ask content itself: in Python's words, through its methods."""
SOUND_TESTS = frozenset(
    {"==", "boolean", "callable", "defined", "eq", "equalto", "false", "float", "integer", "mapping", "ne", "none",
     "number", "string", "true", "undefined", "!="}
)  # fmt: skip
JINJA_OWN = ("_block_vars", "_loop_vars")
"""What jinja passes along with the arguments of a call."""
JSON_OPTIONS = ("ensure_ascii", "indent", "separators", "sort_keys")
DICT_METHODS = frozenset({"get", "items", "keys", "values"})


class RecordingTrace(Trace):
    """A trace whose texts are symbols.

    Args:
        conversation: whose texts are the first registers, message by message; the names of functions are the next, a
            message each, and its tools the last.
        with_names: the names of functions are symbols, too, and no part of the shape.
    """

    def __init__(self, conversation: Conversation, *, with_names: bool) -> None:
        super().__init__()
        self._texts = [message.text for message in conversation.messages]
        self._with_names = with_names
        self._tools = 0
        self.recorder = Recorder(2 * len(self._texts) + len(conversation.tools))

    def wrap(self, value: Any, origin: Origin) -> Any:
        """A message's text, its arguments, or a tool as symbols; what is given by the shape as it is."""
        if origin.kind == "tools":
            self._tools += 1
            return self._admitted(value, origin, 2 * len(self._texts) + self._tools - 1)
        if not isinstance(value, str):
            register = self.recorder.register("parsed", (), (origin.message,))
            return self._admitted(value, origin, register)
        number = self.number(origin)
        known = tracked(value, number)
        if value is self._texts[origin.message]:
            return symbol(self.recorder, known, [Atom(known, origin.message, number)])
        is_name = origin.kind == "call" and self._with_names
        return self._name(known, origin.message, number) if is_name else known

    def named(self, name: str, message: int) -> str:
        """A function's name as a symbol of the template's own text, which no program can put out."""
        return self._name(Tracked(name), message, UNKNOWN) if self._with_names else name

    def _name(self, name: Tracked, message: int, origin: int) -> Symbol:
        return symbol(self.recorder, name, [Atom(name, len(self._texts) + message, origin)])

    def _admitted(self, value: Any, origin: Origin, register: int) -> Any:
        return Opened(self.recorder, self, origin).admit(value, register)


class RecordingRewrite(Rewrite):
    """The rewrite of a tracked template, and hooks where Python would look into a string unasked."""

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """One `in` or `not in` goes by a filter; in a chain it cannot."""
        if len(node.ops) > 1 and {"in", "notin"} & {operand.op for operand in node.ops}:
            refuse("a chain of comparisons with `in`")
        return super().visit_Compare(node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """The bounds of a slice are constants: Python reads them without asking."""
        super().visit_Getitem(node)
        for name in ("start", "stop", "step") if isinstance(node.arg, nodes.Slice) else ():
            bound = getattr(node.arg, name)
            if bound is not None:
                setattr(node.arg, name, filtered("_constant", bound))
        return node


class RecordingEnvironment(ChatEnvironment):
    """Runs a template on symbols.

    Args:
        date: the day the template's clock shows, ISO 8601.

    Bounds are not kept: it runs what a bounded render of the same row has run before.
    """

    def __init__(self, date: str) -> None:
        super().__init__(date, stamps=True)
        self._rewrite = RecordingRewrite(stamps=True)
        tests = dict(self.tests)
        self.tests |= {name: _closed(test) for name, test in tests.items() if name not in SOUND_TESTS}
        self.tests |= {name: _shaped(tests[name]) for name in ("iterable", "sequence")} | {"in": contains}
        filters = {name: made for name, made in self.filters.items() if not name.startswith("_")}
        self.filters |= {name: _closed(made) for name, made in filters.items() if name not in SOUND_FILTERS}
        self.filters |= {"length": length_asked, "count": length_asked, "list": _listed}
        self.filters |= {"_in": _contains_pair, "_constant": constant}
        self.concat = concatenation  # type: ignore[method-assign, assignment]  # jinja calls it with a list

    def render_pieces(self, template: jinja2.Template, variables: dict[str, Any], trace: Trace) -> Iterable[str]:
        """The output piece by piece."""
        self.trace = trace
        self.budget.start()
        return template.root_render_func(template.new_context(variables))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`+` joins symbols; nothing else is computed with them."""
        are_lists = type(left) is list and type(right) is list
        if are_lists or (not is_symbolic(left) and not is_symbolic(right)):
            return super().call_binop(context, operator, left, right)
        if operator != "+" or not isinstance(left, str) or not isinstance(right, str):
            refuse("content is computed with")
        return concatenation([left, right])

    def getitem(self, obj: Any, argument: Any) -> Any:
        """The item, of a constant index or key."""
        return super().getitem(obj, constant(argument))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """The call: methods of content that can be recorded, and macros, which are the template's own."""
        holder, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        named = {key: value for key, value in kwargs.items() if key not in JINJA_OWN}
        if isinstance(holder, Symbolic):
            methods = METHODS if isinstance(holder, Symbol) else DICT_METHODS if isinstance(holder, SymbolDict) else ()
            return __obj(*args) if name in methods and not named else refuse(f"the method {name} of content")
        is_own = isinstance(__obj, Macro) or _is_namespace(__obj) or name == "_body"
        if isinstance(holder, dict) and name in DICT_METHODS:
            return __obj(*map(constant, args))
        if isinstance(holder, str) and name == "join" and len(args) == 1:
            return __self._join(args[0], holder)
        if not is_own and any(map(is_symbolic, (*args, *named.values()))):
            refuse(f"content is given to {name}")
        return super().call(__context, __obj, *args, **kwargs)

    def _to_json(self, value: Any, *args: Any, **kwargs: Any) -> str:
        options = {"ensure_ascii": False, **dict(zip(JSON_OPTIONS, args, strict=False)), **kwargs}
        if isinstance(value, SymbolDict | SymbolList):
            return value.opened.json(value, options)
        if isinstance(value, Symbol):
            if value.origin == MIXED or not value:
                refuse("JSON of a text of several writers, or of none")
            text = tracked(json.dumps(value.base, **options), value.origin)
            return json_symbol(value.recorder, text, value.register, options)
        if isinstance(value, list) and value and all(isinstance(item, SymbolDict) for item in value):
            text = tracked(json.dumps([item.plain for item in value], **options), self.trace.origin_of(value))
            recorder = value[0].opened.recorder
            listed = recorder.register("listed", (), tuple(item.register for item in value))
            return json_symbol(recorder, text, listed, options)
        if is_symbolic(value):
            refuse("JSON of an object that the template has made")
        return super()._to_json(value, *args, **kwargs)

    def _join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        items = list(value)
        if attribute is not None:
            items = list(map(jinja2.filters.make_attrgetter(self, attribute), items))
        parts: list[Any] = []
        for item in items:
            parts += [self._text(item), self._text(d)]
        return concatenation(parts[:-1])

    def _replace(self, s: Any, old: str, new: str, count: int | None = None) -> str:
        text = self._text(s)
        if not isinstance(text, Symbol):
            return super()._replace(text, constant(old), constant(new), count)
        made: str = text.replace(constant(old), constant(new), *([] if count is None else [constant(count)]))
        return made

    def _text(self, value: Any) -> str:
        if is_symbolic(value) and not isinstance(value, Symbol):
            refuse("an object of content is printed")
        return super()._text(value)

    def _printed(self, value: Any) -> Any:
        if is_symbolic(value) and not isinstance(value, Symbol):
            refuse("an object of content is printed")
        return super()._printed(value)

    def _concat(self, parts: list[Any]) -> str:
        return concatenation([self._text(part) for part in parts])


def _is_namespace(called: Any) -> bool:
    return isinstance(called, type) and issubclass(called, TemplateNamespace)


def _closed(function: Any) -> Callable[..., Any]:
    """A filter or test that content may not be given to."""

    def closed(*arguments: Any, **named: Any) -> Any:
        if any(map(is_symbolic, (*arguments, *named.values()))):
            refuse("content is given to a filter or test that looks into it unseen")
        return function(*arguments, **named)

    return marked_as(function, closed)


def _shaped(test: Any) -> Callable[[Any], bool]:
    """A test of what kind a value is: every text and container has items."""
    return lambda value: isinstance(value, Symbol | SymbolDict | SymbolList | Parts) or test(value)


def length_asked(value: Any) -> int:
    """`length` of a value: of content a number that remembers whose."""
    return length_of(value) if isinstance(value, Symbol) else len(value)


def _listed(value: Iterable[Any]) -> list[Any]:
    return [item for item in value]  # noqa: C416  # list() may go past a subclass's own iteration


def contains(needle: Any, holder: Any) -> bool:
    """`needle in holder`, recorded where it hangs on content."""
    if isinstance(holder, Symbol | SymbolDict | SymbolList):
        return constant(needle) in holder
    if isinstance(needle, Symbol):
        known = constant(holder)
        return bool(needle.asked(str.__str__(needle) in known, "within", known))
    if is_symbolic(needle) or (is_symbolic(holder) and not isinstance(holder, dict)):
        refuse("content is searched in content")
    return needle in holder


def _contains_pair(pair: list[Any]) -> bool:
    return contains(*pair)

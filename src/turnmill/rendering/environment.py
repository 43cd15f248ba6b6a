"""The Jinja environment of chat templates: transformers' own, bounded, and with stamps that track who wrote what.

The abstract syntax tree is rewritten with public nodes only: template text and string constants become calls of a
stamping filter, `~` a join that keeps origins, loops report whose turn they render. Compiled without stamps the same
rewrite gives the plain render that every tracked text is compared with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from turnmill.errors import Rejected
from turnmill.rendering import limits
from turnmill.rendering.clock import PinnedClock
from turnmill.rendering.derive import called, derived, deriving_filter, json_text, printed, replaced
from turnmill.rendering.trace import Trace
from turnmill.rendering.tracked import Tracked, concatenated

REMOVED_FILTERS = ("random",)
SELECTING_FILTERS = frozenset({"attr", "d", "default", "first", "last", "max", "min"})
"""Filters that give one of the values they were given."""
DICT_ATTRIBUTES = frozenset(dir(dict))
REMOVED_GLOBALS = ("lipsum",)
"""What draws unseeded randomness: a template that uses it cannot be rendered twice alike."""


class Generated(str):
    """What a `generation` tag of a plain render holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`: renders its body, and knows it again in a plain render."""

    tags = {"generation"}  # noqa: RUF012  # jinja's own type

    def parse(self, parser: jinja2.parser.Parser) -> nodes.Node:
        """The block as a call block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        body = caller()
        return body if isinstance(body, Tracked) else Generated(body)


class TemplateDict:
    """`dict(...)` without the attributes of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """As `dict`."""
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """As `dict.fromkeys`."""
        return dict.fromkeys(*args, **kwargs)


class TemplateNamespace(Namespace):
    """`namespace(...)` that refuses names with a leading underscore, as transformers' does."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, rest = args[0], args[1:]
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            TemplateNamespace._check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        TemplateNamespace._check_name(name)
        Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check_name(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(
                "Chat templates cannot store underscore-prefixed attributes on a namespace, "
                f"but got {name!r}. Please rename the attribute."
            )


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """Compiles and runs chat templates.

    Args:
        date: the day the template's clock shows, ISO 8601.
        stamps: track origins; without, the render is plain.

    Not for use by two threads at once: the trace of the render at hand is held here.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, date: str, *, stamps: bool) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=not stamps,
            extensions=[GenerationTag, loopcontrols],
            finalize=self._printed if stamps else self._bounded,
        )
        self.budget = limits.Budget()
        self.clock = PinnedClock(date)
        self.trace = Trace()
        self.stamps = stamps
        self._rewrite = Rewrite(stamps)
        self._safe: dict[tuple[type, str], bool] = {}
        self._set_filters()
        for name in REMOVED_GLOBALS:
            del self.globals[name]
        self.globals |= {
            "raise_exception": _raise,
            "strftime_now": self.clock.strftime,
            "dict": TemplateDict(),
            "namespace": TemplateNamespace,
        }

    def _set_filters(self) -> None:
        for name in REMOVED_FILTERS:
            del self.filters[name]
        for name, function in self.filters.items():
            self.filters[name] = limits.bounded_filter(name, function, self.budget)
        if self.stamps:
            making = [name for name in self.filters if name not in SELECTING_FILTERS]
            self.filters |= {name: deriving_filter(self.filters[name], lambda: self.trace) for name in making}
            self.filters["safe"] = lambda value: value
        self.filters |= {"tojson": self._to_json, "join": self._join, "replace": self._replace, "_concat": self._concat}
        self.filters["format"] = self._format
        self.filters["string"] = self._text
        self.filters |= {"_in": in_context(self._contains), "_sliced": in_context(self._sliced)}
        self.filters["_strided"] = in_context(self._strided)
        self.filters |= {"_tick": in_context(self._tick), "_literal": in_context(self._literal)}
        for name in ("push", "pop", "enter", "assign"):
            self.filters[f"_{name}"] = in_context(getattr(self, f"_{name}"))
        self.concat = self._gathered  # type: ignore[method-assign]  # jinja calls it with a list

    def render_pieces(self, template: jinja2.Template, variables: dict[str, Any], trace: Trace) -> Iterable[str]:
        """The output piece by piece; `trace.owner` is at each piece who is being rendered."""
        self.trace = trace
        self.budget.start()
        context = template.new_context(variables)
        for piece in template.root_render_func(context):
            if not isinstance(piece, str):
                raise TemplateError("the template puts out what is no text")
            self.budget.spend(len(piece))
            yield piece

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(self._rewrite.visit(source), *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator, within bounds."""
        limits.check_operation(self.budget, operator, left, right)
        made = self.binop_table[operator](left, right)
        return derived(self.trace, made, [left, right]) if self.stamps else made

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As the immutable sandbox decides, once for each type and name."""
        key = (type(obj), str.__str__(attr))
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The attribute, as the sandbox gives it; a message's key without asking dict first."""
        if type(obj) is dict and attribute not in DICT_ATTRIBUTES:
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """The call, within bounds."""
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        text = getattr(method, "__self__", None)
        if isinstance(text, str):
            args = _listed(method.__name__, args)
            limits.check_method(__self.budget, text, method.__name__, (*args, *kwargs.values()))
        elif isinstance(__obj, jinja2.runtime.Macro):
            __self.budget.tick()
        made = super().call(__context, __obj, *args, **kwargs)
        __self.budget.spend_value(made)
        if isinstance(text, str) and isinstance(made, list | tuple):
            __self.budget.read(limits.PART_CHARACTERS * len(made))
        if isinstance(made, bytes) and __self.stamps:
            raise Rejected("writers-mixed", "the template turns text into bytes, and who wrote it is lost")
        if not __self.stamps or not isinstance(made, str):
            return made
        given = [value for name, value in kwargs.items() if name not in ("_block_vars", "_loop_vars")]  # jinja's own
        return called(__self.trace, made, method, [*args, *given])

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        limits.check_json(self.budget, value, indent)
        text = json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )  # fmt: skip
        self.budget.spend(len(text))
        return json_text(self.trace, text, value, sort_keys=sort_keys) if self.stamps else text

    def _join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        items = list(value)
        if attribute is not None:
            items = list(map(jinja2.filters.make_attrgetter(self, attribute), items))
        self.budget.read(limits.PART_CHARACTERS * len(items))
        texts = [self._text(item) for item in items]
        limits.check_join(self.budget, d, texts)
        separator = self._text(d)
        return Tracked(separator).join(texts) if self.stamps else separator.join(texts)

    def _replace(self, s: Any, old: str, new: str, count: int | None = None) -> str:
        text = self._text(s)
        limits.check_replace(self.budget, text, old, new)
        made = text.replace(str(old), self._text(new), -1 if count is None else count)
        return replaced(self.trace, made, text, new) if self.stamps else made

    def _format(self, value: Any, *args: Any, **kwargs: Any) -> str:
        limits.check_format(self.budget, str(value), [*args, *kwargs.values()])
        made = jinja2.filters.do_format(value, *args, **kwargs)
        return derived(self.trace, made, [value, *args, *kwargs.values()]) if self.stamps else made

    def _bounded(self, value: Any) -> Any:
        """The value, which is about to be printed."""
        if isinstance(value, dict | list | tuple):
            self.budget.spend(limits.size_of(value))
        return value

    def _contains(self, pair: list[Any]) -> bool:
        """`needle in holder`."""
        needle, holder = pair
        if isinstance(holder, str | list | tuple):
            self.budget.read(len(holder))
        return needle in holder

    def _sliced(self, value: Any) -> Any:
        """A slice that has been made."""
        self.budget.read(len(value))
        return value

    def _strided(self, value: Any) -> Any:
        """A slice that has been made item by item."""
        self.budget.read(limits.PART_CHARACTERS * len(value))
        return value

    def _printed(self, value: Any) -> Any:
        return printed(self.trace, self._bounded(value))

    def _text(self, value: Any) -> str:
        if isinstance(value, Tracked):
            return value
        self._bounded(value)
        return str(printed(self.trace, value) if self.stamps else value)

    def _concat(self, parts: list[Any]) -> str:
        texts = [self._text(part) for part in parts]
        self.budget.spend(sum(map(len, texts)))
        return concatenated(texts) if self.stamps else "".join(texts)

    def _literal(self, text: str) -> str:
        return self.trace.literal(text)

    def _gathered(self, parts: Iterable[str]) -> str:
        """The pieces of a block or macro as one text."""
        pieces = list(parts)
        self.budget.spend(sum(map(len, pieces)))
        return concatenated(pieces) if self.stamps else "".join(pieces)

    def _tick(self, _: None) -> None:
        self.budget.tick()

    def _push(self, _: None) -> None:
        self.trace.push()

    def _pop(self, _: None) -> None:
        self.trace.pop()

    def _enter(self, value: Any) -> None:
        self.budget.tick()
        self.trace.enter(value)

    def _assign(self, value: Any) -> None:
        self.trace.assign(value)


def _listed(method: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a method, what `join` is to walk as a list."""
    if method != "join" or len(arguments) != 1 or isinstance(arguments[0], str | list | tuple):
        return arguments
    return (list(islice(arguments[0], limits.MAX_ITEMS)),)


def _raise(message: str) -> None:
    raise TemplateError(message)


def in_context(function: Callable[[Any], Any]) -> Callable[[Context, Any], Any]:
    """A filter that jinja must run at render time: with the context as an argument it is never folded to a constant."""

    @jinja2.pass_context
    def run(_: Context, value: Any) -> Any:
        return function(value)

    return run


class Rewrite(NodeTransformer):
    """Puts bounds, and where asked stamps, into a template's syntax tree."""

    def __init__(self, stamps: bool) -> None:
        self._stamps = stamps

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        """Template text is stamped."""
        return filtered("_literal", nodes.Const(node.data)) if self._stamps else node

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        """A string constant is stamped."""
        return filtered("_literal", node) if self._stamps and isinstance(node.value, str) else node

    def _unstamped(self, node: Any) -> Any:
        stamps, self._stamps = self._stamps, False
        try:
            return self.generic_visit(node)
        finally:
            self._stamps = stamps

    visit_Test = visit_Pair = _unstamped

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """`in` and `not in` are bounded."""
        self._unstamped(node)
        if len(node.ops) != 1 or node.ops[0].op not in ("in", "notin"):
            return node
        asked = filtered("_in", nodes.List([node.expr, node.ops[0].expr], lineno=node.lineno))
        return asked if node.ops[0].op == "in" else nodes.Not(asked, lineno=node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """What is subscripted may be text; the subscript is not."""
        node.node = self.visit(node.node)
        node.arg = self._unstamped(node.arg)
        if not isinstance(node.arg, nodes.Slice):
            return node
        return filtered("_sliced" if node.arg.step is None else "_strided", node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """`a ~ b` keeps origins and is bounded."""
        self.generic_visit(node)
        return filtered("_concat", nodes.List(node.nodes, lineno=node.lineno))

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:
        """A loop ticks, and says whose turn its body renders."""
        self.generic_visit(node)
        if not self._stamps:
            node.body.insert(0, _statement("_tick", nodes.Const(None), node.lineno))
            return [node]
        node.body.insert(0, _statement("_enter", _loaded(node.target), node.lineno))
        before, after = (_statement(name, nodes.Const(None), node.lineno) for name in ("_push", "_pop"))
        return [before, node, after]

    def visit_Assign(self, node: nodes.Assign) -> list[nodes.Node]:
        """`set m = messages[i]` says whose turn a counting loop renders."""
        self.generic_visit(node)
        if not self._stamps or not isinstance(node.target, nodes.Name):
            return [node]
        return [node, _statement("_assign", _loaded(node.target), node.lineno)]


def filtered(name: str, value: nodes.Expr) -> nodes.Filter:
    """An expression put through a filter of our own."""
    return nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)


def _statement(name: str, value: nodes.Expr, line: int) -> nodes.ExprStmt:
    return nodes.ExprStmt(filtered(name, value), lineno=line)


def _loaded(target: nodes.Node) -> nodes.Expr:
    """The loop's variable as a value; None for a loop over pairs."""
    if isinstance(target, nodes.Name):
        return nodes.Name(target.name, "load", lineno=target.lineno)
    return nodes.Const(None, lineno=target.lineno)

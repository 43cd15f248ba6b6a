"""Bounds on what a template may do: it is foreign code, and may neither loop for ever nor eat the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jinja2.exceptions import TemplateError

from turnmill.rendering.filter_marks import marked_as

MAX_TICKS = 2_000_000
"""Loop bodies and macro calls a render may take: a conversation of 10,000 messages takes some 100,000."""
MAX_CHARACTERS = 256 * 1024 * 1024
"""Characters any one string of a render may have: four times the largest record."""
MAX_MADE = 4 * MAX_CHARACTERS
"""Characters a render may make in all; an item of a list is as much as eight."""
MAX_READ = 16 * MAX_CHARACTERS
"""Characters a render may look through in all: each of the largest record's some sixty times."""
MAX_ITEMS = 1_000_000
"""Items any one list that a render makes may have."""
MAX_BITS = 10_000
"""Bits any one number of a render may have."""
MAX_PADDING = 1_000_000
"""The largest number a padding, indenting or batching filter or method, or a format specification, may be given."""

ITEM_CHARACTERS = 8
"""Characters that an item of a list is counted as."""
PART_CHARACTERS = 1024
"""Characters that a part is counted as which a text is split into or replaced in: it takes as long to track."""

LISTED_CHARACTERS = 256
"""Characters that an item is counted as which a filter puts into a list."""
JSON_CHARACTERS = 64
"""Characters that one of a JSON text is counted as: whose each token is takes that long to say."""

TRANSLATED_CHARACTERS = 64
"""Characters that one is counted as which goes through a table."""

GROWING_METHODS = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})
BOUNDED_FILTERS = ("batch", "center", "indent", "slice", "wordwrap")
"""Filters whose numbers set how much they make."""
SLOW_FILTERS = frozenset(
    {"escape", "e", "forceescape", "striptags", "title", "urlencode", "urlize", "wordwrap", "xmlattr"}
)
"""Filters that take long for a character."""
LISTING_FILTERS = frozenset(
    {
        "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "last", "length", "list",
        "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort", "sum",
        "unique",
    }
)  # fmt: skip
"""Filters that never write a list or an object as text."""


class TemplateLimit(TemplateError):
    """The template went over a bound."""


class Budget:
    """What is left of one render's ticks and characters."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin a render with all of the budget."""
        self.ticks = MAX_TICKS
        self.left = MAX_MADE
        self.unread = MAX_READ

    def tick(self) -> None:
        """One loop body or macro call."""
        self.ticks -= 1
        if self.ticks < 0:
            raise TemplateLimit(f"the template took over {MAX_TICKS:,} loop steps and macro calls")

    def spend(self, characters: int) -> None:
        """So many characters are about to be made at once."""
        self.left -= characters
        if characters > MAX_CHARACTERS or self.left < 0:
            raise TemplateLimit(f"the template makes strings of over {MAX_CHARACTERS:,} characters")

    def spend_items(self, items: int) -> None:
        """A list of so many items is about to be made."""
        self.left -= ITEM_CHARACTERS * items
        if items > MAX_ITEMS or self.left < 0:
            raise TemplateLimit(f"the template makes lists of over {MAX_ITEMS:,} items")

    def read(self, characters: int) -> None:
        """So many characters are looked through."""
        self.unread -= characters
        if self.unread < 0:
            raise TemplateLimit(f"the template looks through over {MAX_READ:,} characters")

    def spend_value(self, made: Any) -> None:
        """A text or a list has been made."""
        if isinstance(made, str | bytes):
            self.spend(len(made))
        elif isinstance(made, list | tuple):
            self.spend_items(len(made))


def size_of(value: Any) -> int:
    """Characters of a value as text, about; what stands in it several times is counted as often."""
    if isinstance(value, str | bytes):
        return len(value)
    return _size_within(value, {}) if isinstance(value, dict | list | tuple) else 0


def _size_within(value: Any, known: dict[int, int]) -> int:
    if not isinstance(value, dict | list | tuple):
        return max(size_of(value), 4)
    if id(value) not in known:
        known[id(value)] = 0  # what holds itself is written once
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 2 + sum(2 + _size_within(part, known) for part in parts)
    return known[id(value)]


def check_operation(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Refuse a `+`, `*`, `**` or `%` whose result would be over a bound, before it is made."""
    if operator == "+":
        if isinstance(left, str | bytes) and isinstance(right, str | bytes):
            budget.spend(len(left) + len(right))
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            budget.spend_items(len(left) + len(right))
    elif operator == "*":
        check_product(budget, left, right)
    elif operator == "**":
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() * max(right, 0) > MAX_BITS:
            raise TemplateLimit(f"the template computed a number of over {MAX_BITS:,} bits")
    elif isinstance(left, str):
        check_format(budget, left, right if isinstance(right, tuple) else (right,))


def check_product(budget: Budget, left: Any, right: Any) -> None:
    """Refuse a repetition or a product over a bound."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MAX_BITS:
            raise TemplateLimit(f"the template computed a number of over {MAX_BITS:,} bits")
        return
    count, sequence = (left, right) if isinstance(left, int) else (right, left)
    if isinstance(count, int) and isinstance(sequence, str | bytes):
        budget.spend(len(sequence) * max(count, 0))
    elif isinstance(count, int) and isinstance(sequence, list | tuple):
        budget.spend_items(len(sequence) * max(count, 0))


def check_format(budget: Budget, pattern: str, values: Iterable[Any]) -> None:
    """Refuse a format whose paddings are over a bound."""
    digits = "".join(character if character.isdigit() else " " for character in str.__str__(pattern)).split()
    values = list(values)
    paddings = [int(number[:10]) for number in digits] + [value for value in values if isinstance(value, int)]
    if any(abs(padding) > MAX_PADDING for padding in paddings if not isinstance(padding, bool)):
        raise TemplateLimit(f"the template formats with a number over {MAX_PADDING:,}")
    fields = max(str.count(pattern, "%"), str.count(pattern, "{"), 1)
    budget.spend(len(pattern) + fields * (sum(map(size_of, values)) + max(map(abs, paddings), default=0)))


def check_method(budget: Budget, text: str, method: str, arguments: tuple[Any, ...]) -> None:
    """Refuse a string method whose result would be over a bound."""
    budget.read(len(text))
    if method == "replace" and len(arguments) >= 2:
        check_replace(budget, text, *arguments[:2])
    elif method == "join" and arguments and isinstance(arguments[0], list | tuple):
        check_join(budget, text, arguments[0])
    elif method in GROWING_METHODS:
        check_numbers(arguments)
        check_tabs(budget, text, arguments)
    elif method == "translate":
        check_translate(budget, text, arguments)
    elif method in ("format", "format_map"):
        check_format(budget, text, arguments)


def check_tabs(budget: Budget, text: str, arguments: Iterable[Any]) -> None:
    """Refuse tabs that would be expanded over a bound; the other paddings pad once."""
    widest = max((abs(one) for one in arguments if isinstance(one, int)), default=0)
    budget.spend(len(text) + max(str.count(text, "\t"), 1) * widest)


def check_translate(budget: Budget, text: str, arguments: Iterable[Any]) -> None:
    """Refuse a translation that would be over a bound: every character may become the longest entry of its table."""
    longest = max((size_of(one) for table in arguments if isinstance(table, dict) for one in table.values()), default=1)
    budget.read(TRANSLATED_CHARACTERS * len(text))
    budget.spend(len(text) * max(longest, 1))


def check_replace(budget: Budget, text: str, old: Any, new: Any) -> None:
    """Refuse a replacement whose result would be over a bound."""
    if isinstance(old, str) and isinstance(new, str):
        found = str.count(text, old)
        budget.read(PART_CHARACTERS * found)
        budget.spend(len(text) + found * len(new))


def check_join(budget: Budget, separator: str, parts: Iterable[Any]) -> None:
    """Refuse a join whose result would be over a bound."""
    budget.spend(sum(len(separator) + size_of(part) for part in parts))


def check_json(budget: Budget, value: Any, indent: Any) -> None:
    """Refuse JSON that would be over a bound."""
    check_numbers([indent])
    size = size_of(value)
    budget.spend(size * max(size_of(indent), abs(indent) if isinstance(indent, int) else 0, 1))
    budget.read(JSON_CHARACTERS * size)


def check_numbers(arguments: Iterable[Any]) -> None:
    """Refuse numbers that ask a padding filter or method for more than its bound."""
    if any(isinstance(argument, int) and abs(argument) > MAX_PADDING for argument in arguments):
        raise TemplateLimit(f"the template pads, indents or batches by over {MAX_PADDING:,}")


def bounded_filter(name: str, function: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """A filter that refuses numbers over its bound, and whose work is counted.

    Args:
        name: of the filter.
        function: the filter.
        budget: of the environment.
    """
    has_numbers, is_writing = name in BOUNDED_FILTERS, name not in LISTING_FILTERS
    weight = PART_CHARACTERS if name in SLOW_FILTERS else 1

    def bounded(*arguments: Any, **named: Any) -> Any:
        given = [*arguments, *named.values()]
        if has_numbers:
            check_numbers(given)
        read = sum(len(one) for one in given if isinstance(one, str))
        budget.read((max(weight, read) if name == "wordwrap" else weight) * read)  # it cuts a long word again and again
        if is_writing:
            budget.spend(sum(map(size_of, given)) - read)
        made = function(*arguments, **named)
        budget.spend_value(made)
        if isinstance(made, list):
            budget.read(LISTED_CHARACTERS * len(made))
        return made

    return marked_as(function, bounded)

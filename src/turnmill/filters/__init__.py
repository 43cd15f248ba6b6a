"""Filters: a file each, keep a row or say why not.

A filter's code is its own name. Its options are a section of the config (`filter.language`), written in
`turnmill.options` and given to every filter whole.
"""

from __future__ import annotations

from collections.abc import Callable

from turnmill import options
from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.registry import Registry

Filter = Callable[[Checked, options.Filter], Rejected | None]
"""None keeps the row. Phrase files are read already: what they hold stands in the options' `phrases`."""

filters: Registry[Filter] = Registry("filters")
row_filter = filters.register

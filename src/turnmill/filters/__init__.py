"""Filters: a file each, keep a row or say why not."""

from __future__ import annotations

from collections.abc import Callable

from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.registry import Registry

Filter = Callable[[Checked], Rejected | None]
"""None keeps the row."""

filters: Registry[Filter] = Registry("filters")
row_filter = filters.register

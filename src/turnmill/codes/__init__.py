"""Every code a row can leave with: public API, listed with an example on the codes reference page."""

from __future__ import annotations

from turnmill.codes.checking import CHECKING
from turnmill.codes.code import Code
from turnmill.codes.converting import CONVERTING
from turnmill.codes.leaving import LEAVING
from turnmill.codes.reading import READING
from turnmill.codes.rendering import RENDERING

CODES: dict[str, Code] = {**READING, **CONVERTING, **CHECKING, **LEAVING, **RENDERING}
"""By code, lower-kebab; a file for each group of stages."""

__all__ = ["CODES", "Code"]

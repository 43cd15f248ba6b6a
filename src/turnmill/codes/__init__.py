"""Every code a row leaves with, or a template is refused with: public API, on the codes reference page."""

from __future__ import annotations

from turnmill.codes.checking import CHECKING
from turnmill.codes.code import Code
from turnmill.codes.converting import CONVERTING
from turnmill.codes.leaving import LEAVING
from turnmill.codes.reading import READING
from turnmill.codes.rendering import RENDERING
from turnmill.codes.templates import TEMPLATES

CODES: dict[str, Code] = {**READING, **CONVERTING, **CHECKING, **LEAVING, **RENDERING, **TEMPLATES}
"""By code, lower-kebab; a file for each group of stages."""

__all__ = ["CODES", "Code"]

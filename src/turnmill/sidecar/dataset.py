"""A dataset as it is passed around inside: its name, size and times, and its bytes only where somebody asked."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

CONTENT = "content"


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A moment with its time zone, which is UTC."""


class TrainingDataset(BaseModel):
    """A file of JSON lines. Its bytes leave by `payload` alone: no dump, JSON, repr, iteration or pickle has them."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)

    filename: str
    """Its name, without a directory."""
    content: str | None = Field(default=None, exclude=True, repr=False)
    """Base64 of its bytes; never serialised."""
    size_bytes: int | None = Field(default=None, ge=0)
    """Of the file."""
    uploaded_at: UtcDatetime | None = None
    """When it was stored."""
    modified_at: UtcDatetime | None = None
    """When the file was last written."""

    @classmethod
    def from_path(cls, path: Path, with_content: bool = False) -> TrainingDataset:
        """The dataset in a file, its content only where it is asked for.

        Raises:
            OSError: the file cannot be read.
        """
        found = path.stat()
        written = datetime.fromtimestamp(found.st_mtime, UTC)  # a stored file is written once, when it comes
        content = base64.b64encode(path.read_bytes()).decode("ascii") if with_content else None
        return cls(
            filename=path.name, content=content, size_bytes=found.st_size, uploaded_at=written, modified_at=written
        )

    def payload(self) -> bytes:
        """The bytes of the file.

        Raises:
            ValueError: there is no content, it is empty, or not base64.
        """
        if self.content is None:
            raise ValueError(f"{self.filename} has no content")
        try:
            found = base64.b64decode(self.content.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise ValueError(f"the content of {self.filename} is not base64") from None
        if not found:
            raise ValueError(f"the content of {self.filename} is empty")
        return found

    def __iter__(self) -> Generator[tuple[str, Any], None, None]:
        yield from (field for field in super().__iter__() if field[0] != CONTENT)

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        kept = {name: value for name, value in state["__dict__"].items() if name != CONTENT}
        return {**state, "__dict__": {**kept, CONTENT: None}}

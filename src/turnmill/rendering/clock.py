"""The day a template's clock shows: pinned, and remembered when it was asked."""

from __future__ import annotations

from datetime import datetime


class PinnedClock:
    """`strftime_now` of one fixed day, at midnight."""

    def __init__(self, date: str) -> None:
        self._now = datetime.fromisoformat(date)
        self.asked = False

    def strftime(self, format: str) -> str:
        """The pinned day in a format of `datetime.strftime`."""
        self.asked = True
        return self._now.strftime(str.__str__(format))

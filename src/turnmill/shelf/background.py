"""A call that may take long, made beside a worker that must go on saying that it lives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Background(Generic[Result]):
    """A call in a thread of its own, which does not keep the process.

    Args:
        call: what is to be done.
    """

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._result: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # raised again where the result is asked for
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error in its place."""
        return not self._thread.is_alive()

    def result(self) -> Result:
        """What came of it, once it is done; what it raised is raised here."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]

"""A relay of threads: what a library remembers for a thread ends with it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


class Relay:
    """Runs calls on texts in a thread of its own, and in another one when so many characters have passed.

    For libraries that keep a memory for every thread that calls them, bounded by nothing but the thread's life.

    Args:
        most: characters that pass through one thread, and what is left of the call that goes beyond.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._handing = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._passed = 0
        self._process = 0

    def run(self, function: Callable[[Sequence[str]], Found], texts: Sequence[str]) -> Found:
        """What a function gives of texts; what it raises is raised."""
        with self._handing:
            thread = self._rested()
            self._passed += sum(map(len, texts))
            found = thread.submit(function, texts)
        return found.result()

    def _rested(self) -> ThreadPoolExecutor:
        """The thread at hand, or the next one; a forked process has none of its parent's."""
        is_own = self._process == os.getpid()
        if self._thread is not None and is_own and self._passed < self._most:
            return self._thread
        if self._thread is not None and is_own:
            self._thread.shutdown()  # its memory is given back before the next one takes any
        self._thread, self._passed, self._process = ThreadPoolExecutor(1, "turnmill-encode"), 0, os.getpid()
        return self._thread

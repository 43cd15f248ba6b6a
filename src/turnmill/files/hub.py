"""A dataset hub through huggingface_hub: where a repository is, and what went wrong there. No token is ever shown."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from turnmill.errors import TurnmillError, UsageError, quote, shell_word

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DATASET = "dataset"
LOGIN, WHO = "hf auth login", "hf auth whoami"
NAMED = re.compile(r"(?:hf://)?(?:datasets/)?([\w.-]+/[\w.-]+)(?:@([^@\s]+))?")


class Repository(NamedTuple):
    """A dataset on the hub."""

    name: str
    """`owner/name`."""
    revision: str | None = None
    """Branch, tag or commit; None: its main branch."""

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def repository(text: str) -> Repository:
    """What was typed, `OWNER/NAME` or `OWNER/NAME@REVISION`.

    Raises:
        UsageError: it is neither.
    """
    found = NAMED.fullmatch(text)
    if found is None:
        what = f"{quote(text)} names no repository; expected OWNER/NAME or OWNER/NAME@REVISION"
        raise UsageError(what, next_step=WHO)
    return Repository(found[1], found[2])


class Hub(NamedTuple):
    """A client of the hub."""

    api: HfApi
    token: str | None

    @property
    def has_token(self) -> bool:
        """Whether somebody is logged in."""
        return self.token is not None

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turns what the client raises into an error that says what was being done.

        Raises:
            UsageError: anything was raised.
        """
        try:
            yield
        except TurnmillError:
            raise
        except Exception as problem:  # of the client, of HTTP, of sockets: each has its own, and they may show headers
            why, next_step = _told(problem, has_token=self.has_token)
            what = f"cannot {doing}: {why}"
            raise UsageError(what.replace(self.token, "***") if self.token else what, next_step=next_step) from None


def open_hub(*, writes: bool) -> Hub:
    """The hub, as the one whose token the environment or a login holds.

    Args:
        writes: whether a token is needed.

    Raises:
        UsageError: huggingface_hub is missing, or there is no token and one is needed.
    """
    try:
        import huggingface_hub
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        what = "the hub needs huggingface_hub, which is not installed"
        raise UsageError(what, next_step="pip install 'turnmill[hub]'") from None
    token = huggingface_hub.get_token()
    if writes and token is None:
        what = "no token for the hub: neither in HF_TOKEN nor of a login; one that may write is needed"
        raise UsageError(what, next_step=LOGIN)
    if not sys.stderr.isatty():
        disable_progress_bars()
    return Hub(huggingface_hub.HfApi(token=token or False), token)


def _told(problem: Exception, *, has_token: bool) -> tuple[str, str]:
    """Why, and what to type next."""
    from huggingface_hub import errors

    who = WHO if has_token else LOGIN
    status = getattr(getattr(problem, "response", None), "status_code", None)
    if isinstance(problem, errors.GatedRepoError):
        return "its owner must let you in first", who
    if isinstance(problem, errors.RevisionNotFoundError):
        return "it has no such revision", "hf datasets info OWNER/NAME"
    if isinstance(problem, errors.EntryNotFoundError):
        return "a file is not there", who
    if isinstance(problem, errors.RepositoryNotFoundError):
        seen = "that your token may see" if has_token else "that can be seen without a token"
        return f"there is no such dataset {seen}", who
    if isinstance(problem, errors.HFValidationError):
        return f"the name is none that the hub takes: {quote(str(problem))}", who
    if status in (401, 403):
        return f"the hub answers {status}: the token may not do that", who
    if status in (409, 412):
        return "somebody else changed it meanwhile; nothing was changed, run the same command again", who
    return _first_line(problem), who


def _first_line(problem: BaseException) -> str:
    cause = problem.__cause__
    told = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
    return told if cause is None else f"{told} ({_first_line(cause)})"


def command_to_pull(name: str, commit: str) -> str:
    """What gets exactly this back."""
    return f"turnmill pull {shell_word(f'{name}@{commit}')} --output {shell_word(name.partition('/')[2])}"

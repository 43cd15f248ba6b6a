"""What every service of turnmill shares: the addresses that only this machine reaches, and how a refusal is said."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack
from typing import Any

from turnmill.errors import UsageError, quote

PROBLEM_TYPE = "application/problem+json"
PROBLEM_PREFIX = "urn:turnmill:problem:"


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """A refusal as RFC 9457 says one.

    Args:
        status: of HTTP.
        code: what is wrong, lower-kebab; programs look at it, so it does not change.
        detail: what, where, got, expected.
        more: further members.
    """
    said = {"type": f"{PROBLEM_PREFIX}{code}", "title": code.replace("-", " ").capitalize()}
    return {**said, "status": status, "code": code, "detail": detail, **more}


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound and does not listen yet; port 0 takes any that is free.

    Raises:
        UsageError: the address cannot be had.
    """
    with ExitStack() as opened:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = found[0]
            made = opened.enter_context(socket.socket(family, kind, protocol))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except (OSError, OverflowError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(f"cannot listen at {quote(host)}, port {port}: {why}", next_step="--port 0") from None
        opened.pop_all()
    return made


def address_of(bound: socket.socket) -> str:
    """The URL of a socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

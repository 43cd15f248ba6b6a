"""What points at a person or opens a door: addresses, numbers, keys, names of home directories."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from turnmill.conversation import Conversation, Json, Message, recorded_json
from turnmill.repairs import Mending, conversation_repair


class Trace(NamedTuple):
    """One kind of what is taken out."""

    pattern: re.Pattern[str]
    mask: Callable[[re.Match[str]], str]
    """What stands there afterwards; the same text where it is none after all."""


FILE_ENDINGS = frozenset(
    ("bmp", "css", "gif", "html", "jpeg", "jpg", "js", "json", "md", "pdf", "png", "py", "rs", "svg", "ts", "webp")
)
"""Ends of `icon@2x.png`, which is no address."""
SHARED_HOMES = frozenset(("public", "shared", "default", "user", "username", "you", "me", "your-name", "yourname"))
"""Home directories of nobody."""

_EMAIL = re.compile(
    r"(?<![\w.%+/-])(?!git@)[A-Za-z0-9](?:[\w.%+-]{0,62}[A-Za-z0-9])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}([A-Za-z]{2,24})(?![\w-]|\.\w|:\d)"
)
_PHONE = re.compile(
    r"(?<![\w.+/=-])(?:"
    r"\+[1-9]\d{0,2}(?:[ .-]?\(\d{1,4}\))?(?:[ .-]\d{2,8}){1,9}"  # +49 30 901820, +1 (212) 555-0143
    r"|\+[1-9]\d{9,14}"  # +4930901820
    r"|\([2-9]\d{2}\) ?\d{3}-\d{4}"  # (212) 555-0143
    r"|[2-9]\d{2}-\d{3}-\d{4}"  # 212-555-0143
    r")(?![\w-]|\.\d)"
)
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9A-Fa-f]{3}:(?:[0-9A-Fa-f]{0,4}:){1,6}[0-9A-Fa-f]{0,4}(?![\w:])")
_SECRET = re.compile(
    r"(?<![\w-])(?:"
    r"sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,200}|[sr]k_live_[A-Za-z0-9]{20,99}"
    r"|gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{40,255}|glpat-[\w-]{20,64}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abprs]-[A-Za-z0-9-]{20,200}"
    r"|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}"
    r"|eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000}"
    r")(?![\w-])"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]{40,8000}-----END (?:[A-Z]+ )?PRIVATE KEY-----"
)
_HOME = re.compile(
    r"(?:(?<![\w./~-])/home/(?=[\w.-]+/\S)|(?<=\s)/home/|(?<![\w./~-])/Users/|\b[A-Za-z]:\\{1,2}Users\\{1,2})"
    r"([A-Za-z_][\w.-]{0,62}\w|[A-Za-z_])"
)


def _email(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in FILE_ENDINGS else "[email]"


def _phone(found: re.Match[str]) -> str:
    return "[phone]" if 8 <= sum(character.isdigit() for character in found[0]) <= 15 else found[0]


def _address(found: re.Match[str]) -> str:
    """Addresses of the open internet alone: local, private and documentation ranges point at nobody."""
    try:
        return "[ip-address]" if ipaddress.ip_address(found[0]).is_global else found[0]
    except ValueError:
        return found[0]


def _home(found: re.Match[str]) -> str:
    if found[1].lower() in SHARED_HOMES:
        return found[0]
    return found[0].removesuffix(found[1]) + "[user]"


TRACES = (
    Trace(_SECRET, lambda found: "[secret]"),
    Trace(_EMAIL, _email),
    Trace(_IPV4, _address),
    Trace(_IPV6, _address),
    Trace(_PHONE, _phone),
    Trace(_HOME, _home),
)


@conversation_repair("anonymise")
def anonymise(conversation: Conversation, mending: Mending) -> Conversation:
    """Put placeholders for e-mail and IP addresses, phone numbers, keys and tokens, and names of home directories.

    In texts, results, reasoning, authors' names and the values of calls' arguments; not in tool definitions, template
    arguments and kept columns. Only shapes that are hardly anything else: it masks traces, and promises no anonymity.
    """
    messages = tuple(_anonymous(message) for message in conversation.messages)
    verbatim = {index: masked(text) for index, text in conversation.verbatim.items()}
    return msgspec.structs.replace(conversation, messages=messages, verbatim=verbatim)


def masked(text: str) -> str:
    """The text with placeholders: `[secret]`, `[email]`, `[ip-address]`, `[phone]`, `[user]`."""
    for pattern, mask in TRACES:
        text = pattern.sub(mask, text)
    return text


def _anonymous(message: Message) -> Message:
    if message.is_call:
        text = _arguments(message.text)
        return message if text == message.text else msgspec.structs.replace(message, text=text)
    name = message.name if message.role == "tool" or message.name is None else masked(message.name)
    text = masked(message.text)
    if (text, name) == (message.text, message.name):
        return message
    return msgspec.structs.replace(message, text=text, name=name)


def _arguments(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:  # the contract refuses it
        return text
    masked_value = _values(value)
    return text if masked_value == value else recorded_json(masked_value)


def _values(value: Json) -> Json:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_values(item) for item in value]
    if isinstance(value, dict):
        return {key: _values(item) for key, item in value.items()}
    return value

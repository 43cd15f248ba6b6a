"""What points at a person or opens a door: addresses, numbers, keys, names of accounts."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from turnmill.conversation import Conversation, Json, Message, recorded_json
from turnmill.repairs import Mending, conversation_repair

VERSION = 2
"""Of what is taken out: rows that were mended before are mended anew."""


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

SHARED_ACCOUNTS = frozenset(
    ("root", "daemon", "bin", "sys", "adm", "staff", "wheel", "users", "sudo", "admin", "docker", "nobody", "nogroup",
     "www-data", "node", "ubuntu", "debian", "ec2-user", "git", "postgres", "nginx", "runner", "vscode", "codespace",
     "openhands", "agent", "app", *SHARED_HOMES)
)  # fmt: skip
"""Accounts of nobody: of systems, images and services."""
COMMON_PASSWORDS = frozenset(
    ("password", "pass", "passwd", "secret", "postgres", "root", "admin", "example", "changeme")
)
"""What stands for a password in documents."""

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
    r"|ya29\.[\w-]{30,500}|SG\.[\w-]{16,64}\.[\w-]{16,64}|dop_v1_[a-f0-9]{64}|glsa_[\w]{32,64}"
    r"|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}"
    r"|eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000}"
    r")(?![\w-])"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]{40,8000}-----END (?:[A-Z]+ )?PRIVATE KEY-----"
)
_HOME = re.compile(
    r"(?:(?<![\w./~-])/home/(?=[\w.-]+/\S)|(?<=\s)/home/|(?<=HOME=)/home/|(?<=PWD=)/home/|(?<![\w./~-])/Users/|\b[A-Za-z]:\\{1,2}Users\\{1,2})"
    r"([A-Za-z_][\w.-]{0,62}\w|[A-Za-z_])"
)
_SLUG = re.compile(r"(?:(?<=/)|(?<=\s)|(?<=\")|^)-(?:home|Users)-([A-Za-z_]\w{0,62})(?=[-/\s\"]|$)", re.MULTILINE)
"""A path as the name of a folder, as Claude Code names its projects."""
_LISTED = re.compile(
    r"^(?P<before>[-dlbcps][-rwxsStT]{9}[@+.]?[ \t]+\d+[ \t]+)(?P<owner>[A-Za-z_][\w.-]{0,62})(?P<gap>[ \t]+)"
    r"(?P<group>[A-Za-z_][\w.-]{0,62})(?=[ \t])",
    re.MULTILINE,
)
"""A line of `ls -l`."""
_PROMPT = re.compile(
    r"(?<![\w.+/-])([A-Za-z_][\w.-]{0,31})@[A-Za-z0-9][\w.-]{0,62}"
    r"(?P<place>:[~/][^\s$#]{0,200}[$#]|(?: [~\w./-]{1,200})? %)(?=\s|$)"
)
"""What a shell writes before a command."""
_ACCOUNT = re.compile(
    r"(?:(?:\b(?:e?[ug]id|groups)=|(?<=\)),)\d{1,10}\(|\b(?:USER|LOGNAME|USERNAME)=)([A-Za-z_][\w.-]{0,62})\b"
)
"""Of `id`, and of the environment."""
_AUTHOR = re.compile(
    r"^([ \t]*(?:Author|Commit|Committer|(?:Signed-off|Co-authored|Reviewed|Acked|Tested)-by):[ \t]+)"
    r"([^<\n]{1,80}?)(?= <[^\s<>]{1,200}@)",
    re.MULTILINE | re.IGNORECASE,
)
"""Of a commit."""
_ASSIGNED = re.compile(
    r"(?<!\w)(?P<name>[A-Z][A-Z0-9_]{0,60}?(?:API_?KEY|ACCESS_KEY(?:_ID)?|SECRET(?:_KEY)?|TOKEN|PASSWORD|PASSWD)"
    r"(?:[ \t]?[=:][ \t]?)[\"']?)(?=[^\s\"']*\d)(?=[^\s\"']*[A-Za-z])(?P<value>[A-Za-z0-9._~+/=-]{12,500})"
)
"""A variable that is named as a secret."""
_HEADER = re.compile(
    r"(\bAuthorization[\"']?:[ \t]*[\"']?(?:Bearer|Basic|token)[ \t]+)([A-Za-z0-9._~+/=-]{16,4000})", re.IGNORECASE
)
_IN_ADDRESS = re.compile(r"(?<=://)([^\s/:@\"'<>]{1,64}):([^\s/@\"'<>]{1,200})(?=@[\w\[])")
"""User and password in an address."""


def _slug(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in SHARED_HOMES else found[0].removesuffix(found[1]) + "[user]"


def _listed(found: re.Match[str]) -> str:
    return f"{found['before']}{_account_name(found['owner'])}{found['gap']}{_account_name(found['group'])}"


def _account_name(name: str) -> str:
    return name if name.lower() in SHARED_ACCOUNTS else "[user]"


def _prompt(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in SHARED_ACCOUNTS else f"[user]@[host]{found['place']}"


def _account(found: re.Match[str]) -> str:
    return found[0].removesuffix(found[1]) + _account_name(found[1])


def _in_address(found: re.Match[str]) -> str:
    is_placeholder = found[2].lower() in COMMON_PASSWORDS or found[2] == found[1]
    return found[0] if is_placeholder or found[2].startswith(("$", "{", "[", "*")) else f"{found[1]}:[secret]"


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
    Trace(_ASSIGNED, lambda found: f"{found['name']}[secret]"),
    Trace(_HEADER, lambda found: f"{found[1]}[secret]"),
    Trace(_IN_ADDRESS, _in_address),
    Trace(_AUTHOR, lambda found: f"{found[1]}[name]"),
    Trace(_PROMPT, _prompt),
    Trace(_EMAIL, _email),
    Trace(_IPV4, _address),
    Trace(_IPV6, _address),
    Trace(_PHONE, _phone),
    Trace(_HOME, _home),
    Trace(_SLUG, _slug),
    Trace(_LISTED, _listed),
    Trace(_ACCOUNT, _account),
)


@conversation_repair("anonymise")
def anonymise(conversation: Conversation, mending: Mending) -> Conversation:
    """Put placeholders for e-mail and IP addresses, phone numbers, keys and tokens, and names of accounts.

    Accounts where a home directory, a shell's prompt, `ls -l`, `id`, the environment or a commit names them. In texts,
    results, reasoning, authors' names and the values of calls' arguments; not in tool definitions, template arguments
    and kept columns. Only shapes that are hardly anything else: it masks traces, and promises no anonymity.
    """
    messages = tuple(_anonymous(message) for message in conversation.messages)
    verbatim = {index: masked(text) for index, text in conversation.verbatim.items()}
    return msgspec.structs.replace(conversation, messages=messages, verbatim=verbatim)


def masked(text: str) -> str:
    """The text with placeholders: `[secret]`, `[email]`, `[ip-address]`, `[phone]`, `[user]`, `[name]`, `[host]`."""
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

"""Access tokens: made, listed, revoked, and what one of them opens."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from turnmill.errors import UnknownName, UsageError, quote
from turnmill.shelf.database import Database, DatabaseUnavailable
from turnmill.shelf.tables import AccessToken, now

SCOPES = ("read", "write", "admin")
"""Each may do what the ones before it may."""
PREFIX = "tm_"
"""Of every token, so that one that leaked can be searched for."""
USED_EVERY = timedelta(minutes=1)
"""How exactly it is kept when a token was last used."""
MAX_NAME_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token opens."""

    name: str
    scope: str
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_valid(self, at: datetime) -> bool:
        """Whether it opens anything at that time."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    def allows(self, scope: str) -> bool:
        """Whether it may do what the scope may."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def make_token(database: Database, name: str, scope: str, lasts: timedelta | None = None) -> str:
    """Make a token; the text that is given exists nowhere else.

    Args:
        database: that keeps its hash.
        name: what it is listed as.
        scope: `read`, `write` or `admin`.
        lasts: how long it opens anything; None: until it is revoked.

    Raises:
        UsageError: the name is taken or empty, no such scope, or no time at all.
    """
    if scope not in SCOPES:
        raise UnknownName("scope", scope, SCOPES)
    if not 1 <= len(name.strip()) <= MAX_NAME_CHARACTERS:
        raise UsageError(f"the name is {quote(name)}; expected 1 to {MAX_NAME_CHARACTERS} characters")
    if lasts is not None and lasts <= timedelta(0):
        raise UsageError(f"the token would last {lasts}; expected more than nothing")
    token = PREFIX + secrets.token_urlsafe(32)
    expires_at = None if lasts is None else now() + lasts
    try:
        with database.writing() as session:
            session.add(AccessToken(name=name, sha256=digest(token), scope=scope, expires_at=expires_at))
    except IntegrityError:
        what = f"an access token has the name {quote(name)}; names are never used again"
        raise UsageError(what, next_step="turnmill access-token list") from None
    return token


def digest(token: str) -> str:
    """What is kept of a token: it is 256 random bits, so nothing slower than SHA-256 is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def all_tokens(database: Database) -> list[AccessToken]:
    """Every token that was ever made, oldest first."""
    with database.reading() as session:
        return list(session.scalars(select(AccessToken).order_by(AccessToken.created_at, AccessToken.id)))


def revoke_token(database: Database, name: str) -> None:
    """Let a token open nothing from now on.

    Raises:
        UsageError: no token has that name.
    """
    with database.writing() as session:
        token = session.scalar(select(AccessToken).where(AccessToken.name == name))
        if token is None:
            known = session.scalars(select(AccessToken.name)).all()
            raise UnknownName("access token", name, known, next_step="turnmill access-token list")
        token.revoked_at = token.revoked_at or now()


def needs_tokens(database: Database) -> bool:
    """Whether any token was ever made: then nothing opens without one."""
    with database.reading() as session:
        return session.scalar(select(AccessToken.id).limit(1)) is not None


def grant_of(database: Database, sha256: str) -> Grant | None:
    """What the token of that hash opens; it is noted as used."""
    with database.reading() as session:
        token = session.scalar(select(AccessToken).where(AccessToken.sha256 == sha256))
    if token is None:
        return None
    if token.last_used_at is None or now() - token.last_used_at > USED_EVERY:
        with suppress(DatabaseUnavailable), database.writing() as session:  # a full disk can still be read
            session.execute(update(AccessToken).where(AccessToken.id == token.id).values(last_used_at=now()))
    return Grant(token.name, token.scope, token.expires_at, token.revoked_at)

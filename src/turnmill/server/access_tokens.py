"""Access tokens over REST: listed, made and revoked by an admin."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from turnmill.errors import UsageError
from turnmill.server.answers import Answer
from turnmill.server.guard import require_admin
from turnmill.server.problems import Problem
from turnmill.server.service import TheService
from turnmill.shelf.access import MAX_NAME_CHARACTERS, all_tokens, make_token, needs_tokens, revoke_token
from turnmill.shelf.tables import AccessToken, now

MAX_LASTS_S = 36_500 * 86_400
ADMIN = {"x-scope": "admin"}
State = Literal["valid", "expired", "revoked"]
Scope = Literal["read", "write", "admin"]


async def _admin(request: Request) -> None:
    """Whoever is no admin is refused before anything else is looked at."""
    require_admin(request.state.grant)


router = APIRouter(prefix="/access-tokens", tags=["access_tokens"], dependencies=[Depends(_admin)])
TheId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="Of the token's record.")]


class Token(Answer):
    """An access token, without what opens."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)

    id: str
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: never.")
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")
    state: State


class Tokens(Answer):
    """Every token that was ever made."""

    tokens: list[Token] = Field(description="The oldest first.")


class TokenRequest(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]+$")]
    scope: Scope = "read"
    lasts_s: Annotated[int, Field(ge=1, le=MAX_LASTS_S)] | None = Field(
        None, description="Seconds that it opens anything; null: until it is revoked."
    )


class NewToken(Token):
    """A token that was just made."""

    secret: str = Field(description="What requests bring; it is told here, and never again.")
    closes: bool = Field(description="It is the first one: from now on nothing opens without a token.")


@router.get("", openapi_extra=ADMIN)
def listed(service: TheService) -> Tokens:
    """Every token that was made, and whether it opens anything; what opens is never told."""
    return Tokens(tokens=[_said(token) for token in all_tokens(service.database)])


@router.post(
    "", status_code=201, openapi_extra=ADMIN, responses={409: {"description": "first-token-not-admin, name-taken"}}
)
def create(service: TheService, response: Response, asked: TokenRequest) -> NewToken:
    """Make a token, and tell it once.

    The first token of a server closes it: nothing opens without one from then on. So that somebody can still make
    others here, it has to be an admin's, without an end.
    """
    is_first = not needs_tokens(service.database)
    if is_first and (asked.scope != "admin" or asked.lasts_s is not None):
        detail = "the first token closes the server to whoever has none; expected scope admin and no `lasts_s`"
        raise Problem(409, "first-token-not-admin", detail)
    lasts = None if asked.lasts_s is None else timedelta(seconds=asked.lasts_s)
    try:
        secret = make_token(service.database, asked.name, asked.scope, lasts)
    except UsageError as error:
        taken = any(token.name == asked.name for token in all_tokens(service.database))
        raise Problem(409 if taken else 400, "name-taken" if taken else "request-not-valid", error.message) from None
    response.headers["Cache-Control"] = "no-store"
    made = next(token for token in all_tokens(service.database) if token.name == asked.name)
    return NewToken(**_said(made).model_dump(), secret=secret, closes=is_first)


@router.post("/{token_id}/revoke", openapi_extra=ADMIN, responses={404: {"description": "token-unknown"}})
def revoke(service: TheService, token_id: TheId) -> Token:
    """Let a token open nothing, within a second; one that is revoked already stays as it is."""
    name = next((token.name for token in all_tokens(service.database) if token.id == token_id), None)
    if name is None:
        raise Problem(404, "token-unknown", "no access token has that id")
    revoke_token(service.database, name)
    return _said(next(token for token in all_tokens(service.database) if token.id == token_id))


def _said(token: AccessToken) -> Token:
    is_over = token.expires_at is not None and token.expires_at <= now()
    state: State = "revoked" if token.revoked_at else "expired" if is_over else "valid"
    kept = ("id", "name", "scope", "created_at", "expires_at", "revoked_at", "last_used_at")
    return Token(**{name: getattr(token, name) for name in kept}, state=state)

"""What the terminal says of the roles in its own token, which only the gateway verifies."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from placet.cli.session import Settings
from placet.config import find_config
from placet.errors import NotAuthorised

AGENT = "agent"
_PARTS = 3


def roles_in(token: str) -> frozenset[str] | None:
    """The roles named in a token; nothing may be decided by them.

    Returns:
        The roles, or None if the token names none that can be read, as one of another issuer's form.
    """
    roles = claims_in(token).get("roles")
    if not isinstance(roles, list) or not roles or not all(isinstance(role, str) for role in roles):
        return None
    return frozenset(roles)


def claims_in(token: str) -> Mapping[str, Any]:
    """What a token claims, which nobody has verified; empty if it cannot be read."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return {}
    try:
        payload = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    # A deep nesting of brackets ends in the last.
    except (ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def own_roles(context: typer.Context) -> frozenset[str] | None:
    """The roles in the token that a command sends; see `roles_in`.

    Raises:
        NotConfigured: there is no token, or no address to send it to.
        SettingRefused: one of them cannot be used.
    """
    settings = context.find_object(Settings) or Settings()
    return roles_in(find_config(settings.url, settings.token).token)


@contextmanager
def as_person(context: typer.Context) -> Iterator[None]:
    """Within this context a refusal to read a hold says of an agent's token what its decision would be told.

    A decision reads the hold first, and that refusal names the roles for reading, which do not help an agent.

    Raises:
        NotAuthorised: the gateway refused it.
    """
    try:
        yield
    except NotAuthorised as refused:
        if refused.code != "not_authorised" or AGENT not in (own_roles(context) or ()):
            raise
        detail = "an agent's token cannot decide"
        raise NotAuthorised(refused.code, refused.status, detail, refused.fields) from refused

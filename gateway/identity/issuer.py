"""The local issuer: tokens for an installation that has no identity provider of its own."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import jwt

from gateway.identity.keys import load_or_create
from schemas.actor import Actor
from schemas.ids import CHOSEN_ID_RULE, TENANT_WIDE, is_chosen_id
from schemas.token import ALGORITHM, AUDIENCE, ISSUER, TokenRefused, check_actor

DAY_S = 24 * 60 * 60
TTL_MAX_S = 366 * DAY_S


def issue(
    keys_dir: Path | str,
    subject: str,
    roles: Sequence[str],
    tenant: str,
    project: str,
    agent: str | None = None,
    ttl_s: int = 30 * DAY_S,
    user: str | None = None,
    workspace: str | None = None,
) -> str:
    """Issue a bearer token, signed with the installation's issuer key (which is created if there is none).

    Args:
        keys_dir: `<data-dir>/keys`.
        subject: the subject of the token; distinct people have distinct subjects.
        roles: built-in (agent, reviewer, operator, analyst, admin) or defined by the installation.
        tenant: the tenant that it is valid for.
        project: the project that it is valid for; `*` for the whole tenant.
        agent: the one agent that it may act for; needed with the role agent.
        ttl_s: seconds until it expires.
        user: the only user for whom executions may be started; `*` for any.
        workspace: the same for the workspace.

    Raises:
        TokenRefused: no token may have this identity.
        ValueError: the lifetime is not positive, or over a year.
    """
    if not 0 < ttl_s <= TTL_MAX_S:
        raise ValueError(f"a token's lifetime must be from 1 to {TTL_MAX_S} seconds")
    actor = Actor(subject=subject, tenant=tenant, project=project, roles=tuple(roles), agent=agent)
    check_actor(actor)
    _check_agents_roles(actor)
    _check_names(actor)
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "iat": now,
        "exp": now + ttl_s,
        "jti": secrets.token_urlsafe(12),
        "tenant": tenant,
        "project": project,
        "roles": list(roles),
    }
    optional = {"agent": agent, "user": user, "workspace": workspace}
    claims.update({name: value for name, value in optional.items() if value is not None})
    key = load_or_create(Path(keys_dir)).issuer
    return jwt.encode(claims, key.private_key, algorithm=ALGORITHM, headers={"kid": key.kid})


def _check_names(actor: Actor) -> None:
    """Refuse a name that means another place in a URL. Tokens of an earlier version are still accepted."""
    project = None if actor.project == TENANT_WIDE else actor.project
    for what, name in (("tenant", actor.tenant), ("project", project), ("agent", actor.agent)):
        if name is not None and not is_chosen_id(name):
            raise TokenRefused(f"the {what} {CHOSEN_ID_RULE}")


def _check_agents_roles(actor: Actor) -> None:
    """Refuse an agent's token with other roles: they would have no effect, which the requester would not expect."""
    others = [role for role in actor.roles if role != "agent"]
    if actor.agent is not None and others:
        raise TokenRefused(
            f"a token of an agent has only the role agent, and {', '.join(others)} would have no effect in it: "
            "leave the other roles out, or issue a second token for them, with another subject and without an agent"
        )

"""Bearer tokens: how they are verified. Only EdDSA (RFC 8037) JWTs are accepted (RFC 8725).

The gateway verifies them at its APIs, and the decider on commands that a service produced to Kafka itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from schemas.actor import RESERVED_ROLE, Actor, subject_fault
from schemas.ids import LOG, TENANT_WIDE, is_client_id
from schemas.limits import NAME_MAX_CHARS

ISSUER = "placet"
AUDIENCE = "placet"
ALGORITHM = "EdDSA"
TYPE = "JWT"
REQUIRED = ("iss", "aud", "sub", "exp", "iat", "jti", "tenant", "project", "roles")

# In a claim `user` or `workspace`: any.
ANY = "*"
TOKEN_MAX_CHARS = 8 * 1024
ROLES_MAX = 32
CLOCK_SKEW_S = 60

# Header, payload and signature of a compact JWS.
PARTS = 3
# The errors that reading a foreign token can raise.
UNREADABLE = (jwt.PyJWTError, UnicodeError, RecursionError)

PublicKeys = Callable[[str], Ed25519PublicKey | None]


class TokenRefused(ValueError):
    """The token is refused; the message says why, and never quotes the token."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The contents of a verified token.

    `user` and `workspace` are the only scopes in which the subject can start executions: a name, `*` for any, or None
    if the token has no such claim. `expires_at_s` is in seconds since the epoch. `token_actor` is the actor exactly
    as in the token, if `actor` differs: by the roles of a published principal, or by the project that was requested
    with a token of the whole tenant. With such a token, `wide` is the actor for the whole tenant, and `asked` is the
    requested project, or empty.
    """

    actor: Actor
    expires_at_s: int
    token_id: str
    user: str | None = None
    workspace: str | None = None
    token_actor: Actor | None = None
    wide: Actor | None = None
    asked: str = ""

    @property
    def publisher(self) -> Actor:
        """The actor for requests about definitions: the whole tenant's if the token is for the whole tenant."""
        return self.wide or self.actor

    @property
    def definitions_project(self) -> str:
        """The project whose definitions are meant; `*`, the tenant's, for a tenant's token without a project."""
        return (self.asked or TENANT_WIDE) if self.wide else self.actor.project


def verify(token: str, public_keys: PublicKeys, now: float) -> Actor:
    """The actor that a token authenticates.

    Args:
        token: a compact JWS.
        public_keys: returns the issuer's key of a key id, None for an unknown one.
        now: seconds since the epoch.

    Raises:
        TokenRefused: wrong algorithm, key, signature, issuer or audience; missing or wrong claim; expired.
    """
    return read_claims(token, public_keys, now).actor


def read_claims(token: str, public_keys: PublicKeys, now: float) -> Claims:
    """The contents of a token; arguments and errors as in `verify`."""
    payload = _signed_payload(token, public_keys)
    refuse_bound(payload)
    expires_at_s = _moment(payload, "exp")
    if now >= expires_at_s:
        raise TokenRefused("the token has expired: get a new one")
    if _moment(payload, "iat") > now + CLOCK_SKEW_S:
        raise TokenRefused("the token was issued in the future: check the clocks")
    if "nbf" in payload and _moment(payload, "nbf") > now + CLOCK_SKEW_S:
        raise TokenRefused("the token is not valid yet")
    return Claims(
        _actor(payload),
        expires_at_s,
        _name(payload, "jti"),
        _scope(payload, "user"),
        _scope(payload, "workspace"),
    )


def refuse_bound(payload: Mapping[str, Any]) -> None:
    """Refuse a token that is bound to a key (RFC 7800): Placet does not check that the sender has that key.

    Raises:
        TokenRefused: it has the claim `cnf`, of DPoP (`jkt`), of mutual TLS (`x5t#S256`) or of anything else.
    """
    if "cnf" in payload:
        raise TokenRefused(
            "the token is bound to a key (cnf), which is not checked here: use one without DPoP and mutual TLS"
        )


def unreadable(error: Exception) -> TokenRefused:
    """The refusal of a token that could not be read or verified (`UNREADABLE`), with what its sender can do."""
    if not isinstance(error, jwt.DecodeError | UnicodeError | RecursionError):
        return TokenRefused(f"the token is refused: {error}")
    wrong = (
        "its signature does not fit" if isinstance(error, jwt.InvalidSignatureError) else "it cannot be read"
    )
    return TokenRefused(
        f"the token is refused: {wrong}. It was changed or cut, or another installation issued it: copy it whole, or "
        "get a new one"
    )


def unverified_issuer(token: str) -> str:
    """The issuer named in a token, to select the keys that verify it. The token is not verified yet.

    Raises:
        TokenRefused: it cannot be read.
    """
    _check_form(token)
    try:
        payload = jwt.decode(token, options={"verify_signature": False})
    except UNREADABLE as error:
        raise unreadable(error) from error
    issuer = payload.get("iss")
    return issuer if isinstance(issuer, str) else ""


def check_actor(actor: Actor) -> None:
    """Refuse an identity that no token can have; used when issuing and when reading.

    Raises:
        TokenRefused: a reserved name, no role, or an agent role without its agent.
    """
    if not is_client_id(actor.tenant):
        raise TokenRefused("the tenant must be 1 to 128 of A-Za-z0-9._:-")
    if actor.tenant == LOG:
        raise TokenRefused(f"the tenant {LOG} is reserved for Placet")
    if actor.project != TENANT_WIDE and not is_client_id(actor.project):
        raise TokenRefused("the project must be 1 to 128 of A-Za-z0-9._:-, or * for the whole tenant")
    if (fault := subject_fault(actor.subject)) is not None:
        raise TokenRefused(f"the subject {fault}")
    if RESERVED_ROLE in actor.roles:
        raise TokenRefused(f"the role {RESERVED_ROLE} is reserved for Placet")
    if not 1 <= len(actor.roles) <= ROLES_MAX or not all(map(is_client_id, actor.roles)):
        raise TokenRefused(f"roles must be 1 to {ROLES_MAX} names of A-Za-z0-9._:-")
    if actor.agent is not None and not is_client_id(actor.agent):
        raise TokenRefused("the agent must be 1 to 128 of A-Za-z0-9._:-")
    if actor.agent is not None and actor.project == TENANT_WIDE:
        raise TokenRefused("an agent's token is for one project, never for the whole tenant")
    if "agent" in actor.roles and actor.agent is None:
        raise TokenRefused("a token with the role agent must name its agent")


def _check_form(token: str) -> None:
    if len(token) > TOKEN_MAX_CHARS:
        raise TokenRefused("the token is too long")
    if token.count(".") != PARTS - 1:
        raise TokenRefused(
            "this is not a token: a token is three parts joined by dots (eyJ….eyJ….…), as `placet token issue` "
            "prints it"
        )


def _signed_payload(token: str, public_keys: PublicKeys) -> dict[str, Any]:
    _check_form(token)
    try:
        header = jwt.get_unverified_header(token)
        key = public_keys(str(header.get("kid", "")))
        if header.get("alg") != ALGORITHM or key is None:
            raise TokenRefused("the token is not signed by a known issuer with EdDSA")
        if header.get("typ", TYPE) != TYPE or "crit" in header:
            raise TokenRefused(f"the token does not have the type {TYPE}")
        payload: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            # Times are compared with the caller's clock, not with PyJWT's.
            options={
                "require": list(REQUIRED),
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "strict_aud": True,
            },
        )
    except UNREADABLE as error:
        raise unreadable(error) from error
    check_text(payload)
    return payload


def check_text(payload: Mapping[str, Any]) -> None:
    """Refuse claims with text that no header, log or page can carry: JSON can escape a lone surrogate.

    Raises:
        TokenRefused: a name or value, however deep, is not Unicode text.
    """
    try:
        json.dumps(payload, ensure_ascii=False).encode()
    except (UnicodeError, RecursionError) as error:
        raise TokenRefused("the token holds a text that is not Unicode, or is nested too deeply") from error


def _actor(payload: dict[str, Any]) -> Actor:
    roles = payload["roles"]
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise TokenRefused("roles must be a list of names")
    agent = payload.get("agent")
    if agent is not None and not isinstance(agent, str):
        raise TokenRefused("the agent must be a name")
    actor = Actor(
        subject=_name(payload, "sub"),
        tenant=_name(payload, "tenant"),
        project=_name(payload, "project"),
        roles=tuple(dict.fromkeys(roles)),
        agent=agent,
        user=_user(payload),
    )
    check_actor(actor)
    return actor


def _user(payload: dict[str, Any]) -> str:
    named = _scope(payload, "user")
    return "" if named in (None, ANY) else named


def _moment(payload: dict[str, Any], name: str) -> int:
    value = payload[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TokenRefused(f"{name} must be whole seconds since the epoch")
    return value


def _name(payload: dict[str, Any], name: str) -> str:
    value = payload[name]
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_MAX_CHARS:
        raise TokenRefused(f"{name} must be 1 to {NAME_MAX_CHARS} characters")
    return value


def _scope(payload: dict[str, Any], name: str) -> str | None:
    return _name(payload, name) if payload.get(name) is not None else None

"""Tokens of an OpenID Connect provider: signed with its keys, and accepted as a person's.

A token is read in this order:
1. its header: a JWT, a permitted algorithm, no critical extensions, and a key id;
2. its signature, by the issuer's key with that id and for that algorithm; its issuer and audience;
3. its times: issued, not yet expired, not issued for longer than a day;
4. its identity: subject, tenant, project and roles, as the settings map them.

Agents have tokens of the local issuer: a token that names an agent is refused here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from gateway.identity.oidc_settings import NEVER_MAPPED, OidcSettings
from schemas.actor import Actor
from schemas.ids import TENANT_WIDE, is_client_id
from schemas.limits import NAME_MAX_CHARS
from schemas.token import (
    CLOCK_SKEW_S,
    TOKEN_MAX_CHARS,
    UNREADABLE,
    Claims,
    TokenRefused,
    check_actor,
    check_text,
    refuse_bound,
    unreadable,
)

if TYPE_CHECKING:
    # The module that fetches the keys is loaded only if a provider is configured.
    from gateway.identity.jwks import IssuerKeys

# OpenID Connect defines no type for its tokens, RFC 9068 defines one for access tokens.
TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
REQUIRED = ("iss", "aud", "exp", "iat", "sub")
LIFETIME_MAX_S = 24 * 60 * 60
GROUPS_MAX = 512


@dataclass(slots=True)
class OidcIssuer:
    """One trusted identity provider."""

    settings: OidcSettings
    keys: IssuerKeys

    async def claims(self, token: str, now: float) -> Claims:
        """Return the claims of a token; its issuer's keys may have to be fetched first.

        Args:
            token: a compact JWS.
            now: seconds since the epoch.

        Raises:
            TokenRefused: wrong type, algorithm, key, signature, issuer, audience or claim; expired.
            IssuerUnavailable: the keys cannot be fetched.
        """
        kid, algorithm = self._header(token)
        key = await self.keys.key(kid, algorithm)
        if key is None:
            raise TokenRefused(
                f"the token is not signed with a key of {self.settings.issuer} for {algorithm}"
            )
        try:
            payload: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.settings.audience,
                issuer=self.settings.issuer,
                # The times are compared with the caller's clock, not with PyJWT's.
                options={
                    "require": list(REQUIRED),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except UNREADABLE as error:
            raise unreadable(error) from error
        check_text(payload)
        refuse_bound(payload)
        expires_at_s = _check_moments(payload, now)
        return Claims(self._actor(payload), expires_at_s, _token_id(payload, token))

    async def close(self) -> None:
        """Close the connections."""
        await self.keys.close()

    def _header(self, token: str) -> tuple[str, str]:
        if len(token) > TOKEN_MAX_CHARS:
            raise TokenRefused("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except UNREADABLE as error:
            raise unreadable(error) from error
        if str(header.get("typ", "")).lower() not in TYPES or "crit" in header:
            raise TokenRefused("the token is of a type that is not accepted here")
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self.settings.algorithms:
            raise TokenRefused(f"the token must be signed with {', '.join(self.settings.algorithms)}")
        if not isinstance(kid, str) or not 1 <= len(kid) <= NAME_MAX_CHARS:
            raise TokenRefused("the token does not name the key that it is signed with")
        return kid, algorithm

    def _actor(self, payload: Mapping[str, Any]) -> Actor:
        settings = self.settings
        if payload.get("agent") is not None:
            raise TokenRefused("an agent's token is issued by Placet itself, not by an identity provider")
        subject = _text(payload, settings.subject_claim)
        groups = self._groups(payload)
        actor = Actor(
            subject=f"{settings.subject_prefix}{subject}",
            tenant=settings.tenant or _text(payload, settings.tenant_claim),
            project=self._project(payload, groups),
            roles=self._roles(groups),
        )
        check_actor(actor)
        return actor

    def _project(self, payload: Mapping[str, Any], groups: Sequence[str]) -> str:
        settings = self.settings
        if set(groups).intersection(settings.tenant_wide):
            return TENANT_WIDE
        project = settings.project or _text(payload, settings.project_claim)
        if project == TENANT_WIDE and not settings.project:
            raise TokenRefused(
                f"the claim {settings.project_claim} cannot be {TENANT_WIDE}: name a group in oidc_tenant_wide"
            )
        return project

    def _groups(self, payload: Mapping[str, Any]) -> list[str]:
        groups = _found(payload, self.settings.roles_claim)
        if isinstance(groups, str) and self.settings.roles_map is not None:
            # A single text, such as Google's `hd`, is one name, and counts only if the map contains it.
            groups = [groups]
        if not isinstance(groups, list) or len(groups) > GROUPS_MAX:
            raise TokenRefused(
                f"the claim {self.settings.roles_claim} must be a list of names, at most {GROUPS_MAX}"
            )
        if not all(isinstance(group, str) for group in groups):
            raise TokenRefused(f"the claim {self.settings.roles_claim} must be a list of names")
        return groups

    def _roles(self, groups: Sequence[str]) -> tuple[str, ...]:
        roles = tuple(dict.fromkeys(_roles_of(groups, self.settings.roles_map)))
        if not roles:
            raise TokenRefused(f"the claim {self.settings.roles_claim} gives no role of this installation")
        return roles


def _roles_of(groups: Iterable[str], roles_map: Mapping[str, str] | None) -> Iterable[str]:
    """Yield the roles that groups stand for. Only a map can give the role admin; agent and system are never given."""
    for group in groups:
        if roles_map is not None:
            if group in roles_map:
                yield roles_map[group]
        elif group in NEVER_MAPPED:
            raise TokenRefused(f"an identity provider cannot give the role {group}")
        elif group != "admin" and is_client_id(group):
            yield group


def _check_moments(payload: Mapping[str, Any], now: float) -> int:
    """Return when the token expires, in seconds since the epoch."""
    issued_at_s, expires_at_s = _moment(payload, "iat"), _moment(payload, "exp")
    if now >= expires_at_s:
        raise TokenRefused("the token has expired: get a new one")
    if issued_at_s > now + CLOCK_SKEW_S:
        raise TokenRefused("the token was issued in the future: check the clocks")
    if "nbf" in payload and _moment(payload, "nbf") > now + CLOCK_SKEW_S:
        raise TokenRefused("the token is not valid yet")
    if not 0 < expires_at_s - issued_at_s <= LIFETIME_MAX_S:
        raise TokenRefused(f"the token must live for at most {LIFETIME_MAX_S} seconds")
    return expires_at_s


def _moment(payload: Mapping[str, Any], name: str) -> int:
    value = payload[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TokenRefused(f"{name} must be whole seconds since the epoch")
    return value


def _token_id(payload: Mapping[str, Any], token: str) -> str:
    given = payload.get("jti")
    if isinstance(given, str) and 1 <= len(given) <= NAME_MAX_CHARS:
        return given
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = _found(payload, name)
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_MAX_CHARS:
        raise TokenRefused(f"the claim {name} must be 1 to {NAME_MAX_CHARS} characters")
    return value


def _found(payload: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, which may contain dots, else by the path that the dots form."""
    if name in payload:
        return payload[name]
    value: Any = payload
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value

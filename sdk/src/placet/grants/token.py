"""Verifies one grant with given keys.

The checks, in this order:
1. its form: a compact JWS of the type `placet-grant+jwt`, signed with EdDSA under a known key;
2. its signature, issuer, and audience: the one tool that verifies it;
3. its claims: all present, of the right type, and about that tool;
4. its time;
5. its digest, computed again from the arguments that would run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any

import jwt

from placet.canonical import MalformedJson, call_digest, parse_strict
from placet.grants.keys import Keys
from placet.grants.refusals import GrantRefused

TYPE = "placet-grant+jwt"
ALGORITHM = "EdDSA"
ISSUER = "placet"
AUDIENCE_PREFIX = "tool:"
TOKEN_MAX_CHARS = 8 * 1024
LEEWAY_S = 5.0
CLOCK_SKEW_S = 60.0
TEXTS = ("jti", "sub", "tenant", "project", "execution_id", "call_id", "digest", "tool", "tool_version")
NUMBERS = ("iat", "exp", "revision")


@dataclass(frozen=True)
class Grant:
    """A verified release: exactly these arguments may run, once, by this tool, for this agent.

    Attributes:
        arguments: the arguments that may run, as parsed from the request.
        expires_at_s: seconds since the epoch.
    """

    grant_id: str
    tenant: str
    project: str
    execution_id: str
    call_id: str
    revision: int
    agent: str
    tool: str
    tool_version: str
    digest: str
    released_at_s: int
    expires_at_s: int
    arguments: Mapping[str, Any] = field(repr=False)


def verify(
    token: str,
    arguments: Mapping[str, Any] | bytes | str,
    *,
    tool: str,
    keys: Keys,
    leeway_s: float = LEEWAY_S,
    now_s: float | None = None,
) -> Grant:
    """Verify a grant offline. It says what may run; only the gateway ensures that it runs once.

    Args:
        token: the grant's token.
        arguments: the arguments that would run: a JSON object, best as the bytes that were sent.
        tool: the name of the tool that would run; a grant for another tool is refused.
        keys: the keys, such as those of `read_jwks`.
        leeway_s: how long after its expiry a grant is still accepted.
        now_s: seconds since the epoch; by default the clock's.

    Raises:
        GrantRefused: the grant is not valid for this call.
    """
    kid = key_id_of(token)
    key = keys.get(kid)
    if key is None:
        raise GrantRefused("unknown_key", "the grant is signed with a key that is not known")
    claims = _claims(token, key, tool)
    _check_time(claims, time.time() if now_s is None else now_s, leeway_s)
    given = _arguments(arguments)
    _check_digest(claims, given)
    return Grant(
        grant_id=claims["jti"],
        agent=claims["sub"],
        released_at_s=claims["iat"],
        expires_at_s=claims["exp"],
        arguments=given,
        **{name: claims[name] for name in (*TEXTS[2:], "revision")},
    )


def key_id_of(token: str) -> str:
    """The id of the key that a grant names as its signer; the grant is not verified yet.

    Raises:
        GrantRefused: the token does not have the form of a grant.
    """
    if not isinstance(token, str) or not 1 <= len(token) <= TOKEN_MAX_CHARS:
        raise GrantRefused("malformed", f"a grant must have 1 to {TOKEN_MAX_CHARS} characters")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, UnicodeError) as error:
        raise GrantRefused("malformed", "the grant is not a compact JWS") from error
    if header.get("typ") != TYPE:
        raise GrantRefused("wrong_type", f"a grant must have the type {TYPE}: a bearer token is not a grant")
    if header.get("alg") != ALGORITHM or "crit" in header:
        raise GrantRefused(
            "malformed", f"a grant must be signed with {ALGORITHM}, without critical extensions"
        )
    kid = header.get("kid")
    if not isinstance(kid, str) or not kid:
        raise GrantRefused("malformed", "the grant does not name its key")
    return kid


def _claims(token: str, key: Any, tool: str) -> dict[str, Any]:
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            audience=f"{AUDIENCE_PREFIX}{tool}",
            issuer=ISSUER,
            # Times are compared below, with the caller's clock.
            options={
                "require": ["iss", "aud", *TEXTS, *NUMBERS],
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "strict_aud": True,
            },
        )
    except jwt.InvalidSignatureError as error:
        raise GrantRefused("bad_signature", "the grant's signature is not valid") from error
    except jwt.InvalidAudienceError as error:
        raise GrantRefused("wrong_tool", f"the grant is not for the tool {tool}") from error
    except (jwt.PyJWTError, UnicodeError) as error:
        raise GrantRefused("malformed", f"the grant's claims are not those of a grant: {error}") from error
    texts = all(isinstance(claims[name], str) for name in TEXTS)
    numbers = all(type(claims[name]) is int for name in NUMBERS)
    if not texts or not numbers:
        raise GrantRefused("malformed", "a claim of the grant has the wrong type")
    if claims["tool"] != tool:
        raise GrantRefused("wrong_tool", f"the grant is not for the tool {tool}")
    return claims


def _check_time(claims: Mapping[str, Any], now_s: float, leeway_s: float) -> None:
    if now_s >= claims["exp"] + leeway_s:
        raise GrantRefused("expired", "the grant has expired: propose the call again")
    if claims["iat"] > now_s + CLOCK_SKEW_S:
        raise GrantRefused("not_yet_valid", "the grant was released in the future: check the clocks")


def _arguments(given: Mapping[str, Any] | bytes | str) -> Mapping[str, Any]:
    try:
        text = given.decode() if isinstance(given, bytes) else given
        value = parse_strict(text) if isinstance(text, str) else text
    except UnicodeDecodeError as error:
        raise GrantRefused("malformed_arguments", "the arguments are not UTF-8") from error
    except MalformedJson as error:
        raise GrantRefused("malformed_arguments", f"the arguments are {error}") from error
    if not isinstance(value, Mapping):
        raise GrantRefused("malformed_arguments", "the arguments are not a JSON object")
    return dict(value)


def _check_digest(claims: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    try:
        digest = call_digest(
            claims["tenant"], claims["sub"], claims["tool"], claims["tool_version"], arguments
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise GrantRefused("malformed_arguments", f"the arguments have no canonical form: {error}") from error
    if not compare_digest(digest.encode(), claims["digest"].encode()):
        raise GrantRefused("digest_mismatch", "the arguments are not those that were released")

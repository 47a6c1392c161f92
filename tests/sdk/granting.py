"""Grants as a gateway signs them, with the server's own words, for tests of the client's verifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.canonical import call_digest, canonical
from schemas.grant import GrantClaims, GrantKey, jwks

NOW_S = 1_800_000_000
ARGUMENTS = {"amount": 98.7, "recipient": "GB29"}
KEY = GrantKey("k1", Ed25519PrivateKey.generate())
OTHER = GrantKey("k2", Ed25519PrivateKey.generate())


def key_set(*keys: GrantKey) -> dict[str, Any]:
    """What the gateway publishes of some keys."""
    return jwks({key.kid: key.private_key.public_key() for key in keys})


def claims_of(arguments: Any = ARGUMENTS, **changed: Any) -> GrantClaims:
    """The claims of a grant for these arguments."""
    claims = GrantClaims(
        grant_id="g1",
        tenant="acme",
        project="books",
        execution_id="e1",
        call_id="c1",
        revision=1,
        agent="billing",
        tool="send_money",
        tool_version="v1",
        digest="",
        released_at_s=NOW_S,
        expires_at_s=NOW_S + 900,
    )
    claims = replace(claims, **{name: value for name, value in changed.items() if name != "digest"})
    digest = call_digest(claims.tenant, claims.agent, claims.tool, claims.tool_version, canonical(arguments))
    return replace(claims, digest=changed.get("digest", digest))


def grant(key: GrantKey = KEY, **changed: Any) -> str:
    """A grant's token."""
    return key.sign(claims_of(**changed))


def forged(key: Any = KEY.private_key, algorithm: str = "EdDSA", **more: Any) -> str:
    """A token made by hand: `claims` over a good grant's, `drop` without one, `header` over a good header."""
    claims = {**claims_of().payload(), **more.get("claims", {})}
    claims.pop(more.get("drop", ""), None)
    header = {"kid": KEY.kid, "typ": "placet-grant+jwt", **more.get("header", {})}
    return jwt.encode(claims, key, algorithm, headers=header)

"""The signed grant: a release that a tool server verifies offline and consumes once, online.

A JWT (RFC 7519) signed with Ed25519. It and a bearer token can never be taken for each other: its type is
`placet-grant+jwt`, its audience is one tool, and its key signs nothing else. It names the call that may run. Who may
use it is decided by the gateway, where it is consumed under the caller's own token.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

TYPE = "placet-grant+jwt"
ISSUER = "placet"
ALGORITHM = "EdDSA"
AUDIENCE_PREFIX = "tool:"


@dataclass(frozen=True, slots=True)
class GrantClaims:
    """The claims of a grant. Times are whole seconds since the epoch; the rest is as in the call's resource."""

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

    def payload(self) -> dict[str, Any]:
        """The claims under their names in the token."""
        return {
            "iss": ISSUER,
            "aud": f"{AUDIENCE_PREFIX}{self.tool}",
            "sub": self.agent,
            "jti": self.grant_id,
            "iat": self.released_at_s,
            "exp": self.expires_at_s,
            "tenant": self.tenant,
            "project": self.project,
            "execution_id": self.execution_id,
            "call_id": self.call_id,
            "revision": self.revision,
            "digest": self.digest,
            "tool": self.tool,
            "tool_version": self.tool_version,
        }


@dataclass(frozen=True, slots=True)
class GrantKey:
    """The key that signs grants. The same claims always make the same token: Ed25519 is deterministic."""

    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)

    def sign(self, claims: GrantClaims) -> str:
        """The token of a grant, a compact JWS (RFC 7515)."""
        header = {"alg": ALGORITHM, "kid": self.kid, "typ": TYPE}
        signed = b"%b.%b" % (_part(header), _part(claims.payload()))
        return (signed + b"." + _base64url(self.private_key.sign(signed))).decode()


def jwks(keys: Mapping[str, Ed25519PublicKey]) -> dict[str, Any]:
    """Public keys as a JSON Web Key Set (RFC 7517, RFC 8037)."""
    return {"keys": [_jwk(kid, key) for kid, key in keys.items()]}


def _jwk(kid: str, key: Ed25519PublicKey) -> dict[str, str]:
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": _base64url(raw).decode(),
        "kid": kid,
        "use": "sig",
        "alg": ALGORITHM,
    }


def _part(value: Mapping[str, Any]) -> bytes:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")

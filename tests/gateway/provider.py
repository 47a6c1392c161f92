"""An OpenID Connect provider on loopback: discovery, keys that change, and whatever goes wrong with them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked, Scripted

AUDIENCE = "placet-console"
DISCOVERY = "/.well-known/openid-configuration"
JWKS = "/keys"
PRIVATE: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "PS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": Ed25519PrivateKey.generate(),
}
READERS: dict[str, Any] = {"R": RSAAlgorithm, "P": RSAAlgorithm, "E": ECAlgorithm}


def jwk_of(kid: str, private: Any, algorithm: str, **more: Any) -> dict[str, Any]:
    """A public key as it is published."""
    reader: Any = OKPAlgorithm if algorithm == "EdDSA" else READERS[algorithm[0]]
    found: dict[str, Any] = json.loads(reader.to_jwk(private.public_key()))
    found.pop("key_ops", None)
    return {**found, "kid": kid, "use": "sig", "alg": algorithm, **more}


def part(value: object) -> str:
    """A part of a token made by hand."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass
class Provider:
    """What it publishes, and how often it was asked; `answer` takes the place of the key set."""

    keys: list[dict[str, Any]] = field(
        default_factory=lambda: [jwk_of(name, key, name) for name, key in PRIVATE.items()]
    )
    issuer: str | None = None
    jwks_uri: str | None = None
    answer: Response | Callable[[], Awaitable[Response]] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    script: Scripted = field(init=False)

    def __post_init__(self) -> None:
        self.script = Scripted(on_http=self._http)

    @property
    def url(self) -> str:
        """Its issuer, as it is configured."""
        return self.script.url

    def asked(self, path: str = JWKS) -> int:
        """How often a path was asked for."""
        return sum(one.path == path for one in self.script.asked)

    def token(self, algorithm: str = "RS256", kid: str | None = None, key: Any = None, **more: Any) -> str:
        """A token: `claims` over good ones, `drop` without one, `header` over a good header."""
        claims = {**self.claims(), **more.get("claims", {})}
        claims.pop(more.get("drop", ""), None)
        header = {"kid": kid or algorithm, **more.get("header", {})}
        return jwt.encode(claims, key or PRIVATE[algorithm], algorithm, headers=header)

    def claims(self, lifetime_s: int = 300) -> dict[str, Any]:
        """Good claims."""
        now = int(time.time())
        return {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "anna",
            "iat": now - 1,
            "exp": now + lifetime_s,
            "tenant": "acme",
            "project": "books",
            "roles": ["reviewer"],
        }

    async def _http(self, asked: Asked) -> Response:
        if asked.path == DISCOVERY:
            found = {"issuer": self.issuer or self.url, "jwks_uri": self.jwks_uri or f"{self.url}{JWKS}"}
            return JSONResponse(found)
        if asked.path != JWKS:
            return JSONResponse({}, 404)
        if callable(self.answer) and not isinstance(self.answer, Response):
            return await self.answer()
        return self.answer or JSONResponse({"keys": self.keys}, headers=self.headers)

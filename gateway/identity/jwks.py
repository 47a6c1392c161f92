"""The keys of an identity provider: fetched when they are needed, cached for a while, never requested too often.

A key is found in this order:
1. keys that are fresh are used as they are;
2. if they are old, or the key is not among them, they are fetched: one fetch for all waiting requests, and a new one
   at most every 10 s, so that invented key ids cannot cause more requests to the provider;
3. if that fails, the last good keys are used for an hour; after that no token is accepted.

A key set counts even if none of its keys can be used: by publishing such a set a provider revokes its only key. An
answer that is not a key set does not count.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from gateway.identity.errors import IssuerUnavailable
from gateway.identity.oidc_settings import check_url, is_loopback
from host.errors import SettingsRefused
from host.outgoing_http import ProxyUnusable, http_client
from schemas.canonical import MalformedJson, parse_strict

logger = logging.getLogger(__name__)

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
KeysById = Mapping[str, Mapping[str, PublicKey]]

DISCOVERY = "/.well-known/openid-configuration"
ANSWER_MAX_BYTES = 256 * 1024
KEYS_MAX = 100
RSA_MIN_BITS = 2_048
FETCH_TIMEOUT_S = 5.0
REFETCH_EVERY_S = 10.0
FRESH_S, FRESH_MIN_S, FRESH_MAX_S = 300.0, 60.0, 900.0
KEPT_S = 3_600.0
# The algorithms that each kind of key can sign with; the key's own `alg` leaves one of them.
FITTING: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("RSA", ""): ("RS256", "PS256"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
READERS: Mapping[str, Callable[[Any], Any]] = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}
_MAX_AGE = re.compile(r"(?:^|[ ,])max-age=([0-9]{1,9})(?:$|[ ,])")


ISSUER_SHOWN_CHARS = 200


class NoKeySet(ValueError):
    """The identity provider's answer cannot be used."""


@dataclass(slots=True)
class IssuerKeys:
    """The keys of one issuer, by key id and algorithm.

    Attributes:
        issuer: its `iss`; its discovery document must contain the same.
        jwks_url: the address of the keys; empty: it is in the discovery document.
        algorithms: keys for other algorithms are ignored.
        clock: monotonic seconds.
    """

    issuer: str
    jwks_url: str
    algorithms: Sequence[str]
    clock: Callable[[], float] = time.monotonic
    _keys: KeysById = field(default_factory=dict, init=False)
    _good_at_s: float | None = field(default=None, init=False)
    _fresh_s: float = field(default=FRESH_S, init=False)
    _tried_at_s: float | None = field(default=None, init=False)
    _has_failed: bool = field(default=False, init=False)
    _fetching: asyncio.Task[None] | None = field(default=None, init=False)
    _opened: httpx.AsyncClient | None = field(default=None, init=False)

    async def key(self, kid: str, algorithm: str) -> PublicKey | None:
        """Return the key with an id that signs with an algorithm; None if the issuer has none.

        Raises:
            IssuerUnavailable: the keys cannot be fetched, and the cached ones are too old.
        """
        if kid not in self._keys or not self._is_younger(self._fresh_s):
            fetching = self._refresh()
            # If the provider has just failed, a request whose key is cached and not too old does not wait for it.
            may_go_on = self._has_failed and kid in self._keys and self._is_younger(KEPT_S)
            if fetching is not None and not may_go_on:
                # A request that stops waiting cancels nothing: the others wait for the same fetch.
                await asyncio.shield(fetching)
        if not self._is_younger(KEPT_S) or (self._has_failed and kid not in self._keys):
            raise IssuerUnavailable("the identity provider's keys cannot be fetched now: try again")
        return self._keys.get(kid, {}).get(algorithm)

    @property
    def is_empty(self) -> bool:
        """True if the provider's last key set has no usable key, so that none of its tokens is accepted."""
        return self._good_at_s is not None and not self._keys

    def fault(self) -> str | None:
        """Return a fault of the keys, for the operator; None if there is none."""
        return f"{self._none_usable()}: none of its tokens is accepted" if self.is_empty else None

    def _none_usable(self) -> str:
        return f"the key set of {self.issuer} has no key that can be used"

    async def close(self) -> None:
        """Close the connections."""
        if self._fetching is not None:
            self._fetching.cancel()
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    def _is_younger(self, seconds: float) -> bool:
        return self._good_at_s is not None and self.clock() - self._good_at_s < seconds

    def _refresh(self) -> asyncio.Task[None] | None:
        """Return the fetch under way, started now if permitted; None if it is too early for another."""
        if self._fetching is None:
            now = self.clock()
            if self._tried_at_s is not None and now - self._tried_at_s < REFETCH_EVERY_S:
                return None
            self._tried_at_s = now
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                document, fresh_s = await self._get(self.jwks_url or await self._discovered())
            keys = read_keys(document, self.algorithms)
            if not keys and not self.is_empty:
                logger.error("%s: none of its tokens is accepted from now on", self._none_usable())
            self._keys = keys
            self._good_at_s, self._fresh_s, self._has_failed = self.clock(), fresh_s, False
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            NoKeySet,
            SettingsRefused,
            ProxyUnusable,
        ) as error:
            self._has_failed = True
            logger.warning(
                "the keys of %s were not fetched: %s", self.issuer, str(error) or type(error).__name__
            )
        finally:
            self._fetching = None

    async def _discovered(self) -> str:
        document, _ = await self._get(self.issuer.rstrip("/") + DISCOVERY)
        if document.get("issuer") != self.issuer:
            named = str(document.get("issuer"))[:ISSUER_SHOWN_CHARS]
            raise NoKeySet(
                f"its discovery document names the issuer {named!r}, oidc_issuer is {self.issuer!r}: they must be "
                "identical, including a trailing slash"
            )
        url = document.get("jwks_uri")
        if not isinstance(url, str):
            raise NoKeySet("its discovery document has no jwks_uri")
        check_url(url, "the discovered jwks_uri", is_loopback(self.issuer) and is_loopback(url))
        return url

    async def _get(self, url: str) -> tuple[Mapping[str, Any], float]:
        """Return a JSON object, and for how many seconds it is fresh. No redirect is followed."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client().stream("GET", url, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                raise NoKeySet(f"{url} answered {response.status_code}")
            body = b""
            async for part in response.aiter_raw():
                body += part
                if len(body) > ANSWER_MAX_BYTES:
                    raise NoKeySet(f"{url} answered with over {ANSWER_MAX_BYTES} bytes")
        return _object(body, url), _fresh_s(response.headers.get("cache-control", ""))

    def _client(self) -> httpx.AsyncClient:
        if self._opened is None:
            # A provider on this machine is not reached through the machine's proxy.
            self._opened = http_client(follow_redirects=False, trust_env=not is_loopback(self.issuer))
        return self._opened


def read_keys(document: Mapping[str, Any], algorithms: Sequence[str]) -> dict[str, dict[str, PublicKey]]:
    """Return the public keys of a JSON Web Key Set (RFC 7517), by key id and by the algorithms each can sign with.

    Keys without an id, for encryption, of other kinds, private, secret or too weak are ignored; all of them may be.

    Raises:
        NoKeySet: it is not a key set, or has too many keys.
    """
    listed = document.get("keys")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise NoKeySet("its answer is not a key set, whose `keys` is a list of objects")
    if len(listed) > KEYS_MAX:
        raise NoKeySet(f"its key set may have at most {KEYS_MAX} keys")
    found: dict[str, dict[str, PublicKey]] = {}
    for entry in listed:
        if not isinstance(entry.get("kid"), str):
            continue
        fitting = [name for name in _fitting(entry) if name in algorithms]
        key = _public_key(entry) if fitting else None
        if key is not None:
            for name in fitting:
                found.setdefault(entry["kid"], {}).setdefault(name, key)
    return found


def _fitting(entry: Mapping[str, Any]) -> tuple[str, ...]:
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return ()
    curve = "" if entry.get("kty") == "RSA" else str(entry.get("crv"))
    names = FITTING.get((str(entry.get("kty")), curve), ())
    return names if "alg" not in entry else tuple(name for name in names if name == entry["alg"])


def _public_key(entry: dict[str, Any]) -> PublicKey | None:
    if "d" in entry:
        return None  # a private key that was published by mistake proves nothing any more
    try:
        key = READERS[entry["kty"]](entry)
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        logger.warning("a key of an identity provider cannot be read: %s", type(error).__name__)
        return None
    if isinstance(key, RSAPublicKey):
        return key if key.key_size >= RSA_MIN_BITS else None
    return key if isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey) else None


def _object(body: bytes, url: str) -> Mapping[str, Any]:
    try:
        value = parse_strict(body)
    except MalformedJson as error:
        raise NoKeySet(f"{url} did not answer with JSON") from error
    if not isinstance(value, dict):
        raise NoKeySet(f"{url} did not answer with a JSON object")
    return value


def _fresh_s(cache_control: str) -> float:
    found = _MAX_AGE.search(cache_control.lower())
    seconds = FRESH_S if found is None else float(found[1])
    return min(max(seconds, FRESH_MIN_S), FRESH_MAX_S)

"""The public keys of grants: as they stand in a JSON Web Key Set, or as a gateway publishes them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from placet.config import NotConfigured
from placet.grants.refusals import GrantKeysUnavailable
from placet.transport.rest import http_client

logger = logging.getLogger(__name__)

Keys = Mapping[str, Ed25519PublicKey]
JWKS_MAX_BYTES = 256 * 1024
KEYS_MAX = 100
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def read_jwks(document: Mapping[str, Any] | bytes | str) -> dict[str, Ed25519PublicKey]:
    """The Ed25519 keys of a JSON Web Key Set, by key id; keys of other kinds are passed over.

    Args:
        document: the set, parsed or as text, such as a file that was kept for use without a network.

    Raises:
        ValueError: it is no key set, or has no such key.
    """
    value = document if isinstance(document, Mapping) else json.loads(document)
    listed = value.get("keys") if isinstance(value, Mapping) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise ValueError(f"a JSON Web Key Set has `keys`, at most {KEYS_MAX}")
    found = {entry["kid"]: _public_key(entry["x"]) for entry in listed if _signs_grants(entry)}
    if not found:
        raise ValueError("the JSON Web Key Set has no Ed25519 key to verify with")
    return found


def _signs_grants(entry: Any) -> bool:
    return (
        isinstance(entry, Mapping)
        and (entry.get("kty"), entry.get("crv")) == ("OKP", "Ed25519")
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", "EdDSA") == "EdDSA"
        and isinstance(entry.get("kid"), str)
        and isinstance(entry.get("x"), str)
    )


def _public_key(x: str) -> Ed25519PublicKey:
    try:
        raw = base64.b64decode(x + "=" * (-len(x) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("a key of the set is no base64url") from error
    return Ed25519PublicKey.from_public_bytes(raw)


class RemoteKeys:
    """The keys that a gateway publishes, kept, and fetched again when they are old or a key is unknown.

    However many ask, one fetch is under way, and a new one begins at most every `refetch_every_s`: made-up key
    ids cannot have the gateway asked more often. When it is away, the last good keys serve for `keep_s`.

    Args:
        url: of `/.well-known/jwks.json`; https, unless the host is this machine or `allow_http` is given.
        client: what to fetch with; by default one of its own, which `close` closes.
        timeout_s: how long a fetch may take as a whole.
        refetch_every_s: the least time between two fetches.
        fresh_s: how long keys are used without a look.
        keep_s: how long keys are used when no look succeeds.
        allow_http: for a network that is itself protected.
        clock: a monotonic clock in seconds.

    Raises:
        ValueError: the address is not https.
    """

    def __init__(
        self,
        url: str,
        *,
        client: httpx.AsyncClient | None = None,
        timeout_s: float = 5.0,
        refetch_every_s: float = 10.0,
        fresh_s: float = 300.0,
        keep_s: float = 3600.0,
        allow_http: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        split = urlsplit(url)
        if split.scheme != "https" and not (
            split.scheme == "http" and (allow_http or split.hostname in LOOPBACK)
        ):
            raise ValueError(
                f"{url}: keys are fetched by https only, or who can answer in between signs grants"
            )
        self.url = url
        self._client = client
        self._owns_client = client is None
        self._timeout_s = timeout_s
        self._refetch_every_s = refetch_every_s
        self._fresh_s = fresh_s
        self._keep_s = keep_s
        self._clock = clock
        self._keys: Keys = {}
        self._good_at_s: float | None = None
        self._tried_at_s: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def key_set(self, kid: str) -> Keys:
        """The keys, looked at again where this key is not among them.

        Raises:
            GrantKeysUnavailable: there are none, or they are too old.
        """
        if kid not in self._keys or not self._is_younger(self._fresh_s):
            await self._refresh()
        if not self._is_younger(self._keep_s):
            raise GrantKeysUnavailable("the keys of grants cannot be fetched: try again")
        return self._keys

    async def close(self) -> None:
        """Close the connections that are its own."""
        if self._owns_client and self._client is not None:
            await self._client.aclose()
            self._client = None

    def _is_younger(self, seconds: float) -> bool:
        return self._good_at_s is not None and self._clock() - self._good_at_s < seconds

    async def _refresh(self) -> None:
        if self._fetching is None:
            now = self._clock()
            if self._tried_at_s is not None and now - self._tried_at_s < self._refetch_every_s:
                return
            self._tried_at_s = now
            self._fetching = asyncio.ensure_future(self._fetch())
        # Whoever gives up waiting ends nothing: the others wait for the same fetch.
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            self._keys = read_jwks(await asyncio.wait_for(self._download(), self._timeout_s))
            self._good_at_s = self._clock()
        except (httpx.HTTPError, asyncio.TimeoutError, NotConfigured, ValueError, RecursionError) as error:
            # The keys that are at hand serve on until they are too old; `key_set` says so then.
            logger.warning("the keys of grants at %s were not fetched: %s", self.url, error or type(error))
        finally:
            self._fetching = None

    async def _download(self) -> bytes:
        if self._client is None:
            self._client = http_client(self.url)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        async with self._client.stream("GET", self.url, headers=headers, follow_redirects=False) as response:
            if response.status_code != httpx.codes.OK:
                raise ValueError(f"the keys were answered with {response.status_code}")
            body = b""
            async for part in response.aiter_raw():
                body += part
                if len(body) > JWKS_MAX_BYTES:
                    raise ValueError(f"the keys are over {JWKS_MAX_BYTES} bytes")
            return body

"""The public keys of grants: from a JSON Web Key Set, or fetched from a gateway."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from placet.clock import now
from placet.config import NotConfigured
from placet.grants.refusals import GrantKeysUnavailable
from placet.transport.rest import http_client

logger = logging.getLogger(__name__)

Keys = Mapping[str, Ed25519PublicKey]
JWKS_MAX_BYTES = 256 * 1024
KEYS_MAX = 100
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def read_jwks(document: Mapping[str, Any] | bytes | str) -> dict[str, Ed25519PublicKey]:
    """The Ed25519 keys of a JSON Web Key Set, by key id; other kinds of keys are ignored.

    Args:
        document: the set, parsed or as text, such as a file that was kept for use without a network.

    Raises:
        ValueError: it is not a key set, or has no such key.
    """
    value = document if isinstance(document, Mapping) else json.loads(document)
    listed = value.get("keys") if isinstance(value, Mapping) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise ValueError(f"a JSON Web Key Set must have `keys`, at most {KEYS_MAX}")
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
        raise ValueError("a key of the set is not base64url") from error
    return Ed25519PublicKey.from_public_bytes(raw)


class RemoteKeys:
    """A cache of the keys that a gateway publishes; they are fetched again if they are old or a key is unknown.

    Only one fetch is in flight, however many callers wait, and a new one begins at most every `refetch_every_s`:
    made-up key ids cannot cause more requests. While the gateway is unreachable, the last good keys are used for
    `keep_s`.

    Args:
        url: the URL of `/.well-known/jwks.json`; https, unless the host is this machine or `allow_http` is given.
        client: the HTTP client; by default its own, which `close` closes.
        timeout_s: the maximal time of a whole fetch.
        refetch_every_s: the least time between two fetches.
        fresh_s: how long keys are used without a fetch.
        keep_s: how long keys are used if no fetch succeeds.
        allow_http: permits http, for a network that is itself protected.
        clock: in seconds, never set back.

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
        clock: Callable[[], float] = now,
    ) -> None:
        split = urlsplit(url)
        if split.scheme != "https" and not (
            split.scheme == "http" and (allow_http or split.hostname in LOOPBACK)
        ):
            raise ValueError(
                f"{url}: keys must be fetched over https: otherwise anybody in between could sign grants"
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
        """The keys, fetched again if this key is not among them or they are old.

        Raises:
            GrantKeysUnavailable: there are no keys, or they are too old.
        """
        if kid not in self._keys or not self._is_younger(self._fresh_s):
            await self._refresh()
        if not self._is_younger(self._keep_s):
            raise GrantKeysUnavailable("the keys of grants cannot be fetched: try again")
        return self._keys

    async def close(self) -> None:
        """Close its own HTTP client, if it made one."""
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
        # A cancelled caller must not cancel the fetch, for which other callers wait too.
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            self._keys = read_jwks(await asyncio.wait_for(self._download(), self._timeout_s))
            self._good_at_s = self._clock()
        except (httpx.HTTPError, asyncio.TimeoutError, NotConfigured, ValueError, RecursionError) as error:
            # The present keys are used until they are too old; then `key_set` raises.
            why = str(error) or type(error).__name__
            logger.warning("the keys of grants at %s were not fetched: %s", self.url, why)
        finally:
            self._fetching = None

    async def _download(self) -> bytes:
        if self._client is None:
            self._client = http_client(self.url)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        async with self._client.stream("GET", self.url, headers=headers, follow_redirects=False) as response:
            if response.status_code != httpx.codes.OK:
                raise ValueError(f"the request for the keys was answered with {response.status_code}")
            body = b""
            async for part in response.aiter_raw():
                body += part
                if len(body) > JWKS_MAX_BYTES:
                    raise ValueError(f"the keys are over {JWKS_MAX_BYTES} bytes")
            return body

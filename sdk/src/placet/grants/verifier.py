"""A tool's verifier: the tool's name, and the source of the keys of its grants."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from placet.grants.keys import Keys, RemoteKeys, read_jwks
from placet.grants.token import LEEWAY_S, Grant, key_id_of, verify


class GrantVerifier:
    """Verifies the grants of one tool.

    Args:
        tool: its name, as in proposals; grants for other tools are refused.
        jwks_url: the URL of the gateway's `/.well-known/jwks.json`.
        jwks_file: a key set that was kept for use without a network; it is read once, here.
        keys: the keys themselves, or `RemoteKeys` with settings of its own.
        leeway_s: how long after its expiry a grant is still accepted.
        clock: returns seconds since the epoch.

    Raises:
        ValueError: not exactly one source of keys is given, or it cannot be used.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        tool: str,
        *,
        jwks_url: str | None = None,
        jwks_file: Path | str | None = None,
        keys: Keys | RemoteKeys | None = None,
        leeway_s: float = LEEWAY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not tool:
            raise ValueError("a verifier is for one tool: name it")
        if sum(source is not None for source in (jwks_url, jwks_file, keys)) != 1:
            raise ValueError("give one of jwks_url, jwks_file and keys")
        self.tool = tool
        self._leeway_s = leeway_s
        self._clock = clock
        self._keys: Keys | RemoteKeys
        if jwks_url is not None:
            self._keys = RemoteKeys(jwks_url)
        elif jwks_file is not None:
            self._keys = read_jwks(Path(jwks_file).read_bytes())
        else:
            self._keys = keys or {}

    async def verify(self, token: str, arguments: Mapping[str, Any] | bytes | str) -> Grant:
        """Verify a grant; only the keys may have to be fetched. See `placet.grants.verify`.

        Raises:
            GrantRefused: the grant is not valid for this call.
            GrantKeysUnavailable: the keys cannot be fetched now.
        """
        kid = key_id_of(token)
        keys = await self._keys.key_set(kid) if isinstance(self._keys, RemoteKeys) else self._keys
        return verify(
            token, arguments, tool=self.tool, keys=keys, leeway_s=self._leeway_s, now_s=self._clock()
        )

    async def close(self) -> None:
        """Close the connections to the source of the keys."""
        if isinstance(self._keys, RemoteKeys):
            await self._keys.close()

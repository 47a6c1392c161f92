"""The installation's keys: created once, mode 600, with their public halves for processes that only verify."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from host.key_files import (
    DECIDER_KEY,
    DECIDERS,
    KeysUnreadable,
    SigningKey,
    key_id,
    load_copy,
    load_public,
    load_signing,
    locked,
    publish,
    write_private,
    write_public,
    write_signing,
)
from schemas.audit import AUDIT_KEY, AUDIT_KEYS

__all__ = [
    "CURSOR_KEY",
    "GATEWAYS",
    "GATEWAY_KEY",
    "GRANTS",
    "GRANTS_KEY",
    "ISSUERS",
    "ISSUER_KEY",
    "ROTATED",
    "WITHDRAWABLE",
    "KeyStays",
    "Keys",
    "KeysUnreadable",
    "PublishedKeyFile",
    "load_or_create",
    "load_public",
    "load_signing",
    "published",
    "rotate",
    "withdraw",
]

ISSUER_KEY = "issuer.pem"
GATEWAY_KEY = "gateway.pem"
GRANTS_KEY = "grants.pem"
CURSOR_KEY = "cursor.key"
ISSUERS = "issuers.json"
GATEWAYS = "gateways.json"
GRANTS = "grants.json"
CURSOR_KEY_BYTES = 32
LOOK_EVERY_S = 0.5
# The keys that can be rotated: the private key's file, and the file of all trusted public halves.
ROTATED = {
    "issuer": (ISSUER_KEY, ISSUERS),
    "gateway": (GATEWAY_KEY, GATEWAYS),
    "grants": (GRANTS_KEY, GRANTS),
    "audit": (AUDIT_KEY, AUDIT_KEYS),
    "decider": (DECIDER_KEY, DECIDERS),
}


# Audit heads can be proved only by the key that signed them.
WITHDRAWABLE = tuple(name for name in ROTATED if name != "audit")


class KeyStays(RuntimeError):
    """A public key that must not be withdrawn; the message says why."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a gateway: its command key, the local issuer's key, the cursors' key, the trusted issuers."""

    gateway: SigningKey
    issuer: SigningKey
    cursor: bytes = field(repr=False)
    issuers: Mapping[str, Ed25519PublicKey]


def load_or_create(keys_dir: Path) -> Keys:
    """Return the installation's keys, created at the first call. Safe to call from several processes at once.

    Raises:
        KeysUnreadable: one of their files is damaged.
    """
    with locked(keys_dir):
        issuer = load_signing(keys_dir / ISSUER_KEY)
        gateway = load_signing(keys_dir / GATEWAY_KEY)
        cursor = _cursor_key(keys_dir / CURSOR_KEY)
        issuers = publish(keys_dir / ISSUERS, issuer)
        publish(keys_dir / GATEWAYS, gateway)
        publish(keys_dir / GRANTS, load_signing(keys_dir / GRANTS_KEY))
    return Keys(gateway, issuer, cursor, issuers)


def rotate(keys_dir: Path, name: str) -> tuple[str, str]:
    """Rotate a key. The new public half is published first, and those of its predecessors stay.

    Args:
        keys_dir: `<data-dir>/keys`.
        name: one of `ROTATED`.

    Returns:
        The key ids before and now.

    Raises:
        KeysUnreadable: one of their files is damaged.
    """
    private, public = ROTATED[name]
    load_or_create(keys_dir)
    with locked(keys_dir):
        before = load_signing(keys_dir / private)
        fresh = Ed25519PrivateKey.generate()
        now = SigningKey(key_id(fresh.public_key()), fresh)
        publish(keys_dir / public, before)
        publish(keys_dir / public, now)
        write_signing(keys_dir / private, fresh)
    return before.kid, now.kid


def published(keys_dir: Path, name: str) -> tuple[str | None, list[str]]:
    """Return the ids of a key of `ROTATED`: of the one that signs (None: there is none yet), and of all trusted ones.

    Raises:
        KeysUnreadable: one of their files is damaged.
    """
    private, public = ROTATED[name]
    path = keys_dir / private
    return load_signing(path).kid if path.exists() else None, list(load_public(keys_dir / public))


def withdraw(keys_dir: Path, name: str, kid: str) -> None:
    """Remove a public key from its file: its signatures are no longer trusted.

    Args:
        keys_dir: `<data-dir>/keys`.
        name: one of `WITHDRAWABLE`.
        kid: the key's id.

    Raises:
        KeyStays: it is not published, or it is the one that signs.
        KeysUnreadable: one of their files is damaged.
    """
    path = keys_dir / ROTATED[name][1]
    with locked(keys_dir):
        signs, _ = published(keys_dir, name)
        known = load_public(path)
        if kid == signs:
            raise KeyStays(f"{kid} is the key {name} that signs now: run `placet keys rotate {name}` first")
        # A key that was removed by hand is still in the copy.
        if known.pop(kid, None) is None and kid not in load_copy(path):
            raise KeyStays(f"there is no key {kid} in {path}, which has {', '.join(known) or 'none'}")
        write_public(path, known, without=kid)


@dataclass(slots=True)
class PublishedKeyFile:
    """The public keys of a file of the installation, for the gateway, which checks a token at every connection.

    Each call checks the file for changes, so a withdrawn key is refused at once. `host.public_keys.PublicKeyFile`,
    which verifies every record of the log, checks its file once a second.

    Attributes:
        path: the file.
        clock: monotonic seconds.
    """

    path: Path
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, Ed25519PublicKey] = field(default_factory=dict)
    _read_at_ns: int = -1
    _version: int = -1
    _looked_at_s: float | None = None

    def get(self, kid: str) -> Ed25519PublicKey | None:
        """Return the key with an id; None for an unknown id.

        Raises:
            KeysUnreadable: the file is damaged.
        """
        if (changed_at_ns := self._changed_at_ns()) != self._read_at_ns:
            self._keys, self._read_at_ns = load_public(self.path), changed_at_ns
        return self._keys.get(kid)

    def version(self) -> int:
        """Return a number that changes with the file; the file is checked at most twice a second."""
        now = self.clock()
        if self._looked_at_s is None or now - self._looked_at_s >= LOOK_EVERY_S:
            self._version, self._looked_at_s = self._changed_at_ns(), now
        return self._version

    def _changed_at_ns(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return -1


def _cursor_key(path: Path) -> bytes:
    if not path.exists():
        write_private(path, secrets.token_bytes(CURSOR_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != CURSOR_KEY_BYTES:
        raise KeysUnreadable(
            f"{path} must hold {CURSOR_KEY_BYTES} bytes: restore it from a backup or another gateway's host. If "
            "there is no copy, stop every gateway and delete it: earlier cursors become invalid, and a repeat of an "
            "earlier write counts as a new one"
        )
    return key

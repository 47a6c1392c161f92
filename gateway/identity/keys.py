"""The installation's keys: made once, mode 600, and their public halves for those who only verify."""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

ISSUER_KEY = "issuer.pem"
GATEWAY_KEY = "gateway.pem"
GRANTS_KEY = "grants.pem"
CURSOR_KEY = "cursor.key"
ISSUERS = "issuers.json"
GATEWAYS = "gateways.json"
GRANTS = "grants.json"
CURSOR_KEY_BYTES = 32
# What can be made anew: the private key's file, and the file of all public halves that are believed.
ROTATED = {
    "issuer": (ISSUER_KEY, ISSUERS),
    "gateway": (GATEWAY_KEY, GATEWAYS),
    "grants": (GRANTS_KEY, GRANTS),
}


class KeysUnreadable(RuntimeError):
    """A key file is missing or damaged; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and the name under which others know its public half."""

    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class Keys:
    """What a gateway needs: its command key, the local issuer's key, the cursors' key, issuers believed."""

    gateway: SigningKey
    issuer: SigningKey
    cursor: bytes = field(repr=False)
    issuers: Mapping[str, Ed25519PublicKey]


def load_or_create(keys_dir: Path) -> Keys:
    """The installation's keys, made at the first call. Safe to call from several processes at once.

    Raises:
        KeysUnreadable: a file of them is damaged.
    """
    keys_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(keys_dir):
        issuer = load_signing(keys_dir / ISSUER_KEY)
        gateway = load_signing(keys_dir / GATEWAY_KEY)
        cursor = _cursor_key(keys_dir / CURSOR_KEY)
        issuers = _publish(keys_dir / ISSUERS, issuer)
        _publish(keys_dir / GATEWAYS, gateway)
        _publish(keys_dir / GRANTS, load_signing(keys_dir / GRANTS_KEY))
    return Keys(gateway, issuer, cursor, issuers)


def rotate(keys_dir: Path, name: str) -> tuple[str, str]:
    """Make a key anew. Its public half is published first, and those of its predecessors stay.

    Args:
        keys_dir: `<data-dir>/keys`.
        name: one of `ROTATED`.

    Returns:
        The key ids before and now.

    Raises:
        KeysUnreadable: a file of them is damaged.
    """
    private, public = ROTATED[name]
    load_or_create(keys_dir)
    with _locked(keys_dir):
        before = load_signing(keys_dir / private)
        fresh = Ed25519PrivateKey.generate()
        now = SigningKey(key_id(fresh.public_key()), fresh)
        _publish(keys_dir / public, now)
        _write_signing(keys_dir / private, fresh)
    return before.kid, now.kid


def load_signing(path: Path) -> SigningKey:
    """The private key of a file, made if there is none.

    Raises:
        KeysUnreadable: the file is damaged.
    """
    if not path.exists():
        _write_signing(path, Ed25519PrivateKey.generate())
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except ValueError as error:
        raise KeysUnreadable(f"{path} is not a private key: restore it from a backup") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysUnreadable(f"{path} is not an Ed25519 key: restore it from a backup")
    return SigningKey(key_id(key.public_key()), key)


def load_public(path: Path) -> dict[str, Ed25519PublicKey]:
    """The public keys in `gateways.json` or its like, by key id; none where there is no such file.

    Raises:
        KeysUnreadable: the file is damaged.
    """
    try:
        pairs = json.loads(path.read_text())
        return {kid: Ed25519PublicKey.from_public_bytes(base64.b64decode(raw)) for kid, raw in pairs.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError, binascii.Error) as error:
        raise KeysUnreadable(
            f"{path} is damaged ({error}): restore it, or delete it to have it made again"
        ) from error


@dataclass(slots=True)
class PublicKeyFile:
    """The public keys of a file, read again when an unknown key id is met and the file has changed."""

    path: Path
    _keys: dict[str, Ed25519PublicKey] = field(default_factory=dict)
    _read_at_ns: int = -1

    def get(self, kid: str) -> Ed25519PublicKey | None:
        """The key of an id, None for an unknown one.

        Raises:
            KeysUnreadable: the file is damaged.
        """
        if kid not in self._keys and (changed_at_ns := self._changed_at_ns()) != self._read_at_ns:
            self._keys, self._read_at_ns = load_public(self.path), changed_at_ns
        return self._keys.get(kid)

    def _changed_at_ns(self) -> int:
        return self.path.stat().st_mtime_ns if self.path.exists() else -1


def key_id(public_key: Ed25519PublicKey) -> str:
    """The name of a key: the first 16 hex characters of the SHA-256 of its raw public half."""
    return hashlib.sha256(_raw(public_key)).hexdigest()[:16]


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


@contextmanager
def _locked(keys_dir: Path) -> Iterator[None]:
    descriptor = os.open(keys_dir / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_signing(path: Path, key: Ed25519PrivateKey) -> None:
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _cursor_key(path: Path) -> bytes:
    if not path.exists():
        write_private(path, secrets.token_bytes(CURSOR_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != CURSOR_KEY_BYTES:
        raise KeysUnreadable(
            f"{path} must hold {CURSOR_KEY_BYTES} bytes: delete it; cursors given out end with it"
        )
    return key


def _publish(path: Path, key: SigningKey) -> dict[str, Ed25519PublicKey]:
    known = load_public(path)
    if key.kid not in known:
        known[key.kid] = key.private_key.public_key()
        rows = {kid: base64.b64encode(_raw(public)).decode() for kid, public in known.items()}
        write_private(path, json.dumps(rows, indent=1).encode())
    return known


def _raw(public_key: Ed25519PublicKey) -> bytes:
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)

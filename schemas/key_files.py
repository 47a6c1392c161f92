"""Key files: private Ed25519 keys made once, mode 600, and their public halves for those who only verify."""

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

# What deciders carry between partitions is signed with it; made by the first decider that starts.
DECIDER_KEY = "decider.pem"
DECIDERS = "deciders.json"


class KeysUnreadable(RuntimeError):
    """A key file is missing or damaged; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and the name under which others know its public half."""

    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)


def load_published(keys_dir: Path, private: str, public: str) -> SigningKey:
    """A signing key of the installation, made and published where there is none.

    Args:
        keys_dir: `<data-dir>/keys`.
        private: the name of the key's file in it.
        public: the name of the file with the public halves.

    Raises:
        KeysUnreadable: a file is damaged.
    """
    with locked(keys_dir):
        key = load_signing(keys_dir / private)
        publish(keys_dir / public, key)
    return key


def load_signing(path: Path) -> SigningKey:
    """The private key of a file, made if there is none.

    Raises:
        KeysUnreadable: the file is damaged.
    """
    if not path.exists():
        write_signing(path, Ed25519PrivateKey.generate())
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


def key_id(public_key: Ed25519PublicKey) -> str:
    """The name of a key: the first 16 hex characters of the SHA-256 of its raw public half."""
    return hashlib.sha256(raw_public(public_key)).hexdigest()[:16]


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def write_signing(path: Path, key: Ed25519PrivateKey) -> None:
    """Write a private key; see `write_private`."""
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@contextmanager
def locked(keys_dir: Path) -> Iterator[None]:
    """Hold a directory of keys, made where it is missing, against other processes that make keys in it."""
    keys_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(keys_dir / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def publish(path: Path, key: SigningKey) -> dict[str, Ed25519PublicKey]:
    """Add the public half of a key to a file of them; the caller holds the directory.

    Returns:
        All keys of the file.

    Raises:
        KeysUnreadable: the file is damaged.
    """
    known = load_public(path)
    if key.kid not in known:
        known[key.kid] = key.private_key.public_key()
        write_public(path, known)
    return known


def write_public(path: Path, keys: Mapping[str, Ed25519PublicKey]) -> None:
    """Write a file of public keys as `load_public` reads it; see `write_private`."""
    rows = {kid: base64.b64encode(raw_public(public)).decode() for kid, public in keys.items()}
    write_private(path, json.dumps(rows, indent=1).encode())


def raw_public(public_key: Ed25519PublicKey) -> bytes:
    """A public key as its 32 bytes."""
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)

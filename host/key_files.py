"""Key files: private Ed25519 keys made once, mode 600, and their public halves for processes that only verify."""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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

from host.errors import EXIT_USAGE, OperatorError
from host.json_files import read_json_file

# Signs what deciders send between partitions; made by the first decider that starts.
DECIDER_KEY = "decider.pem"
DECIDERS = "deciders.json"
# A second copy of every file of public halves, by the file's name. Signatures of older keys are valid only as long as
# their public halves are known, and a file that is made again from its private key has only the current one.
COPIES = "published.json"


class KeysUnreadable(OperatorError):
    """A key file is missing or damaged; the message names it and says what to do."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and the key id of its public half."""

    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)


def load_published(keys_dir: Path, private: str, public: str) -> SigningKey:
    """A signing key of the installation, made and published if there is none.

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
    """The public keys in `gateways.json` or a similar file, by key id; none if there is no such file.

    Raises:
        KeysUnreadable: the file is damaged.
    """
    try:
        return _publics(read_json_file(path))
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError, binascii.Error) as error:
        raise KeysUnreadable(f"{path} is damaged ({error}): {_way_back(path)}") from error


def _way_back(path: Path) -> str:
    """What to do about a damaged file: deletion is advised only if the file can be made again complete."""
    whole = path.with_name(COPIES)
    with suppress(KeysUnreadable):
        if load_copy(path):
            return f"restore it, or delete it: it is then written again from {whole}, which has all its keys"
    return "restore it from a backup; a new file would have only the key that signs now"


def load_copy(path: Path) -> dict[str, Ed25519PublicKey]:
    """The keys of a file of public keys in the copy in the same directory; none if it has none.

    Raises:
        KeysUnreadable: the copy is damaged.
    """
    return _copied(path).get(path.name, {})


def _copied(path: Path) -> dict[str, dict[str, Ed25519PublicKey]]:
    """The contents of the copy in the same directory, by file; errors as in `load_copy`."""
    copies = path.with_name(COPIES)
    try:
        return {name: _publics(pairs) for name, pairs in read_json_file(copies).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError, binascii.Error) as error:
        raise KeysUnreadable(
            f"{copies} is damaged ({error}): restore it, or delete it if {path.name} and the files beside it are "
            "known to have all their keys; it is then written again from them"
        ) from error


def _publics(pairs: Mapping[str, str]) -> dict[str, Ed25519PublicKey]:
    return {kid: Ed25519PublicKey.from_public_bytes(base64.b64decode(raw)) for kid, raw in pairs.items()}


def key_id(public_key: Ed25519PublicKey) -> str:
    """The id of a key: the first 16 hex characters of the SHA-256 of its raw public half."""
    return hashlib.sha256(raw_public(public_key)).hexdigest()[:16]


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
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
    """Lock a directory of keys, made if it is missing, against other processes that make keys in it."""
    keys_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(keys_dir / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def publish(path: Path, key: SigningKey) -> dict[str, Ed25519PublicKey]:
    """Add the public half of a key to a file of public halves; the caller holds the directory's lock.

    A missing file is made again from its copy. A file without a key that is in its copy is refused: the operator must
    say whether the key was lost or is to be withdrawn, and the log depends on deciders' keys.

    Returns:
        All keys of the file.

    Raises:
        KeysUnreadable: the file is damaged, or has lost a key.
    """
    known, copy = load_public(path), load_copy(path)
    if not path.exists():
        known = dict(copy)
    if lost := [kid for kid in copy if kid not in known]:
        raise KeysUnreadable(
            f"{path} has lost the key {lost[0]}, so what this key signed would no longer count: restore the file, "
            f"or delete it: it is then written again from {path.with_name(COPIES)}; to stop trusting a key, use "
            "`placet keys withdraw`, which removes it from both"
        )
    if key.kid not in known or known.keys() != copy.keys() or not path.exists():
        known[key.kid] = key.private_key.public_key()
        write_public(path, known)
    return known


def write_public(path: Path, keys: Mapping[str, Ed25519PublicKey], without: str = "") -> None:
    """Write a file of public keys as `load_public` reads it, then its copy; the caller holds the directory's lock.

    Args:
        path: the file.
        keys: all keys of the file. Other keys of the copy stay in the copy.
        without: a withdrawn key, which is removed from the copy too.
    """
    copied = _copied(path)
    write_private(path, json.dumps(_rows(keys), indent=1).encode())
    kept = {kid: public for kid, public in copied.get(path.name, {}).items() if kid != without}
    copied[path.name] = kept | dict(keys)
    rows = {name: _rows(publics) for name, publics in copied.items()}
    write_private(path.with_name(COPIES), json.dumps(rows, indent=1).encode())


def _rows(keys: Mapping[str, Ed25519PublicKey]) -> dict[str, str]:
    return {kid: base64.b64encode(raw_public(public)).decode() for kid, public in keys.items()}


def raw_public(public_key: Ed25519PublicKey) -> bytes:
    """A public key as its 32 bytes."""
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)

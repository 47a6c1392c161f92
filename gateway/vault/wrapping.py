"""The master key, and the data keys that it wraps.

The vault contains a data key only in its wrapped form. `KeyWrapper` is the interface for a key management service;
this module has the wrapper whose master key is a file of the installation, or comes from the gateway's environment.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from host.key_files import KeysUnreadable, locked, write_private

MASTER_KEY = "vault.master"
COMING_KEY = "vault.master.next"
MASTER_VARIABLE = "PLACET_VAULT_MASTER_KEY"
KEY_BYTES = 32


class MasterKeyWrong(RuntimeError):
    """A data key was wrapped by another master key; the message names that key and says what to do."""


class Wrapped(NamedTuple):
    """A data key in the form in which it may be stored, and the name of the master key that wrapped it."""

    by: str
    key: bytes


class KeyWrapper(Protocol):
    """Wraps data keys: a key management service, or a local master key. Safe to use from several threads."""

    def wrap(self, key: bytes) -> Wrapped:
        """Wrap a data key."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """Return the data key.

        Raises:
            MasterKeyWrong: another master key wrapped it.
        """
        ...


@dataclass(frozen=True, slots=True)
class MasterKey:
    """AES key wrap (RFC 3394) under a master key of 32 bytes."""

    key: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the master key, which reveals nothing of it."""
        return hashlib.sha256(b"placet vault master\0" + self.key).hexdigest()[:16]

    def wrap(self, key: bytes) -> Wrapped:
        """See `KeyWrapper`."""
        return Wrapped(self.name, aes_key_wrap(self.key, key))

    def unwrap(self, wrapped: bytes) -> bytes:
        """See `KeyWrapper`."""
        try:
            return aes_key_unwrap(self.key, wrapped)
        except InvalidUnwrap as error:
            raise MasterKeyWrong(
                f"a data key of the vault is not wrapped by the master key {self.name}: give the gateway the one"
                f" that wrapped it ({MASTER_VARIABLE} or {MASTER_KEY})"
            ) from error


@dataclass(frozen=True, slots=True)
class MasterKeyFile:
    """The master key in the keys' directory, read each time: it may be rotated while the gateway runs."""

    keys_dir: Path

    def wrap(self, key: bytes) -> Wrapped:
        """See `KeyWrapper`."""
        return self.current().wrap(key)

    def unwrap(self, wrapped: bytes) -> bytes:
        """See `KeyWrapper`. During a rotation, either master key may have wrapped a data key."""
        try:
            return self.current().unwrap(wrapped)
        except MasterKeyWrong:
            coming = self.coming()
            if coming is None:
                # The new key was put in force between the two reads.
                return self.current().unwrap(wrapped)
            return coming.unwrap(wrapped)

    def current(self) -> MasterKey:
        """Return the master key in force; it is created if there is none.

        Raises:
            KeysUnreadable: the file is damaged.
        """
        path = self.keys_dir / MASTER_KEY
        if not path.exists():
            self.keys_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.keys_dir):
                if not path.exists():
                    write_private(path, secrets.token_bytes(KEY_BYTES))
        return _read(path)

    def coming(self) -> MasterKey | None:
        """Return the next master key during a rotation, else None; errors as `current`."""
        path = self.keys_dir / COMING_KEY
        try:
            return _read(path)
        except FileNotFoundError:
            return None

    def prepare(self) -> MasterKey:
        """Return the next master key, created if there is none: an interrupted rotation is continued."""
        with locked(self.keys_dir):
            if not (self.keys_dir / COMING_KEY).exists():
                write_private(self.keys_dir / COMING_KEY, secrets.token_bytes(KEY_BYTES))
        return _read(self.keys_dir / COMING_KEY)

    def put_in_force(self) -> None:
        """Replace the master key in force by the next one."""
        (self.keys_dir / COMING_KEY).replace(self.keys_dir / MASTER_KEY)


def wrapper_of(keys_dir: Path, environ: MutableMapping[str, str] | None = None) -> MasterKey | MasterKeyFile:
    """Return the wrapper of this installation.

    Args:
        keys_dir: `<data-dir>/keys`; its file is created at the first use.
        environ: may contain the master key instead, as base64. It is removed from there, so that no child gets it.

    Raises:
        KeysUnreadable: the master key is not 32 bytes.
    """
    given = (os.environ if environ is None else environ).pop(MASTER_VARIABLE, "")
    return MasterKey(decoded(given)) if given else MasterKeyFile(keys_dir)


def decoded(text: str) -> bytes:
    """Decode a master key from base64.

    Raises:
        KeysUnreadable: it is not 32 bytes.
    """
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        # The message does not contain the text: it may be a key with a typing error.
        raise KeysUnreadable(f"a master key must be {KEY_BYTES} bytes as base64")
    return key


def _read(path: Path) -> MasterKey:
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise KeysUnreadable(f"{path} must hold {KEY_BYTES} bytes: restore it from a backup")
    return MasterKey(key)

"""The master key and what it wraps: the tenants' data keys.

A data key lies in the vault only as a wrapper gives it back. `KeyWrapper` is what a key management service has to
offer; here is the wrapper whose master key is a file of the installation, or comes from the gateway's environment.
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
    """A data key was wrapped by another master key; the message names it and says what to do."""


class Wrapped(NamedTuple):
    """A data key as it may be kept, and the name of the master key that wrapped it."""

    by: str
    key: bytes


class KeyWrapper(Protocol):
    """What wraps data keys: a key management service, or a master key at hand. Safe to use from several threads."""

    def wrap(self, key: bytes) -> Wrapped:
        """Wrap a data key."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """The data key again.

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
        """Names the master key, and tells nothing of it."""
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
    """The master key in the keys' directory, read each time: it may be made anew while the gateway runs."""

    keys_dir: Path

    def wrap(self, key: bytes) -> Wrapped:
        """See `KeyWrapper`."""
        return self.current().wrap(key)

    def unwrap(self, wrapped: bytes) -> bytes:
        """See `KeyWrapper`. While a new master key is being put in force, either may have wrapped a data key."""
        try:
            return self.current().unwrap(wrapped)
        except MasterKeyWrong:
            coming = self.coming()
            if coming is None:
                # Put in force between the two looks.
                return self.current().unwrap(wrapped)
            return coming.unwrap(wrapped)

    def current(self) -> MasterKey:
        """The master key in force, made where there is none.

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
        """The master key that is being put in force, if one is; errors as `current`."""
        path = self.keys_dir / COMING_KEY
        try:
            return _read(path)
        except FileNotFoundError:
            return None

    def prepare(self) -> MasterKey:
        """The master key to come, made where there is none: a rotation that was cut short is taken up again."""
        with locked(self.keys_dir):
            if not (self.keys_dir / COMING_KEY).exists():
                write_private(self.keys_dir / COMING_KEY, secrets.token_bytes(KEY_BYTES))
        return _read(self.keys_dir / COMING_KEY)

    def put_in_force(self) -> None:
        """Let the master key to come take the place of the one in force."""
        (self.keys_dir / COMING_KEY).replace(self.keys_dir / MASTER_KEY)


def wrapper_of(keys_dir: Path, environ: MutableMapping[str, str] | None = None) -> MasterKey | MasterKeyFile:
    """The wrapper of this installation.

    Args:
        keys_dir: `<data-dir>/keys`; its file is made at the first use.
        environ: where the master key may stand instead, as base64. It is taken out, so that no child has it.

    Raises:
        KeysUnreadable: the master key is not 32 bytes.
    """
    given = (os.environ if environ is None else environ).pop(MASTER_VARIABLE, "")
    return MasterKey(decoded(given)) if given else MasterKeyFile(keys_dir)


def decoded(text: str) -> bytes:
    """A master key from base64.

    Raises:
        KeysUnreadable: it is not 32 bytes.
    """
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        # Not the text itself: it may be a key with a typing error.
        raise KeysUnreadable(f"a master key must be {KEY_BYTES} bytes as base64")
    return key


def _read(path: Path) -> MasterKey:
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise KeysUnreadable(f"{path} must hold {KEY_BYTES} bytes: restore it from a backup")
    return MasterKey(key)

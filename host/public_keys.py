"""Public keys by key id, read from a file that can change at run time."""

import base64
import binascii
import time
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.json_files import read_json_file
from host.key_files import KeysUnreadable

READ_EVERY_S = 1.0
Stamp = tuple[int, int, int]


class PublicKeyFile:
    """The keys of one file, `{kid: base64 raw Ed25519 public key}`; usable as `schemas.envelope.PublicKeys`.

    The file is checked at most every second, and read again if it has changed or the key id is unknown, so a
    withdrawn key is no longer trusted. While the file is missing, the keys read before stay.

    Args:
        path: the file.
        monotonic_s: a clock in seconds, for tests and simulations.
    """

    def __init__(self, path: Path, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic_s = monotonic_s
        self._keys: dict[str, Ed25519PublicKey] = {}
        self._read_at_s: float | None = None
        self._looked_at_s: float | None = None
        self._stamp: Stamp | None = None

    def __call__(self, kid: str) -> Ed25519PublicKey | None:
        """The key of that id, or None.

        Raises:
            KeysUnreadable: the file had to be read and cannot be; until it is restored no signature can be verified.
        """
        if kid not in self._keys:
            if self._is_due(self._read_at_s):
                self._read(_stamp(self._path))
        elif self._is_due(self._looked_at_s):
            self._looked_at_s = self._monotonic_s()
            stamp = _stamp(self._path)
            if stamp is not None and stamp != self._stamp:
                self._read(stamp)
        return self._keys.get(kid)

    def __reduce__(self) -> tuple[type["PublicKeyFile"], tuple[Path]]:
        # When pickled for another process: that process reads the file itself.
        return PublicKeyFile, (self._path,)

    def _read(self, stamp: Stamp | None) -> None:
        self._keys, self._stamp = _read(self._path), stamp
        self._read_at_s = self._looked_at_s = self._monotonic_s()

    def _is_due(self, at_s: float | None) -> bool:
        return at_s is None or self._monotonic_s() - at_s >= READ_EVERY_S


def _stamp(path: Path) -> Stamp | None:
    """A value that changes when a file is rewritten; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _read(path: Path) -> dict[str, Ed25519PublicKey]:
    try:
        entries = read_json_file(path)
        return {
            kid: Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
            for kid, text in entries.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise KeysUnreadable(
            f"The public keys in {path} cannot be read ({type(error).__name__}: {error}): restore the file, "
            "which is JSON of key id to base64 raw Ed25519 public key."
        ) from error

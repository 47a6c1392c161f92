"""Which records of an events topic a decider signed for their place: the four steps of the log contract.

A writer's batch that landed after a late one of a deposed writer is signed for another place. It is in the term in
force and does not count: only this check tells it from one that does.
"""

from __future__ import annotations

import base64
import json
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from placet.audit.leaf import packed
from placet.audit.merkle import HASH_BYTES, root_of_path
from placet.config import NotConfigured
from placet.log import CLAIM_TYPE, TYPE_HEADER

SIGNATURE_HEADER = "placet_signature"
CONTEXT = b"placet.event-batch.v1\x00"
# A claim is signed for any offset of its partition.
ANYWHERE = -1
VERIFIED_MAX = 256
Headers = Sequence[tuple[str, bytes]]


class Signatures:
    """Verifies the records of one topic by the deciders' public keys."""

    def __init__(self, topic: str, keys_dir: str | os.PathLike[str]) -> None:
        self._topic = topic
        self._file = Path(keys_dir) / "deciders.json"
        since = _read(Path(keys_dir) / "signed-from.json").get(topic, [])
        self._since = [places if isinstance(places, list) else [places] for places in since]
        self._version = self._version_of_file()
        self._keys = self._read_keys()
        self._verified: OrderedDict[tuple[str, bytes, bytes], None] = OrderedDict()

    def vouch(self, partition: int, offset: int, key: bytes, headers: Headers, value: bytes) -> bool:
        """Returns True if a decider signed the record for its place, or need not have."""
        return not self._is_owed(partition, offset) or self._is_signed(partition, offset, key, headers, value)

    def _is_owed(self, partition: int, offset: int) -> bool:
        # Signed from the first offset on, not from the second on, again from the third on.
        return partition >= len(self._since) or bisect_right(self._since[partition], offset) % 2 == 1

    def _is_signed(self, partition: int, offset: int, key: bytes, headers: Headers, value: bytes) -> bool:
        if not headers or headers[-1][0] != SIGNATURE_HEADER:
            return False
        labels = headers[:-1]
        try:
            kid, size, index, path, signature = headers[-1][1].decode().rsplit(".", 4)
            hashes = _unb64(path)
            steps = [hashes[i : i + HASH_BYTES] for i in range(0, len(hashes), HASH_BYTES)]
            leaf = sha256(b"\x00\x93" + b"".join(packed(key, labels, value))).digest()
            root = root_of_path(leaf, int(index), int(size), steps)
            base = ANYWHERE if _is_claim(labels) else offset - int(index)
            if root is None:
                return False
            signed = self._place(partition, base) + int(size).to_bytes(4, "big") + root
            return self._fits(kid, _unb64(signature), signed)
        except (ValueError, OverflowError):
            return False

    def _place(self, partition: int, base: int) -> bytes:
        topic = self._topic.encode()
        name = len(topic).to_bytes(2, "big") + topic
        return CONTEXT + name + partition.to_bytes(4, "big") + base.to_bytes(8, "big", signed=True)

    def _fits(self, kid: str, signature: bytes, signed: bytes) -> bool:
        """Verify a signature; up to 16 records in a row share one."""
        key = self._key(kid)
        if key is None:
            return False
        if (kid, signature, signed) in self._verified:
            return True
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            return False
        self._verified[kid, signature, signed] = None
        if len(self._verified) > VERIFIED_MAX:
            self._verified.popitem(last=False)
        return True

    def _key(self, kid: str) -> Ed25519PublicKey | None:
        # A decider's key that is new, such as after `placet keys rotate`; a kid names one key for ever.
        # The file is read again only where it is another one: anybody may write records with names that nobody has.
        if kid not in self._keys and (version := self._version_of_file()) != self._version:
            self._keys, self._version = self._read_keys(), version
        return self._keys.get(kid)

    def _version_of_file(self) -> tuple[int, int, int]:
        try:
            found = self._file.stat()
        except OSError as error:
            raise NotConfigured(f"{self._file} cannot be read: {error}") from error
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read_keys(self) -> Mapping[str, Ed25519PublicKey]:
        try:
            rows = {kid: base64.b64decode(raw) for kid, raw in _read(self._file).items()}
            return {kid: Ed25519PublicKey.from_public_bytes(raw) for kid, raw in rows.items()}
        except (ValueError, TypeError) as error:
            raise NotConfigured(f"{self._file} does not have deciders' public keys") from error


def _is_claim(labels: Headers) -> bool:
    kinds = [value.decode() for name, value in labels if name == TYPE_HEADER]
    return kinds == [f"placet.events.{CLAIM_TYPE}"]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotConfigured(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise NotConfigured(f"{path} has no object")
    return found


def _unb64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)

"""One Ed25519 signature (RFC 8032) for several records: over the size and root of their RFC 6962 tree.

As text, in each record: `kid.size.index.path.signature`, the last two base64url without padding; `path` is
the audit path from the leaf up, 32 bytes a hash.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas import merkle

CONTEXT = b"placet.command-batch.v1\x00"
HASH_BYTES = 32
COUNT_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class BatchProof:
    """A record's part in a signed batch: its place in the tree, and the signature that all share."""

    kid: str
    size: int
    index: int
    path: tuple[bytes, ...]
    signature: bytes

    def signed_bytes(self, leaf: bytes, context: bytes = CONTEXT) -> bytes | None:
        """What the signature must be over if the leaf hash belongs to the batch.

        Returns:
            None where the path fits no tree of this size.
        """
        root = merkle.root_of_path(leaf, self.index, self.size, self.path)
        return None if root is None else _signed_bytes(context, self.size, root)


def sign_batch(
    kid: str, private_key: Ed25519PrivateKey, leaves: Sequence[bytes], context: bytes = CONTEXT
) -> list[bytes]:
    """The proof text of each leaf hash, all under one signature; `context` says what the batch is good for."""
    if not leaves:
        return []
    root, paths = merkle.root_and_paths(leaves)
    signature = _b64(private_key.sign(_signed_bytes(context, len(leaves), root)))
    return [
        f"{kid}.{len(leaves)}.{index}.{_b64(b''.join(path))}.{signature}".encode()
        for index, path in enumerate(paths)
    ]


def parse_proof(text: bytes) -> BatchProof:
    """The proof in a `placet_signature` header.

    Raises:
        ValueError: the text is not of that form.
    """
    # A kid may have dots in it.
    kid, size, index, path, signature = text.decode("ascii").rsplit(".", 4)
    return BatchProof(kid, _count(size), _count(index), _hashes(_unb64(path)), _unb64(signature))


def _signed_bytes(context: bytes, size: int, root: bytes) -> bytes:
    # A tree head's signature covers its size; without it a path can fit trees of several sizes.
    return context + size.to_bytes(4, "big") + root


def _hashes(data: bytes) -> tuple[bytes, ...]:
    if len(data) % HASH_BYTES:
        raise ValueError("an audit path is whole hashes")
    return tuple(data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES))


def _count(text: str) -> int:
    # int() would also take blanks, signs and thousands of digits.
    if len(text) > COUNT_MAX_DIGITS or not text.isdecimal():
        raise ValueError("not a count")
    return int(text)


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    # One text for one value: no padding, and no bits beyond the last byte.
    if _b64(data) != text:
        raise ValueError("not base64url without padding")
    return data

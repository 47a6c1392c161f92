"""One Ed25519 signature (RFC 8032) for several records: over the size and root of their RFC 6962 tree.

As text, in each record: `kid.size.index.path.signature`, the last two base64url without padding; `path` is
the audit path from the leaf up, 32 bytes a hash.
"""

import binascii
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas import merkle

CONTEXT = b"placet.command-batch.v1\x00"
HASH_BYTES = 32
COUNT_MAX_DIGITS = 9
# Cache size of the parts that records of one batch share; batches can be interleaved.
SHARED_MAX = 256
_TO_URL = bytes.maketrans(b"+/", b"-_")
# Characters that base64url does not have become characters that no base64 has.
_TO_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")
# By the length of a text modulo 4: its padding, and the characters whose bits beyond the last byte are all 0.
_ANY = frozenset(range(256))
_PADDING = ((b"", _ANY), (b"!", _ANY), (b"==", frozenset(b"AQgw")), (b"=", frozenset(b"AEIMQUYcgkosw048")))


class BatchProof(NamedTuple):
    """A record's part in a signed batch: its place in the tree, and the signature that all share."""

    kid: str
    size: int
    leaf_index: int
    path: tuple[bytes, ...]
    signature: bytes

    def signed_bytes(self, leaf: bytes, context: bytes = CONTEXT) -> bytes | None:
        """The bytes that the signature must cover if the leaf hash belongs to the batch.

        Returns:
            None if the path fits no tree of this size.
        """
        root = merkle.root_of_path(leaf, self.leaf_index, self.size, self.path)
        return None if root is None else _signed_bytes(context, self.size, root)


def sign_batch(
    kid: str, private_key: Ed25519PrivateKey, leaves: Sequence[bytes], context: bytes = CONTEXT
) -> list[bytes]:
    """The proof text of each leaf hash, all under one signature; `context` is the purpose of the batch."""
    if not leaves:
        return []
    root, paths = merkle.root_and_paths(leaves)
    signature = private_key.sign(_signed_bytes(context, len(leaves), root))
    return _proofs(kid, paths, signature)


def proofs_again(proof: BatchProof, leaves: Sequence[bytes], context: bytes) -> tuple[bytes, list[bytes]]:
    """What `sign_batch` signed and answered, by one of its proofs and all of the leaf hashes.

    Returns:
        The bytes that the signature must cover, and the proof text of each leaf hash.
    """
    root, paths = merkle.root_and_paths(leaves)
    return _signed_bytes(context, len(leaves), root), _proofs(proof.kid, paths, proof.signature)


def parse_proof(text: bytes) -> BatchProof:
    """The proof in a `placet_signature` header.

    Raises:
        ValueError: the text is not of that form.
    """
    # A kid can contain dots.
    kid, size, index, path, signature = text.rsplit(b".", 4)
    return BatchProof(
        kid.decode("ascii"), _count(size), _count(index), _hashes(_unb64(path)), _shared(signature)
    )


def _proofs(kid: str, paths: Sequence[Sequence[bytes]], signature: bytes) -> list[bytes]:
    begin, end = b"%b.%d." % (kid.encode(), len(paths)), _b64(signature)
    return [b"%b%d.%b.%b" % (begin, index, _b64(b"".join(path)), end) for index, path in enumerate(paths)]


def _signed_bytes(context: bytes, size: int, root: bytes) -> bytes:
    # A tree head's signature covers its size; without it a path can fit trees of several sizes.
    return context + size.to_bytes(4, "big") + root


def _hashes(data: bytes) -> tuple[bytes, ...]:
    if len(data) % HASH_BYTES:
        raise ValueError("an audit path must consist of whole hashes")
    return tuple([data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)])


@lru_cache(maxsize=SHARED_MAX)
def _count(text: bytes) -> int:
    # int() would also accept blanks, signs and thousands of digits.
    if len(text) > COUNT_MAX_DIGITS or not text.isdigit():
        raise ValueError("not a count")
    return int(text)


@lru_cache(maxsize=SHARED_MAX)
def _shared(text: bytes) -> bytes:
    return _unb64(text)


def _b64(data: bytes) -> bytes:
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL)


def _unb64(text: bytes) -> bytes:
    # One text for one value: no padding, and no bits beyond the last byte.
    padding, last = _PADDING[len(text) % 4]
    if text and text[-1] not in last:
        raise ValueError("not base64url without padding")
    return binascii.a2b_base64(text.translate(_TO_STANDARD) + padding, strict_mode=True)

"""Ed25519 verification (RFC 8032) for each batch, with libsodium, which takes half of OpenSSL's time.

Everywhere else keys are objects of `cryptography`, which reads and writes their files.
"""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.bindings import crypto_sign_BYTES, crypto_sign_open
from nacl.exceptions import BadSignatureError


def verifies(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    """Returns True if a key made a signature of 64 bytes over these bytes."""
    # libsodium takes both as one text: it would complete a shorter signature with the first bytes of the text.
    if len(signature) != crypto_sign_BYTES:
        return False
    try:
        crypto_sign_open(signature + signed, key.public_bytes_raw())
    except BadSignatureError:
        return False
    return True


@dataclass(slots=True)
class Verified:
    """A cache of valid signatures: one that many records share is verified once. The oldest is evicted first.

    Attributes:
        most: the size of the cache.
    """

    most: int
    _good: dict[tuple[str, bytes, bytes], None] = field(default_factory=dict)

    def fits(self, kid: str, key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
        """Returns True if the key, the only one that this kid ever names, made a signature over these bytes."""
        named = (kid, signed, signature)
        if named in self._good:
            return True
        if not verifies(key, signature, signed):
            return False
        if len(self._good) >= self.most:
            del self._good[next(iter(self._good))]
        self._good[named] = None
        return True

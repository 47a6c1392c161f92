"""Ed25519 (RFC 8032) where it is met with each batch: libsodium takes half of OpenSSL's time to verify.

Keys are `cryptography`'s everywhere else: it reads and writes their files.
"""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.bindings import crypto_sign_BYTES, crypto_sign_open
from nacl.exceptions import BadSignatureError


def verifies(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    """Whether a key made a signature, 64 bytes, over these bytes."""
    # libsodium takes both as one text: of a shorter signature the first bytes of the text would be a part.
    if len(signature) != crypto_sign_BYTES:
        return False
    try:
        crypto_sign_open(signature + signed, key.public_bytes_raw())
    except BadSignatureError:
        return False
    return True


@dataclass(slots=True)
class Verified:
    """Signatures that were found good: what many records share is verified once. The oldest is forgotten first.

    Attributes:
        most: how many are remembered.
    """

    most: int
    _good: dict[tuple[str, bytes, bytes], None] = field(default_factory=dict)

    def fits(self, kid: str, key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
        """Whether the key, which this kid names for ever, made a signature over these bytes."""
        named = (kid, signed, signature)
        if named in self._good:
            return True
        if not verifies(key, signature, signed):
            return False
        if len(self._good) >= self.most:
            del self._good[next(iter(self._good))]
        self._good[named] = None
        return True

"""The audit trees: which records have a leaf, what a leaf is made of, and the signed head (docs/audit.md).

Whether a record has a leaf depends on its key, its headers and the term rule, and a leaf is made of the record's
bytes: a version that reads a body differently, or not at all, makes the same trees.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.key_files import SigningKey
from schemas.canonical import canonical
from schemas.headers import read_meta
from schemas.ids import LOG_KEYS, is_client_id
from schemas.record import RawRecord, UnreadableRecord

TopicRole = Literal["executions", "definitions"]

AUDIT_KEY = "audit.pem"
AUDIT_KEYS = "audit.json"
LEAF_FORMAT = "placet.audit-leaf.v1"
HEAD_CONTEXT = b"placet.audit-head.v1\x00"
CALL_CONTEXT = b"placet.audit-call.v1\x00"
NO_HEAD = ""

_CLAIM = b"placet.events.WriterClaimed"
_ENCODE = msgspec.msgpack.Encoder().encode


def record_leaf(topic: TopicRole, record: RawRecord) -> bytes:
    """The RFC 6962 leaf hash of a record that counts, over the MessagePack array of the record's parts in the log."""
    partition, offset, _, key, value, headers = record
    return hashlib.sha256(
        b"\x00" + _ENCODE((LEAF_FORMAT, topic, partition, offset, key, headers, value))
    ).digest()


@lru_cache(maxsize=8192)
def tenant_of(key: bytes) -> str | None:
    """The tenant whose tree has a key's records: the key's first part; None for records about the log itself."""
    if key.startswith(LOG_KEYS):
        return None
    first, slash, _ = key.partition(b"/")
    try:
        tenant = first.decode()
    except UnicodeDecodeError:
        return None
    return tenant if slash and is_client_id(tenant) else None


def has_leaf(record: RawRecord, claim: int) -> bool:
    """Returns True if a record is in a tree, decided without its body.

    Args:
        record: any record of an events topic.
        claim: the claim in force before it.
    """
    if tenant_of(record.key) is None:
        return False
    try:
        term = read_meta(record).term
    except UnreadableRecord:
        return False
    return claim == term != -1 and dict(record.headers).get("ce_type") != _CLAIM


class TreeHead(NamedTuple):
    """The extent of one tree when a head was signed."""

    topic: TopicRole
    partition: int
    last_offset: int
    size: int
    root: str


class Head(NamedTuple):
    """A tenant's signed head: all its trees, and the digest of the head before it.

    Attributes:
        line: its canonical JSON with the signature; it is stored, and the next head has its digest.
        number: counts the tenant's heads from 1.
        previous: SHA-256 of the line before it, empty for the first.
    """

    line: str
    tenant: str
    number: int
    at: str
    previous: str
    trees: tuple[TreeHead, ...]

    @property
    def digest(self) -> str:
        """The digest by which the next head refers to this one."""
        return hashlib.sha256(self.line.encode()).hexdigest()


class HeadMalformed(ValueError):
    """A text is not an audit head."""


def sign_head(
    key: SigningKey, tenant: str, at: str, previous: Head | None, trees: Sequence[TreeHead]
) -> Head:
    """The next head of a tenant."""
    body: dict[str, Any] = {
        "at": at,
        "kid": key.kid,
        "number": 1 if previous is None else previous.number + 1,
        "previous": NO_HEAD if previous is None else previous.digest,
        "tenant": tenant,
        "trees": [tree._asdict() for tree in sorted(trees)],
    }
    signature = key.private_key.sign(HEAD_CONTEXT + canonical(body).encode())
    return read_head(canonical(body | {"signature": base64.b64encode(signature).decode()}))


def read_head(line: str) -> Head:
    """The head in a line. `verify_head` verifies its signature.

    Raises:
        HeadMalformed: the line is not a head.
    """
    try:
        body = json.loads(line)
        trees = tuple(TreeHead(**tree) for tree in body["trees"])
        head = Head(line, body["tenant"], body["number"], body["at"], body["previous"], trees)
        body["kid"], body["signature"]
    except (ValueError, TypeError, KeyError) as error:
        raise HeadMalformed(f"not an audit head: {error!r}") from error
    return head


def verify_head(head: Head, key: Ed25519PublicKey) -> bool:
    """Returns True if a head was signed by the key."""
    body = json.loads(head.line)
    try:
        signature = base64.b64decode(body.pop("signature"), validate=True)
        key.verify(signature, HEAD_CONTEXT + canonical(body).encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def call_signature(key: SigningKey, body: bytes) -> str:
    """The header of a head that is posted to a webhook: the sender's key id, and a signature over the whole body."""
    signature = base64.urlsafe_b64encode(key.private_key.sign(CALL_CONTEXT + body)).decode().rstrip("=")
    return f"{key.kid}.{signature}"

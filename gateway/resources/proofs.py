"""Answers about the audit trees (docs/audit.md): heads, leaves, proofs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gateway.resources.base import Resource


class AuditTree(Resource):
    """The state of one tree when its head was signed; `root` is hex."""

    topic: str
    partition: int
    last_offset: int
    size: int
    root: str


class AuditHead(Resource):
    """A signed head of all trees of a tenant. The signature covers its canonical JSON without `signature`."""

    at: str
    kid: str
    number: int
    previous: str
    signature: str
    tenant: str
    trees: list[AuditTree]


class AuditHeadAnswer(Resource):
    """The newest head."""

    head: AuditHead
    cursor: str | None = None


class AuditKeys(Resource):
    """The public keys that sign heads: base64 of 32 bytes, by key id."""

    keys: dict[str, str]
    cursor: str | None = None


class AuditRecord(Resource):
    """A record of the log in the form from which its leaf is made; `key`, `value` and the headers' values are base64.

    A header is a pair of its name and its value.
    """

    topic: str
    partition: int
    offset: int
    key: str
    headers: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    value: str


class AuditLeaf(Resource):
    """A leaf of a tree; `record` is null if it belongs to another project."""

    index: int
    offset: int
    leaf: str
    record: AuditRecord | None


class AuditProof(Resource):
    """An inclusion proof (RFC 9162, section 2.1.3): the record, its path from the leaf up, and the signed head."""

    event_id: str
    record: AuditRecord
    leaf_index: int
    tree_size: int
    path: list[str]
    head: AuditHead
    cursor: str | None = None


class AuditTreeConsistency(Resource):
    """A consistency proof of one tree (RFC 9162, section 2.1.4)."""

    topic: str
    partition: int
    first_size: int
    second_size: int
    path: list[str]


class AuditConsistency(Resource):
    """Two heads, and proofs that the trees of the first are prefixes of the second's."""

    first: AuditHead
    second: AuditHead
    proofs: list[AuditTreeConsistency]
    cursor: str | None = None

"""Signed heads: their form, their signatures, and their chain."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any

from placet.audit.findings import Finding
from placet.audit.strict import base64_bytes, count, hex_hash, items, members, text

# What to do if a key is missing among the trusted ones.
ROTATED = (
    "after `placet keys rotate audit`, get the installation's keys/audit.json again, in a way that you trust"
)
CONTEXT = b"placet.audit-head.v1\x00"
# The errors that a malformed value raises when it is read.
MALFORMED = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    RecursionError,
    struct.error,
)
TREE_MEMBERS = frozenset({"topic", "partition", "size", "last_offset", "root"})
_TOPIC = re.compile(r"[a-z][a-z-]{0,63}")

TreeName = tuple[str, int]


class NoSignatures(RuntimeError):
    """Signatures cannot be checked here; `str()` says what to do."""


@dataclass(frozen=True)
class TreeState:
    """The state of one tree in a head."""

    size: int
    last_offset: int
    root: bytes


@dataclass(frozen=True)
class Head:
    """A head as it was read: nothing of it is verified yet."""

    body: dict[str, Any]
    number: int
    tenant: str
    previous: str
    trees: Mapping[TreeName, TreeState]

    @property
    def line(self) -> bytes:
        """Its canonical JSON, whose digest is in the next head."""
        return canonical(self.body)

    @property
    def digest(self) -> str:
        """SHA-256 of the line."""
        return sha256(self.line).hexdigest()


def canonical(body: Mapping[str, Any]) -> bytes:
    """RFC 8785 of a head, whose texts are ASCII and whose numbers are integers."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def head_of(body: Any) -> Head:
    """The head in a JSON value.

    Raises:
        ValueError: the value is not a head.
    """
    try:
        trees: dict[TreeName, TreeState] = {}
        for tree in items(body["trees"]):
            members(tree, TREE_MEMBERS)
            name = (text(tree["topic"]), count(tree["partition"]))
            # A tree's name is also that of its files, so it must be safe.
            if not _TOPIC.fullmatch(name[0]) or name in trees:
                raise ValueError("an unknown topic, or a tree that appears twice")
            trees[name] = TreeState(count(tree["size"]), count(tree["last_offset"]), hex_hash(tree["root"]))
        head = Head(body, count(body["number"]), text(body["tenant"]), text(body["previous"]), trees)
        # Members added by later versions are covered by the signature too.
        canonical(body)
    except MALFORMED as error:
        raise ValueError(f"not an audit head: {error!r}") from error
    return head


def check_signature(head: Head, keys: Mapping[str, bytes]) -> Finding | None:
    """The finding about a head's signature; None if the signature is good.

    Raises:
        NoSignatures: `cryptography` is not installed.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise NoSignatures("signatures were NOT checked: pip install 'placet[audit]'") from error
    kid = str(head.body.get("kid"))
    if kid not in keys:
        return Finding("forged_signature", f"the key {kid[:40]!r} is not known: {ROTATED}", head=head.number)
    body = {name: value for name, value in head.body.items() if name != "signature"}
    try:
        signature = base64_bytes(head.body.get("signature"))
        Ed25519PublicKey.from_public_bytes(keys[kid]).verify(signature, CONTEXT + canonical(body))
    except (InvalidSignature, ValueError):
        return Finding("forged_signature", f"the key {kid} has not signed this", head=head.number)
    return None


def check_chain(heads: Sequence[Head]) -> list[Finding]:
    """The findings about heads in the order in which they were signed: the first problem of each pair."""
    findings = []
    for before, head in pairwise(heads):
        problem = _problem(before, head)
        if problem:
            findings.append(Finding("broken_chain", problem, head=head.number))
    if heads and (heads[0].number != 1 or heads[0].previous):
        problem = "the heads before it are missing: a trail is fetched from head 1 on"
        findings.insert(0, Finding("broken_chain", problem, head=heads[0].number))
    return findings


def check_order(heads: Iterable[Head]) -> list[Finding]:
    """The findings that contradict one history of a tenant's heads, some of which may be missing in between."""
    findings = []
    in_order = sorted({head.line: head for head in heads}.values(), key=lambda head: head.number)
    for before, head in pairwise(in_order):
        problem = _contradiction(before, head)
        if problem:
            findings.append(Finding("broken_chain", problem, head=head.number))
    return findings


def _contradiction(before: Head, head: Head) -> str:
    if head.number == before.number:
        return "there is another head of this number"
    if head.number == before.number + 1:
        return _problem(before, head)
    return _shrunk(before, head)


def _problem(before: Head, head: Head) -> str:
    if head.number != before.number + 1:
        return f"it follows head {before.number}"
    if head.tenant != before.tenant:
        return f"it is of the tenant {head.tenant[:40]}"
    if head.previous != before.digest:
        return f"it was signed after another head {before.number}"
    return _shrunk(before, head)


def _shrunk(before: Head, head: Head) -> str:
    for name, old in before.trees.items():
        new = head.trees.get(name)
        if new is None or new.size < old.size or new.last_offset < old.last_offset:
            return f"the tree {name[0]}/{name[1]} became shorter"
        if new.size == old.size and new != old:
            return f"the tree {name[0]}/{name[1]} changed and did not grow"
    return ""

"""Signed heads: reading them, their signatures, and the chain that they make."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any

from placet.audit.findings import Finding

CONTEXT = b"placet.audit-head.v1\x00"
# What a value raises that is not of the form that is read from it.
MALFORMED = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    RecursionError,
    struct.error,
)
_TOPIC = re.compile(r"[a-z][a-z-]{0,63}")

TreeName = tuple[str, int]


class NoSignatures(RuntimeError):
    """Signatures cannot be checked here; `str()` says what to do."""


@dataclass(frozen=True)
class TreeState:
    """What a head says of one tree."""

    size: int
    last_offset: int
    root: bytes


@dataclass(frozen=True)
class Head:
    """A head as it was read: nothing about it is believed yet."""

    body: dict[str, Any]
    number: int
    tenant: str
    previous: str
    trees: Mapping[TreeName, TreeState]

    @property
    def line(self) -> bytes:
        """Its canonical JSON: what the next head names."""
        return canonical(self.body)

    @property
    def digest(self) -> str:
        """SHA-256 of the line."""
        return sha256(self.line).hexdigest()


def canonical(body: Mapping[str, Any]) -> bytes:
    """RFC 8785 of a head, whose texts are ASCII and whose numbers are integers."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def parsed(text: str) -> Any:
    """A JSON value of which every reader reads the same.

    Raises:
        ValueError: it is no JSON, or has a key twice or a number that is none.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def head_of(body: Any) -> Head:
    """The head in a JSON value.

    Raises:
        ValueError: it is none.
    """
    try:
        trees = {
            (str(tree["topic"]), int(tree["partition"])): TreeState(
                int(tree["size"]), int(tree["last_offset"]), bytes.fromhex(tree["root"])
            )
            for tree in body["trees"]
        }
        # A tree's name is that of its files too.
        if not all(_TOPIC.fullmatch(topic) for topic, _ in trees):
            raise ValueError("no such topic")
        head = Head(body, int(body["number"]), str(body["tenant"]), str(body["previous"]), trees)
        canonical(body)
    except MALFORMED as error:
        raise ValueError(f"not an audit head: {error!r}") from error
    return head


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def check_signature(head: Head, keys: Mapping[str, bytes]) -> Finding | None:
    """What is wrong with a head's signature; None where it is good.

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
        return Finding("forged_signature", f"no key {kid[:40]!r} is known", head=head.number)
    body = {name: value for name, value in head.body.items() if name != "signature"}
    try:
        signature = b64decode(str(head.body.get("signature")), validate=True)
        Ed25519PublicKey.from_public_bytes(keys[kid]).verify(signature, CONTEXT + canonical(body))
    except (InvalidSignature, ValueError):
        return Finding("forged_signature", f"the key {kid} has not signed this", head=head.number)
    return None


def check_chain(heads: Sequence[Head]) -> list[Finding]:
    """What is wrong with heads in the order in which they were signed: the first wrong one of each pair."""
    findings = []
    for before, head in pairwise(heads):
        problem = _problem(before, head)
        if problem:
            findings.append(Finding("broken_chain", problem, head=head.number))
    if heads and heads[0].number == 1 and heads[0].previous:
        findings.append(Finding("broken_chain", "the first head names one before it", head=1))
    return findings


def _problem(before: Head, head: Head) -> str:
    if head.number != before.number + 1:
        return f"it follows head {before.number}"
    if head.tenant != before.tenant:
        return f"it is of the tenant {head.tenant[:40]}"
    if head.previous != before.digest:
        return f"it was signed after another head {before.number}"
    for name, old in before.trees.items():
        new = head.trees.get(name)
        if new is None or new.size < old.size or new.last_offset < old.last_offset:
            return f"the tree {name[0]}/{name[1]} became shorter"
        if new.size == old.size and new != old:
            return f"the tree {name[0]}/{name[1]} changed and did not grow"
    return ""

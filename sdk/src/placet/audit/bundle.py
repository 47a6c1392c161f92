"""What `placet audit fetch` leaves in a directory, and proof files: reading them.

bundle.json                what this is, and whose
keys.json                  {kid: base64}: the public keys as the server gave them
heads.jsonl                one head a line, oldest first
trees/executions-3.jsonl   one leaf a line: {"index", "offset", "record"}, or "leaf" (hex) of a hidden record
trees/executions-3.leaves  the leaf hashes as the server gave them, 32 bytes each
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placet.audit.heads import MALFORMED, Head, TreeName, head_of, parsed
from placet.audit.leaf import leaf_of
from placet.audit.tree import Lists

FORMAT = "placet.audit-bundle.v1"
HASH_BYTES = 32
KEY_BYTES = 32
# Of a line that cannot be read: the hash of nothing.
NO_HASH = b""


class Unreadable(ValueError):
    """A file is not what it should be; `str()` says which and what to do."""


@dataclass(frozen=True)
class Bundle:
    """A directory made by `placet audit fetch`."""

    directory: Path

    @property
    def heads_file(self) -> Path:
        """All heads, oldest first."""
        return self.directory / "heads.jsonl"

    @property
    def keys_file(self) -> Path:
        """The keys as the server gave them."""
        return self.directory / "keys.json"

    @property
    def about_file(self) -> Path:
        """What this is."""
        return self.directory / "bundle.json"

    def records_file(self, tree: TreeName) -> Path:
        """The leaves of a tree with their records."""
        return self.directory / "trees" / f"{tree[0]}-{tree[1]}.jsonl"

    def leaves_file(self, tree: TreeName) -> Path:
        """The leaf hashes of a tree as the server gave them."""
        return self.directory / "trees" / f"{tree[0]}-{tree[1]}.leaves"

    def check(self) -> None:
        """Make sure that this is such a directory.

        Raises:
            Unreadable: it is not.
        """
        try:
            about = parsed(self.about_file.read_text("utf-8"))
            if about["format"] != FORMAT:
                raise ValueError(f"format {str(about['format'])[:40]!r}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unreadable(
                f"{self.directory} was not made by `placet audit fetch` of this version ({error})."
            ) from error

    def lists(self, tree: TreeName) -> tuple[Lists, int]:
        """A tree as it stands in the directory, and how many records are there with their bytes."""
        made: list[bytes] = []
        offsets: list[int] = []
        records = 0
        for leaf, offset, is_whole in _lines(self.records_file(tree)):
            made.append(leaf)
            offsets.append(offset)
            records += is_whole
        path = self.leaves_file(tree)
        data = path.read_bytes() if path.exists() else b""
        listed = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
        return Lists(f"{tree[0]}/{tree[1]}", listed, made, offsets), records


def read_heads(path: Path) -> list[Head]:
    """The heads in a file, one a line; also of a single head as a webhook got it.

    Raises:
        Unreadable: the file cannot be read, or a line is no head.
    """
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        return [head_of(parsed(line)) for line in lines]
    except (OSError, ValueError) as error:
        raise Unreadable(
            f"{path} holds no audit heads ({error}): give a file with one head a line."
        ) from error


def read_keys(path: Path) -> dict[str, bytes]:
    """The public keys of a file like the server's `keys/audit.json`.

    Raises:
        Unreadable: the file cannot be read, or holds something else.
    """
    try:
        found = {
            str(kid): b64decode(raw, validate=True) for kid, raw in parsed(path.read_text("utf-8")).items()
        }
        if not found or any(len(raw) != KEY_BYTES for raw in found.values()):
            raise ValueError("no Ed25519 keys")
        return found
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Unreadable(
            f"{path} holds no public keys ({error}): give JSON of key id to base64 of 32 bytes."
        ) from error


def keys_of(pairs: Any) -> dict[str, bytes]:
    """Public keys from `{kid: base64}`.

    Raises:
        ValueError: there are none, or they are something else.
    """
    try:
        found = {str(kid): b64decode(raw, validate=True) for kid, raw in pairs.items()}
    except (TypeError, AttributeError) as error:
        raise ValueError("not an object of key id to base64") from error
    if not found or any(len(raw) != KEY_BYTES for raw in found.values()):
        raise ValueError("no Ed25519 keys")
    return found


def read_proof(path: Path) -> dict[str, Any]:
    """The proof in a file of `placet audit prove`.

    Raises:
        Unreadable: the file cannot be read, or is no JSON object.
    """
    try:
        found = parsed(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} is no proof ({error}): make one with placet audit prove.") from error
    return found


def _lines(path: Path) -> Iterator[tuple[bytes, int, bool]]:
    """Each leaf's hash as its line makes it, the offset that it says, and whether its bytes are there."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                body = json.loads(line)
                offset, record = int(body["offset"]), body.get("record")
                if record is None:
                    yield bytes.fromhex(body["leaf"]), offset, False
                else:
                    # The offset beside a record is nothing that was signed, so it must be the record's own.
                    yield leaf_of(record) if record["offset"] == offset else NO_HASH, offset, True
            except MALFORMED:
                yield NO_HASH, -1, False

"""Reads proof files and the directories that `placet audit fetch` makes.

bundle.json                the format and the tenant
keys.json                  {kid: base64}: the public keys as the server gave them
heads.jsonl                one head per line, oldest first
trees/executions-3.jsonl   one leaf per line: {"index", "offset", "record"}, or "leaf" (hex) of a hidden record
trees/executions-3.leaves  the leaf hashes as the server gave them, 32 bytes each

Other files are not allowed, nor other members in a line, and each line has only one spelling: data that no signature
covers is reported, not ignored. Only white space between the tokens of bundle.json, keys.json and a proof is ignored.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from placet.audit.heads import MALFORMED, Head, TreeName, head_of
from placet.audit.leaf import leaf_of
from placet.audit.merkle import HASH_BYTES
from placet.audit.strict import base64_bytes, count, hex_hash, members, parsed, text, whole_lines
from placet.audit.tree import Lists

FORMAT = "placet.audit-bundle.v1"
KEY_BYTES = 32
# In place of the leaf hash of a line that cannot be read.
NO_HASH = b""


class _Line(NamedTuple):
    place: int
    offset: int
    leaf: bytes
    is_whole: bool


# With a place and an offset that no leaf has.
_NO_LINE = _Line(-1, -1, NO_HASH, is_whole=False)


class Unreadable(ValueError):
    """A file is not as it should be; `str()` names the file and says what to do."""


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
        """The file with the format and the tenant."""
        return self.directory / "bundle.json"

    def records_file(self, tree: TreeName) -> Path:
        """The leaves of a tree with their records."""
        return self.directory / "trees" / f"{tree[0]}-{tree[1]}.jsonl"

    def leaves_file(self, tree: TreeName) -> Path:
        """The leaf hashes of a tree as the server gave them."""
        return self.directory / "trees" / f"{tree[0]}-{tree[1]}.leaves"

    def tenant(self) -> str:
        """The tenant whose trail this claims to be.

        Raises:
            Unreadable: this is not such a directory.
        """
        try:
            about = members(parsed(self.about_file.read_text("utf-8")), {"format", "tenant"})
            if about["format"] != FORMAT:
                raise ValueError(f"format {str(about['format'])[:40]!r}")
            return text(about["tenant"])
        except (OSError, ValueError) as error:
            raise Unreadable(
                f"{self.directory} was not made by `placet audit fetch` of this version ({error})."
            ) from error

    def check_kinds(self) -> None:
        """Refuse entries that are neither files nor directories, before anything is read.

        Raises:
            Unreadable: a symbolic link, whose content is elsewhere, or a device; or a directory cannot be listed.
        """
        try:
            for path in self._entries():
                kind = path.lstat().st_mode
                if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                    what = "a symbolic link" if stat.S_ISLNK(kind) else "not a file"
                    name = path.relative_to(self.directory)
                    raise Unreadable(f"{name} in {self.directory} is {what}: a trail has only regular files.")
        except OSError as error:
            raise Unreadable(f"{self.directory} cannot be listed ({error}).") from error

    def strays(self, trees: Collection[TreeName]) -> list[str]:
        """The files and directories that do not belong to a trail with these trees, relative to the directory."""
        own = {self.about_file, self.keys_file, self.heads_file, self.directory / "trees"}
        own |= {self.records_file(tree) for tree in trees} | {self.leaves_file(tree) for tree in trees}
        found = [path for path in self._entries() if path not in own]
        # A directory that contains files is not reported itself; its files are.
        return sorted(
            str(path.relative_to(self.directory))
            for path in found
            if not any(path in other.parents for other in found)
        )

    def _entries(self) -> Iterator[Path]:
        for parent, directories, names in os.walk(self.directory, onerror=_raise):
            yield from (Path(parent) / name for name in (*directories, *names))

    def lists(self, tree: TreeName) -> Lists:
        """A tree as stored in the directory."""
        lines = list(_lines(self.records_file(tree)))
        path = self.leaves_file(tree)
        data = path.read_bytes() if path.exists() else b""
        return Lists(
            name=f"{tree[0]}/{tree[1]}",
            listed=[data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)],
            made=[line.leaf for line in lines],
            offsets=[line.offset for line in lines],
            indexes=[line.place for line in lines],
            hidden=[place for place, line in enumerate(lines) if not line.is_whole],
        )


def _raise(error: OSError) -> None:
    raise error


def read_heads(path: Path) -> list[Head]:
    """The heads in a file, one per line; also a single head as sent to a webhook.

    Raises:
        Unreadable: the file cannot be read, is empty, or has a line that is not a head.
    """
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        heads = [head_of(parsed(line)) for line in lines]
    except (OSError, ValueError) as error:
        raise Unreadable(
            f"{path} contains no audit heads ({error}): give a file with one head per line."
        ) from error
    if not heads:
        # With no kept head to compare with, the verification must not succeed.
        raise Unreadable(f"{path} is empty: give a file with one head per line.")
    return heads


def read_fetched_heads(path: Path) -> list[Head]:
    """The heads that `placet audit fetch` wrote: each line is byte for byte the signed one.

    Raises:
        Unreadable: the file cannot be read, has no head, or has a line with another spelling.
    """
    try:
        heads = []
        for line in whole_lines(path.read_bytes()):
            head = head_of(parsed(line))
            if head.line != line.encode():
                raise ValueError(f"head {head.number} is not written as it was signed")
            heads.append(head)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} is not as `placet audit fetch` wrote it: {error}.") from error
    if not heads:
        raise Unreadable(f"{path} contains no head: there is nothing to verify against.")
    return heads


def read_keys(path: Path) -> dict[str, bytes]:
    """The public keys of a file like the server's `keys/audit.json`.

    Raises:
        Unreadable: the file cannot be read, or contains something else.
    """
    try:
        return keys_of(parsed(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise Unreadable(
            f"{path} contains no public keys ({error}): give JSON of key id to base64 of 32 bytes."
        ) from error


def keys_of(pairs: Any) -> dict[str, bytes]:
    """Public keys from `{kid: base64}`.

    Raises:
        ValueError: there are none, or they are something else.
    """
    if type(pairs) is not dict:
        raise ValueError("not an object of key id to base64")
    found = {kid: base64_bytes(raw) for kid, raw in pairs.items()}
    if not found or any(len(raw) != KEY_BYTES for raw in found.values()):
        raise ValueError("not Ed25519 keys")
    return found


def read_proof(path: Path) -> dict[str, Any]:
    """The proof in a file of `placet audit prove`.

    Raises:
        Unreadable: the file cannot be read, or is not a JSON object.
    """
    try:
        found = parsed(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} is not a proof ({error}): make one with placet audit prove.") from error
    return found


def compact(value: Any) -> str:
    """A JSON value in the form of a trail's lines: no white space, and escapes beyond ASCII."""
    return json.dumps(value, separators=(",", ":"))


def _lines(path: Path) -> Iterator[_Line]:
    """Each line's leaf, with the place and offset that the line states."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield _line(line)
            except MALFORMED:
                yield _NO_LINE


def _line(data: bytes) -> _Line:
    (line,) = whole_lines(data)
    body = parsed(line)
    if compact(body) != line:
        raise ValueError("not in the form that `placet audit fetch` writes")
    if "record" not in body:
        members(body, {"index", "offset", "leaf"})
        return _Line(count(body["index"]), count(body["offset"]), hex_hash(body["leaf"]), is_whole=False)
    members(body, {"index", "offset", "record"})
    leaf = leaf_of(body["record"])
    # The offset beside a record is not signed, so it must be equal to the record's own.
    if body["record"]["offset"] != count(body["offset"]):
        raise ValueError("not the record's offset")
    return _Line(count(body["index"]), body["offset"], leaf, is_whole=True)

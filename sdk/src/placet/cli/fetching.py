"""Fetching a tenant's audit trail into a directory (`placet.audit.bundle`), continuing where the last fetch ended.

1. Keys that were added since (`placet keys rotate audit`). 2. Heads that follow those that are there. 3. Of each
tree of the newest head, the leaves that follow, up to its size.
A line that was cut short by a crash is fetched again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placet.audit.bundle import FORMAT, Bundle, Unreadable, compact, keys_of, read_keys
from placet.audit.heads import TreeName, canonical, head_of
from placet.audit.merkle import HASH_BYTES
from placet.errors import PlacetError
from placet.sync import Placet

PAGE = 500


class OtherBundle(PlacetError):
    """The directory contains another tenant's audit trail, or other files."""

    acts = "operator"


class KeyChanged(PlacetError):
    """The server gives another public key under an id that the directory has."""

    acts = "operator"


@dataclass
class Fetch:
    """One fetch. `told` is called with the number of leaves fetched and their total."""

    placet: Placet
    directory: Path
    told: Callable[[int, int], None]

    def run(self) -> dict[str, Any]:
        """Fetch what is missing.

        Raises:
            OtherBundle: the directory is of another tenant, or its keys cannot be read.
            KeyChanged: the server gives another key under a known id.
            PlacetError: the gateway refuses, does not answer, or does not answer with a head.
        """
        try:
            head = head_of(self.placet.fetch("/audit/head")["head"])
        except ValueError as error:
            raise PlacetError(f"The server gave no audit head: {error}") from error
        bundle = Bundle(self.directory)
        self._begin(bundle, head.tenant)
        count = self._heads(bundle, head.number)
        sizes = {tree: state.size for tree, state in head.trees.items()}
        total = sum(sizes.values())
        done = 0
        for tree, size in sizes.items():
            for there in self._leaves(bundle, tree, size):
                self.told(done + there, total)
            done += size
        return {"leaves": total, "heads": count, "directory": str(self.directory), "tenant": head.tenant}

    def _begin(self, bundle: Bundle, tenant: str) -> None:
        # The records contain what agents of the whole tenant proposed: only the owner can read a created directory.
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / "trees").mkdir(mode=0o700, exist_ok=True)
        _new(bundle.keys_file).unlink(missing_ok=True)
        about = {"format": FORMAT, "tenant": tenant}
        if bundle.about_file.exists():
            if json.loads(bundle.about_file.read_text("utf-8")) != about:
                raise OtherBundle(f"{self.directory} holds another audit trail: choose an empty directory.")
            self._add_keys(bundle)
            return
        _write_whole(bundle.keys_file, self.placet.fetch("/audit/keys")["keys"])
        bundle.about_file.write_text(json.dumps(about), "utf-8")

    def _add_keys(self, bundle: Bundle) -> None:
        """Add the server's newer keys. The newest head was fetched before, so its key is among them."""
        served = self.placet.fetch("/audit/keys")["keys"]
        try:
            now = keys_of(served)
        except ValueError as error:
            raise PlacetError(f"The server gave no audit keys: {error}") from error
        try:
            there = read_keys(bundle.keys_file)
        except Unreadable as error:
            raise OtherBundle(f"{error} Fetch into an empty directory.") from error
        for kid in sorted(there.keys() & now.keys()):
            if there[kid] != now[kid]:
                raise KeyChanged(
                    f"The server gives another public key for {kid} than {bundle.keys_file}. An id is never given to "
                    "another key: one of the two is not the installation's. Nothing was changed; compare both with "
                    "its keys/audit.json."
                )
        if more := {kid: served[kid] for kid in served if kid not in there}:
            _write_whole(bundle.keys_file, json.loads(bundle.keys_file.read_text("utf-8")) | more)

    def _heads(self, bundle: Bundle, newest: int) -> int:
        lines = _whole_lines(bundle.heads_file)
        cursor: str | None = "0"
        if lines:
            cursor = str(json.loads(lines[-1])["number"])
        with bundle.heads_file.open("ab") as file:
            while cursor is not None and int(cursor) < newest:
                page = self.placet.fetch("/audit/heads", cursor=cursor, limit=str(PAGE))
                # Not beyond the head whose leaves are fetched: newer heads have leaves that are not fetched.
                items = [head for head in page["items"] if head["number"] <= newest]
                file.write(b"".join(canonical(head) + b"\n" for head in items))
                lines += [b""] * len(items)
                cursor = page["next_cursor"]
        return len(lines)

    def _leaves(self, bundle: Bundle, tree: TreeName, size: int) -> Any:
        records, hashes = bundle.records_file(tree), bundle.leaves_file(tree)
        there = min(len(_whole_lines(records)), hashes.stat().st_size // HASH_BYTES if hashes.exists() else 0)
        _cut(records, there)
        with records.open("ab") as lines, hashes.open("ab") as leaves:
            leaves.truncate(there * HASH_BYTES)
            while there < size:
                query = {"topic": tree[0], "partition": str(tree[1]), "limit": str(min(PAGE, size - there))}
                if there:
                    query["cursor"] = str(there - 1)
                items = self.placet.fetch("/audit/records", **query)["items"]
                if not items:
                    raise PlacetError(
                        f"The server has only {there} of the {size} leaves of {tree[0]}/{tree[1]}."
                    )
                lines.write(b"".join(_line(item) for item in items))
                leaves.write(b"".join(bytes.fromhex(item["leaf"]) for item in items))
                there += len(items)
                yield there
        yield there


def _new(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _write_whole(path: Path, keys: dict[str, str]) -> None:
    """Write keys atomically: after a crash the file is either the old or the new one."""
    new = _new(path)
    new.write_text(json.dumps(keys, indent=1), "utf-8")
    os.replace(new, path)


def _line(item: dict[str, Any]) -> bytes:
    kept = {name: item[name] for name in ("index", "offset")}
    kept["record" if item["record"] else "leaf"] = item["record"] or item["leaf"]
    return compact(kept).encode() + b"\n"


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of a file; an incomplete last line is removed from it."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return whole.splitlines()


def _cut(path: Path, lines: int) -> None:
    there = _whole_lines(path)
    if len(there) > lines:
        path.write_bytes(b"".join(line + b"\n" for line in there[:lines]))

"""`placet audit fetch` again, after the installation's audit key was rotated: keys are added, and none is changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey, key_id, raw_public
from placet.audit.bundle import Bundle
from placet.audit.verify import verify_bundle, verify_path
from placet.cli.fetching import Fetch, KeyChanged, OtherBundle
from placet.errors import PlacetError
from placet.sync import Placet
from schemas.audit import Head, TreeHead, record_leaf, sign_head
from schemas.record import RawRecord
from tests.sdk.audit_bundles import KEY, KEYS, record_at, root_of
from tests.sdk.test_audit_merkle import shown

NEW_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
NEW = SigningKey(key_id(NEW_PRIVATE.public_key()), NEW_PRIVATE)
BOTH = KEYS | {NEW.kid: raw_public(NEW_PRIVATE.public_key())}


def in_base64(keys: dict[str, bytes]) -> dict[str, str]:
    return {kid: base64.b64encode(raw).decode() for kid, raw in keys.items()}


@dataclass
class Server:
    """What a gateway answers an auditor: records of one tree, and heads signed by whatever key is in use."""

    records: list[RawRecord] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=lambda: in_base64(KEYS))

    def grow(self, key: SigningKey) -> None:
        """Ten records more, and a head over them."""
        self.records += [record_at(len(self.records) + more) for more in range(10)]
        size = len(self.records)
        tree = TreeHead("executions", 3, self.records[-1].offset, size, root_of("executions", self.records))
        before = self.heads[-1] if self.heads else None
        self.heads.append(sign_head(key, "acme", "2026-01-01T00:00:00.000Z", before, [tree]))

    def fetch(self, path: str, **query: str) -> Any:
        if path == "/audit/keys":
            return {"keys": self.keys}
        bodies = [json.loads(head.line) for head in self.heads]
        if path == "/audit/head":
            return {"head": bodies[-1]}
        if path == "/audit/heads":
            return {"items": bodies[int(query["cursor"]) :], "next_cursor": None}
        assert path == "/audit/records"
        begin = int(query.get("cursor", "-1")) + 1
        return {"items": [_item(self.records, index) for index in range(begin, len(self.records))]}


def _item(records: Sequence[RawRecord], index: int) -> dict[str, Any]:
    record = records[index]
    leaf = record_leaf("executions", record).hex()
    return {"index": index, "offset": record.offset, "leaf": leaf, "record": shown(record, "executions")}


def fetched(server: Server, directory: Path) -> Bundle:
    Fetch(cast(Placet, server), directory, lambda done, of: None).run()
    return Bundle(directory)


@pytest.fixture
def server() -> Server:
    made = Server()
    made.grow(KEY)
    return made


def test_trail_fetched_again_after_a_rotation_has_the_new_key_and_is_verified(
    server: Server, tmp_path: Path
) -> None:
    bundle = fetched(server, tmp_path)
    assert verify_bundle(bundle, KEYS).is_verified
    server.keys = in_base64(BOTH)
    server.grow(NEW)
    fetched(server, tmp_path)
    assert verify_path(tmp_path, BOTH).is_verified
    assert json.loads(bundle.keys_file.read_text()) == in_base64(BOTH)
    server.keys = in_base64({NEW.kid: BOTH[NEW.kid]})
    fetched(server, tmp_path)
    assert json.loads(bundle.keys_file.read_text()) == in_base64(BOTH)


def test_key_changed_under_a_known_id_is_an_error_and_changes_nothing(server: Server, tmp_path: Path) -> None:
    bundle = fetched(server, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    server.keys = in_base64({KEY.kid: BOTH[NEW.kid], NEW.kid: BOTH[NEW.kid]})
    server.grow(NEW)
    with pytest.raises(KeyChanged, match=f"another public key for {KEY.kid}"):
        fetched(server, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert verify_bundle(bundle, KEYS).is_verified


def test_keys_that_are_none_are_told_by_their_side(server: Server, tmp_path: Path) -> None:
    bundle = fetched(server, tmp_path)
    server.keys = {NEW.kid: "short"}
    with pytest.raises(PlacetError, match="The server gave no audit keys"):
        fetched(server, tmp_path)
    bundle.keys_file.write_text("[]")
    server.keys = in_base64(BOTH)
    with pytest.raises(OtherBundle, match=r"keys\.json contains no public keys"):
        fetched(server, tmp_path)


def test_what_a_killed_fetch_left_of_its_keys_is_no_part_of_the_trail(server: Server, tmp_path: Path) -> None:
    bundle = fetched(server, tmp_path)
    (tmp_path / "keys.json.new").write_text('{"cut')
    fetched(server, tmp_path)
    assert verify_bundle(bundle, KEYS).is_verified


def test_verify_says_what_to_do_about_a_key_that_came_with_a_rotation(server: Server, tmp_path: Path) -> None:
    bundle = fetched(server, tmp_path)
    server.keys = in_base64(BOTH)
    server.grow(NEW)
    fetched(server, tmp_path)
    stale = [str(found) for found in verify_bundle(bundle, KEYS).findings if found.kind == "forged_signature"]
    assert len(stale) == 2
    assert all("get the installation's keys/audit.json again" in said for said in stale), stale
    bundle.keys_file.write_text(json.dumps(in_base64(KEYS)))
    (lacks,) = verify_bundle(bundle, BOTH).findings
    assert f"lacks the key {NEW.kid} that signed this: run `placet audit fetch`" in lacks.detail

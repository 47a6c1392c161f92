from __future__ import annotations

import base64
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.identity.keys import ISSUERS, KeysUnreadable, PublicKeyFile, load_or_create, load_public
from schemas.key_files import write_private

PRIVATE = ("issuer.pem", "gateway.pem", "grants.pem", "cursor.key")
PUBLIC = ("gateways.json", "issuers.json", "grants.json")


def test_load_or_create_first_call_writes_private_files(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()}
    assert set(files) == {*PRIVATE, *PUBLIC, ".lock"}
    assert set(files.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


def test_load_or_create_again_gives_the_same_keys(tmp_path: Path) -> None:
    first, second = load_or_create(tmp_path), load_or_create(tmp_path)
    assert (first.gateway.kid, first.issuer.kid, first.cursor) == (
        second.gateway.kid,
        second.issuer.kid,
        second.cursor,
    )


def test_load_or_create_from_many_processes_makes_one_set(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        all_keys = list(pool.map(lambda _: load_or_create(tmp_path), range(8)))
    assert len({(keys.gateway.kid, keys.issuer.kid, keys.cursor) for keys in all_keys}) == 1


def test_public_halves_published_as_documented(tmp_path: Path) -> None:
    keys = load_or_create(tmp_path)
    for name, key in (("gateways.json", keys.gateway), ("issuers.json", keys.issuer)):
        raw = key.private_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        assert json.loads((tmp_path / name).read_text()) == {key.kid: base64.b64encode(raw).decode()}
        assert set(load_public(tmp_path / name)) == {key.kid}


def test_load_or_create_another_gateways_key_kept(tmp_path: Path) -> None:
    first = load_or_create(tmp_path)
    (tmp_path / "gateway.pem").unlink()
    second = load_or_create(tmp_path)
    assert set(load_public(tmp_path / "gateways.json")) == {first.gateway.kid, second.gateway.kid}


@pytest.mark.parametrize("name", [*PRIVATE, *PUBLIC])
def test_load_or_create_damaged_file_named(tmp_path: Path, name: str) -> None:
    load_or_create(tmp_path)
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(KeysUnreadable, match=name):
        load_or_create(tmp_path)


def test_key_file_key_withdrawn_while_running_is_known_no_more(tmp_path: Path) -> None:
    kid = load_or_create(tmp_path).issuer.kid
    path = tmp_path / ISSUERS
    keys = PublicKeyFile(path)
    assert keys.get(kid) is not None
    write_private(path, b"{}")
    os.utime(path, ns=(1, 1))
    assert keys.get(kid) is None
    path.unlink()
    assert keys.get(kid) is None

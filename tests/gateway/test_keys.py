from __future__ import annotations

import base64
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.identity.keys import (
    ISSUERS,
    ROTATED,
    KeyStays,
    KeysUnreadable,
    PublishedKeyFile,
    load_or_create,
    load_public,
    rotate,
    withdraw,
)
from host.key_files import COPIES, DECIDER_KEY, DECIDERS, load_published, write_private

PRIVATE = ("issuer.pem", "gateway.pem", "grants.pem", "cursor.key")
PUBLIC = ("gateways.json", "issuers.json", "grants.json")


def test_load_or_create_first_call_writes_private_files(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()}
    assert set(files) == {*PRIVATE, *PUBLIC, COPIES, ".lock"}
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
    keys = PublishedKeyFile(path)
    assert keys.get(kid) is not None
    write_private(path, b"{}")
    os.utime(path, ns=(1, 1))
    assert keys.get(kid) is None
    path.unlink()
    assert keys.get(kid) is None


def made_again(keys_dir: Path, name: str) -> set[str]:
    load_published(keys_dir, *ROTATED[name])
    return set(load_public(keys_dir / ROTATED[name][1]))


@pytest.mark.parametrize("name", ROTATED)
def test_file_deleted_after_a_rotation_is_made_again_with_the_old_key(tmp_path: Path, name: str) -> None:
    before, now = rotate(tmp_path, name)
    (tmp_path / ROTATED[name][1]).unlink()
    assert made_again(tmp_path, name) == {before, now}


@pytest.mark.parametrize("name", ROTATED)
def test_file_that_lost_the_old_key_is_refused_until_it_is_restored_or_the_key_withdrawn(
    tmp_path: Path, name: str
) -> None:
    before, now = rotate(tmp_path, name)
    path = tmp_path / ROTATED[name][1]
    rows = json.loads(path.read_text())
    path.write_text(json.dumps({now: rows[now]}))
    with pytest.raises(KeysUnreadable, match=f"{path.name} has lost the key {before}"):
        made_again(tmp_path, name)
    path.unlink()
    assert made_again(tmp_path, name) == {before, now}


def test_key_taken_out_by_hand_is_withdrawn_from_the_copy_too(tmp_path: Path) -> None:
    before, now = rotate(tmp_path, "issuer")
    path = tmp_path / ISSUERS
    rows = json.loads(path.read_text())
    path.write_text(json.dumps({now: rows[now]}))
    withdraw(tmp_path, "issuer", before)
    path.unlink()
    assert set(load_or_create(tmp_path).issuers) == {now}
    with pytest.raises(KeyStays):
        withdraw(tmp_path, "issuer", before)


def test_damaged_file_is_to_be_deleted_only_where_it_comes_back_whole(tmp_path: Path) -> None:
    load_published(tmp_path, DECIDER_KEY, DECIDERS)
    (tmp_path / DECIDERS).write_text("")
    with pytest.raises(KeysUnreadable, match=r"delete it: it is then written again from .*published\.json"):
        load_published(tmp_path, DECIDER_KEY, DECIDERS)
    (tmp_path / COPIES).write_text("damaged, too")
    with pytest.raises(KeysUnreadable, match="restore it from a backup") as refused:
        load_published(tmp_path, DECIDER_KEY, DECIDERS)
    assert "delete" not in str(refused.value)


def test_keys_of_an_installation_of_before_are_copied_at_the_next_start(tmp_path: Path) -> None:
    before, now = rotate(tmp_path, "decider")
    (tmp_path / COPIES).unlink()
    assert made_again(tmp_path, "decider") == {before, now}
    (tmp_path / DECIDERS).unlink()
    assert made_again(tmp_path, "decider") == {before, now}


def test_damaged_copy_is_no_empty_one_and_nothing_is_written_over_it(tmp_path: Path) -> None:
    load_published(tmp_path, DECIDER_KEY, DECIDERS)
    known = (tmp_path / DECIDERS).read_bytes()
    write_private(tmp_path / COPIES, b'{"deciders.json": ')
    with pytest.raises(KeysUnreadable, match=r"published\.json is damaged"):
        load_published(tmp_path, DECIDER_KEY, DECIDERS)
    assert ((tmp_path / DECIDERS).read_bytes(), (tmp_path / COPIES).read_bytes()) == (
        known,
        b'{"deciders.json": ',
    )
    (tmp_path / COPIES).unlink()
    load_published(tmp_path, DECIDER_KEY, DECIDERS)
    assert json.loads((tmp_path / COPIES).read_bytes())[DECIDERS] == json.loads(known)

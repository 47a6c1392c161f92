"""The vault on SQLite and on PostgreSQL: sealed, found again, opened only where it belongs, and erased for good."""

from __future__ import annotations

import base64
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.vault import store
from gateway.vault.opening import open_database
from gateway.vault.store import VAULT_FILE, VaultDatabase, VaultUnavailable
from gateway.vault.vault import SAME_MAX, Damaged, Gone, NeverSealed, Owner, Vault
from gateway.vault.wrapping import (
    MASTER_KEY,
    MASTER_VARIABLE,
    MasterKey,
    MasterKeyFile,
    MasterKeyWrong,
    Wrapped,
    wrapper_of,
)
from host.key_files import KeysUnreadable
from projections.store.urls import identity_of, new_generation, open_view
from schemas.sensitive import commitment_of, is_placeholder

CALL = Owner("acme", "books", "x", "call", "c")
VALUE = "hunter2-" + "k" * 40


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'views.sqlite'}"
    return f"{request.getfixturevalue('postgres_url')}?schema=v{uuid4().hex[:12]}"


@pytest.fixture
def database(url: str, tmp_path: Path) -> Iterator[VaultDatabase]:
    found = open_database(tmp_path, url)
    yield found
    found.close()


@pytest.fixture
def keys(tmp_path: Path) -> MasterKeyFile:
    return MasterKeyFile(tmp_path / "keys")


@pytest.fixture
def vault(database: VaultDatabase, keys: MasterKeyFile) -> Vault:
    return Vault(database, keys, Clock())


def handle_of(vault: Vault, value: object = VALUE, by: str = "bot", owner: Owner = CALL) -> str:
    return vault.seal(owner, by, {"/token": value})["/token"]["handle"]


def test_sealed_value_is_opened_with_the_nonce_that_its_commitment_was_made_with(vault: Vault) -> None:
    sealed = vault.seal(CALL, "bot", {"/token": {"b": 1, "a": [None]}, "/pin": 1234})

    opened = vault.open(CALL, [("/token", sealed["/token"]["handle"]), ("/pin", sealed["/pin"]["handle"])])

    assert [one.value for one in opened] == [{"a": [None], "b": 1}, 1234]
    assert all(map(is_placeholder, sealed.values()))
    assert commitment_of(opened[0].nonce, '{"a":[null],"b":1}') == sealed["/token"]["commitment"]
    assert "1234" not in repr(opened)


def test_value_sealed_again_by_the_same_person_is_the_same_and_by_another_is_not(vault: Vault) -> None:
    first = handle_of(vault)

    assert handle_of(vault) == first
    assert handle_of(vault, VALUE + "!") != first
    assert handle_of(vault) == first
    assert handle_of(vault, by="rita") != first
    assert handle_of(vault, owner=CALL._replace(subject_id="d")) != first


@pytest.mark.parametrize("field", Owner._fields)
def test_value_asked_for_by_another_owner_is_gone(vault: Vault, field: str) -> None:
    handle = handle_of(vault)

    with pytest.raises(NeverSealed):
        vault.open(CALL._replace(**{field: "other"}), [("/token", handle)])
    with pytest.raises(NeverSealed):
        vault.open(CALL, [("/other", handle)])


def test_value_that_was_never_sealed_is_told_from_one_that_was_erased(vault: Vault) -> None:
    handle = handle_of(vault)
    vault.erase(CALL)

    with pytest.raises(NeverSealed, match="nothing was ever sealed"):
        vault.open(CALL, [("/token", "sec_" + "0" * 32)])
    with pytest.raises(Gone, match="were erased") as erased:
        vault.open(CALL, [("/token", handle)])
    assert not isinstance(erased.value, NeverSealed)


def test_value_moved_to_another_place_in_the_database_is_noticed(vault: Vault) -> None:
    handle = handle_of(vault)
    with vault.database.transaction("acme") as execute:
        execute("UPDATE sealed SET subject_id = ?", ("d",))

    with pytest.raises(Damaged):
        vault.open(CALL._replace(subject_id="d"), [("/token", handle)])


def test_erased_values_are_gone_and_sealed_anew_when_given_again(vault: Vault) -> None:
    handle = handle_of(vault)

    assert [vault.erase(CALL), vault.erase(CALL)] == [1, 1]
    assert vault.erase(CALL._replace(subject_id="d")) == 0
    with pytest.raises(Gone):
        vault.open(CALL, [("/token", handle)])
    assert handle_of(vault) != handle


def test_destroyed_data_key_erases_what_was_sealed_under_it_and_nothing_else(vault: Vault) -> None:
    handle = handle_of(vault)
    other = CALL._replace(tenant="globex")
    kept = handle_of(vault, owner=other)

    assert vault.destroy_key("acme", "books", "key-1")
    assert not vault.destroy_key("acme", "books", "key-1")
    assert not vault.destroy_key("acme", "books", "key-9")
    with pytest.raises(Gone):
        vault.open(CALL, [("/token", handle)])
    assert vault.open(other, [("/token", kept)])[0].value == VALUE
    again = handle_of(vault)

    assert vault.open(CALL, [("/token", again)])[0].value == VALUE
    assert [(key.name, key.destroyed_at_ms is None) for key in vault.data_keys("acme")] == [
        ("key-1", False),
        ("key-2", True),
    ]


def test_nothing_sealed_can_be_read_in_the_database(vault: Vault, tmp_path: Path) -> None:
    handle_of(vault)

    with vault.database.transaction("acme") as execute:
        rows = execute("SELECT * FROM sealed", ()) + execute("SELECT * FROM data_keys", ())
    found = b"".join(
        bytes(cell) if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row
    )

    assert b"acme" in found
    assert VALUE.encode() not in found


def test_rebuilt_views_that_take_the_live_ones_place_leave_the_vault_as_it_was(
    url: str, tmp_path: Path, keys: MasterKeyFile
) -> None:
    open_view(url).close()
    vault = Vault(open_database(tmp_path, url), keys, Clock())
    handle = handle_of(vault)
    rebuilt = new_generation(url)
    rebuilt.store.close()

    rebuilt.swap(identity_of(url), False)

    assert vault.open(CALL, [("/token", handle)])[0].value == VALUE
    vault.close()
    again = Vault(open_database(tmp_path, url), keys)
    assert again.open(CALL, [("/token", handle)])[0].value == VALUE
    again.close()


def test_orphans_are_those_that_the_log_never_named(vault: Vault) -> None:
    landed, orphan = handle_of(vault), handle_of(vault, "other")
    assert vault.unconfirmed(0) == []
    assert {one.handle for one in vault.unconfirmed(10**6)} == {landed, orphan}

    vault.settle([landed], [orphan])

    assert vault.unconfirmed(10**6) == []
    assert vault.open(CALL, [("/token", landed)])[0].value == VALUE
    with pytest.raises(Gone):
        vault.open(CALL, [("/token", orphan)])


def test_master_key_made_anew_while_the_vault_is_in_use_opens_what_was_there(
    vault: Vault, keys: MasterKeyFile
) -> None:
    handle = handle_of(vault)
    before = keys.current().name

    assert vault.rewrap(keys.prepare()) == 1
    assert vault.open(CALL, [("/token", handle)])[0].value == VALUE
    keys.put_in_force()

    assert keys.current().name != before
    assert [key.wrapped_by for key in vault.data_keys("acme")] == [keys.current().name]
    assert vault.open(CALL, [("/token", handle)])[0].value == VALUE


def test_values_under_another_master_key_are_not_opened_and_not_changed(vault: Vault) -> None:
    handle = handle_of(vault)
    stranger = Vault(vault.database, MasterKey(b"s" * 32))

    with pytest.raises(MasterKeyWrong, match="give the gateway the one"):
        stranger.open(CALL, [("/token", handle)])
    with pytest.raises(MasterKeyWrong):
        stranger.rewrap(MasterKey(b"t" * 32))
    assert vault.open(CALL, [("/token", handle)])[0].value == VALUE


def test_same_value_sealed_at_once_from_many_threads_is_sealed_once(vault: Vault) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(handle_of(vault))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len(set(found)) == 1


def test_files_of_the_vault_are_the_owners_alone_and_hold_nothing_erased(tmp_path: Path) -> None:
    keys = MasterKeyFile(tmp_path / "keys")
    vault = Vault(open_database(tmp_path, "sqlite:///views.sqlite"), keys)
    handle = handle_of(vault)
    with vault.database.transaction("acme") as execute:
        (box,) = execute("SELECT box FROM sealed", ())[0]
    files = [path for path in tmp_path.iterdir() if path.name.startswith(VAULT_FILE)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*files, tmp_path / "keys" / MASTER_KEY]} == {0o600}
    assert any(box in path.read_bytes() for path in files)

    vault.erase(CALL)

    assert handle
    assert not any(box in path.read_bytes() for path in files)


def test_erasure_beside_a_reader_of_the_file_is_not_said_to_be_done_before_it_is(
    tmp_path: Path, keys: MasterKeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCK_TIMEOUT_S", 0.05)
    vault = Vault(store.SqliteVaultDatabase(tmp_path / VAULT_FILE), keys, Clock())
    handle_of(vault)
    reader = sqlite3.connect(tmp_path / VAULT_FILE, isolation_level=None)
    reader.execute("BEGIN")
    ((box,),) = reader.execute("SELECT box FROM sealed").fetchall()
    files = [path for path in tmp_path.iterdir() if path.name.startswith(VAULT_FILE)]

    with pytest.raises(VaultUnavailable, match="another process"):
        vault.erase(CALL)
    with pytest.raises(VaultUnavailable, match="another process"):
        vault.destroy_key("acme", "books", "key-1")
    assert any(box in path.read_bytes() for path in files)
    reader.close()

    assert vault.erase(CALL) == 1
    assert not any(box in path.read_bytes() for path in files)
    vault.close()


def test_ever_new_values_for_one_place_are_compared_with_a_bounded_number(
    database: VaultDatabase, keys: MasterKeyFile
) -> None:
    opened: list[bytes] = []

    class Counting:
        def wrap(self, key: bytes) -> Wrapped:
            return keys.wrap(key)

        def unwrap(self, wrapped: bytes) -> bytes:
            opened.append(wrapped)
            return keys.unwrap(wrapped)

    vault = Vault(database, Counting(), Clock())
    handles = [handle_of(vault, f"guess-{number}") for number in range(SAME_MAX + 20)]
    opened.clear()
    assert handle_of(vault, "guess-new") not in handles
    assert len(opened) <= SAME_MAX + 1
    assert handle_of(vault, f"guess-{SAME_MAX + 10}") == handles[SAME_MAX + 10]


def test_master_key_of_the_environment_is_taken_out_of_it() -> None:
    environ = {MASTER_VARIABLE: base64.b64encode(b"m" * 32).decode()}

    wrapper = wrapper_of(Path("unused"), environ)

    assert wrapper == MasterKey(b"m" * 32)
    assert environ == {}
    assert "mmmm" not in repr(wrapper)


@pytest.mark.parametrize("text", ["hunter2", base64.b64encode(b"short").decode()])
def test_master_key_that_is_none_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(KeysUnreadable, match="32 bytes") as refused:
        wrapper_of(Path("unused"), {MASTER_VARIABLE: text})

    assert text not in str(refused.value)


def test_damaged_master_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / MASTER_KEY).write_bytes(b"short")

    with pytest.raises(KeysUnreadable, match="restore it"):
        MasterKeyFile(tmp_path).current()

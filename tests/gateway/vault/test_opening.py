"""A vault whose database is away is waited for; one that lets nobody in is told of at once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from gateway.problems import Problem
from gateway.vault.access import VaultAccess
from gateway.vault.opening import open_database
from gateway.vault.store import VAULT_FILE, VaultDamaged, VaultSilent, VaultUnavailable
from gateway.vault.vault import Vault
from gateway.vault.wrapping import MasterKeyFile
from ops.ports import free_port
from projections.store.port import ViewUnavailable
from projections.store.postgres import connect
from projections.store.refused import is_refused
from tests.projections.damaged import spoil
from tests.servers.postgres import frozen_postgres

GAVE_UP = "connection failed: connection to server at 127.0.0.1, port 5432 failed: "


def opening(*answers: Any) -> Callable[[], Any]:
    """Opens with these answers, one after the other."""
    left = list(answers)

    def open_vault() -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return open_vault


async def test_vault_access_waits_for_a_database_that_does_not_answer_now(vault_of_nothing: Any) -> None:
    away = VaultSilent("its database does not answer")
    vault_access = VaultAccess(opening(away, away, vault_of_nothing))
    starting = asyncio.create_task(vault_access.start())
    with pytest.raises(Problem, match="not open yet"):
        await vault_access.run(lambda vault: None)
    await asyncio.wait_for(starting, 5)
    assert await vault_access.run(lambda vault: vault) is vault_of_nothing
    await vault_access.stop()


async def test_vault_access_does_not_wait_for_a_database_that_lets_nobody_in() -> None:
    with pytest.raises(VaultUnavailable, match="refuses the connection"):
        await VaultAccess(opening(VaultUnavailable("its database refuses the connection"))).start()


@pytest.mark.parametrize("damage", ["a page", "half of it", "no header"])
def test_damaged_vault_is_told_with_its_file_and_what_to_do(tmp_path: Path, damage: str) -> None:
    file = tmp_path / VAULT_FILE
    open_database(tmp_path, "sqlite:///v").close()
    if damage == "a page":
        spoil(file, "sealed")
    elif damage == "half of it":
        os.truncate(file, file.stat().st_size // 2)
    else:
        file.write_bytes(b"\xff" * file.stat().st_size)
    with pytest.raises(VaultDamaged, match=rf"^The vault {file} is damaged .*: restore it from a backup"):
        open_database(tmp_path, "sqlite:///v")


async def test_damage_that_is_met_later_is_kept_for_readiness(vault_of_nothing: Any) -> None:
    vault_access = VaultAccess(opening(vault_of_nothing))
    await vault_access.start()

    def meet(vault: Vault) -> None:
        raise VaultDamaged("The vault v is damaged")

    with pytest.raises(Problem, match="cannot be read or written now"):
        await vault_access.run(meet)
    assert vault_access.damage == "The vault v is damaged"
    await vault_access.stop()


async def test_vault_that_cannot_be_used_says_why_and_when_it_can_be_used_again(
    vault_of_nothing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    vault_access = VaultAccess(opening(vault_of_nothing))
    await vault_access.start()
    caplog.set_level("INFO", "gateway.vault.access")

    with pytest.raises(Problem):
        await vault_access.run(lambda vault: time.sleep(0.3), within_s=0.05)
    with pytest.raises(Problem):
        await vault_access.run(away)
    for _ in range(2):
        await vault_access.run(lambda vault: None)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "the vault cannot be used: no answer within 0 s"),
        ("ERROR", "the vault cannot be used: its database does not answer"),
        ("WARNING", "the vault can be used again"),
    ]
    await vault_access.stop()


def away(vault: Vault) -> None:
    """Use a vault whose database is away."""
    raise VaultSilent("its database does not answer")


@pytest.fixture
def vault_of_nothing() -> Any:
    class Nothing:
        def close(self) -> None:
            """There is nothing to let go of."""

    return Nothing()


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ('FATAL:  password authentication failed for user "placet"', True),
        ("FATAL:  Passwort-Authentifizierung für Benutzer »placet« fehlgeschlagen", True),
        ('FATAL:  database "placet" does not exist', True),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "placet"', True),
        ("fe_sendauth: no password supplied", True),
        ("server does not support SSL, but SSL was required", True),
        ("SSL error: certificate verify failed", True),
        ("Connection refused", False),
        ("timeout expired", False),
        ("server closed the connection unexpectedly", False),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  the database system is not yet accepting connections", False),
        ("FATAL:  sorry, too many clients already", False),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", False),
        ("FATAL:  terminating connection due to administrator command", False),
    ],
)
def test_is_refused_tells_what_will_fail_again(told: str, refused: bool) -> None:
    assert is_refused(psycopg.OperationalError(GAVE_UP + told)) is refused


def test_vault_of_a_port_where_nobody_listens_is_silent(tmp_path: Path) -> None:
    with pytest.raises(VaultSilent):
        open_database(tmp_path, f"postgresql://placet@127.0.0.1:{free_port()}/placet")


@pytest.mark.postgres
@pytest.mark.parametrize("change", [("placet@", "nobody@"), ("/postgres", "/no_such_database")])
def test_vault_of_a_database_that_lets_nobody_in_is_told_at_once_without_its_address(
    postgres_url: str, tmp_path: Path, change: tuple[str, str]
) -> None:
    with pytest.raises(VaultUnavailable, match="refuses the connection") as told:
        open_database(tmp_path, postgres_url.replace(*change))
    assert not isinstance(told.value, VaultSilent)
    assert str(urlsplit(postgres_url).port) not in str(told.value)
    with pytest.raises(ViewUnavailable):
        connect(postgres_url.replace(*change))


@pytest.mark.postgres
async def test_vault_access_that_starts_while_its_database_is_frozen_opens_the_vault_after_the_thaw(
    postgres_url: str, tmp_path: Path
) -> None:
    keys = MasterKeyFile(tmp_path / "keys")
    vault_access = VaultAccess(lambda: Vault(open_database(tmp_path, f"{postgres_url}?schema=opening"), keys))
    with frozen_postgres(postgres_url):
        starting = asyncio.create_task(vault_access.start())
        since = time.monotonic()
        while time.monotonic() - since < 4.0:
            assert not starting.done(), starting
            await asyncio.sleep(0.1)
    await asyncio.wait_for(starting, 20)
    assert await vault_access.run(lambda vault: vault.data_keys("acme")) == []
    await vault_access.stop()

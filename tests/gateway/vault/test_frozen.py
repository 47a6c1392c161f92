"""Vault and views on a frozen PostgreSQL: told of in time, used again after the thaw, and nobody's end waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.problems import Problem
from gateway.vault.access import ANSWER_S, VaultAccess
from gateway.vault.opening import open_database
from gateway.vault.postgres import CONNECT_WITHIN_S
from gateway.vault.store import VaultUnavailable
from gateway.vault.vault import Owner, Vault
from gateway.vault.wrapping import MasterKeyFile
from projections.queries import postgres_moments
from projections.queries.views import open_views
from projections.store.port import ViewUnavailable
from projections.store.urls import open_view
from schemas.refusals import Refusal
from schemas.sensitive import Marked
from tests.servers.postgres import frozen_postgres

pytestmark = pytest.mark.postgres

CALL = Owner("acme", "books", "x", "call", "c")
MARKED = [Marked(("token",), "hunter2", {})]
# The machine may be busy.
MARGIN_S = 2.0


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=v{uuid4().hex[:12]}"


@pytest.fixture
def vault(url: str, tmp_path: Path) -> Iterator[Vault]:
    found = Vault(open_database(tmp_path, url), MasterKeyFile(tmp_path / "keys"))
    yield found
    found.close()


async def refused_after(vault_access: VaultAccess) -> float:
    since = time.monotonic()
    with pytest.raises(Problem) as refused:
        await vault_access.seal(CALL, "bot", MARKED)
    assert refused.value.code is Refusal.UNAVAILABLE
    assert refused.value.fields["retry_after"] == 1
    return time.monotonic() - since


async def test_frozen_vault_is_unavailable_in_time_and_is_used_again_after_the_thaw(
    vault: Vault, postgres_url: str
) -> None:
    vault_access = VaultAccess(lambda: vault)
    await vault_access.start()
    before = await vault_access.seal(CALL, "bot", MARKED)

    with frozen_postgres(postgres_url):
        # The second one finds a connection that has to be made anew.
        waits = await asyncio.gather(*(refused_after(vault_access) for _ in range(8)))
        waits.append(await refused_after(vault_access))

    assert max(waits) < ANSWER_S + MARGIN_S
    assert await vault_access.seal(CALL, "bot", MARKED) == before
    await vault_access.stop()


async def test_vault_access_ends_while_its_vault_is_frozen(vault: Vault, postgres_url: str) -> None:
    vault_access = VaultAccess(lambda: vault)
    await vault_access.start()
    with frozen_postgres(postgres_url):
        waiting = asyncio.create_task(refused_after(vault_access))
        await asyncio.sleep(0.2)
        since = time.monotonic()
        await vault_access.stop()
        await waiting
        assert time.monotonic() - since < MARGIN_S
        await ended("vault")


def test_gateway_that_is_frozen_in_a_transaction_does_not_keep_the_vault_from_the_others(
    vault: Vault, url: str, tmp_path: Path
) -> None:
    other = open_database(tmp_path, url)

    with (
        pytest.raises(VaultUnavailable),
        vault.database.transaction("acme", within_s=0.5),
        other.transaction("acme") as execute,
    ):
        # The one that holds the tenant's lock says nothing to the server any more, as a process that was stopped.
        assert execute("SELECT count(*) FROM sealed", ()) == [(0,)]
    other.close()

    assert vault.seal(CALL, "bot", {"/token": "hunter2"})


async def test_views_of_a_frozen_database_are_unavailable_in_time_and_read_again_after_the_thaw(
    postgres_url: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_moments, "SILENT_MAX_S", 1.0)
    open_view(url).close()
    views = open_views(url)
    before, _ = await views.read(lambda moment: moment.positions())

    with frozen_postgres(postgres_url):
        # More than there are connections and threads.
        since = time.monotonic()
        waiting = [views.read(lambda moment: moment.positions(), within_s=3.0) for _ in range(12)]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert time.monotonic() - since < 3.0 + MARGIN_S
        assert all(isinstance(one, ViewUnavailable) for one in found)

    assert (await views.read(lambda moment: moment.positions()))[0] == before
    views.close()


async def test_views_end_while_their_database_is_frozen(postgres_url: str, url: str) -> None:
    open_view(url).close()
    views = open_views(url)
    await views.read(lambda moment: moment.positions())
    with frozen_postgres(postgres_url):
        waiting = [asyncio.create_task(views.read(lambda moment: moment.positions())) for _ in range(4)]
        await asyncio.sleep(0.2)
        views.close()
        assert all(
            isinstance(one, ViewUnavailable) for one in await asyncio.gather(*waiting, return_exceptions=True)
        )
        await ended("views")


async def ended(threads: str) -> None:
    """Wait until no thread of a kind is left: the process waits for each at its end."""
    until = time.monotonic() + CONNECT_WITHIN_S + MARGIN_S
    while any(thread.name.startswith(threads) for thread in threading.enumerate()):
        assert time.monotonic() < until, "a thread still waits for the database"
        await asyncio.sleep(0.01)

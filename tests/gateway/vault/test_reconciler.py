"""What keeps the vault to the log: erasures known before it started, told while it runs, and orphans."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.live.reader import Found, Subject
from gateway.problems import Problem
from gateway.vault.access import VaultAccess
from gateway.vault.opening import open_database
from gateway.vault.reconciler import ORPHAN_AFTER_MS, VaultReconciler, erasure_of
from gateway.vault.store import VaultUnavailable
from gateway.vault.vault import Gone, Owner, Vault
from gateway.vault.wrapping import MasterKeyFile
from projections.queries.erasures import Erasure
from projections.store.port import ViewUnavailable
from schemas.events.definitions import DataKeyDestroyed
from schemas.events.holds import SecretsErased
from schemas.ids import derived_id
from schemas.record import Event, EventMeta
from schemas.refusals import Refusal

CALL = Owner("acme", "books", "x", "call", "c")
REQUEST = CALL._replace(kind="request", subject_id="q")


class Views:
    """What the views would answer: erasures by project, and rows by subject."""

    def __init__(self) -> None:
        self.erasures: list[Erasure] = []
        self.rows: dict[tuple[str, str], Any] = {}
        self.away = 0

    async def read(self, ask: Any) -> Any:
        if self.away:
            self.away -= 1
            raise ViewUnavailable("not yet")
        return list(self.erasures), None

    @property
    def lookups(self) -> Views:
        return self

    async def find(self, subject: Subject) -> Found:
        return Found(self.rows.get((subject.kind, subject.id)), {})


class Clock:
    """The gateway's time, when values are sealed."""

    def __init__(self) -> None:
        self.ms = time.time_ns() // 1_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vault(tmp_path: Path, clock: Clock) -> Iterator[Vault]:
    found = Vault(open_database(tmp_path, "sqlite:///v"), MasterKeyFile(tmp_path / "keys"), clock)
    yield found
    found.close()


@pytest.fixture
async def vault_access(vault: Vault) -> AsyncIterator[VaultAccess]:
    found = VaultAccess(lambda: vault)
    await found.start()
    yield found
    await found.stop()


def sealed(vault: Vault, owner: Owner = CALL, path: str = "/token") -> str:
    return vault.seal(owner, "bot", {path: f"hunter2 {path}"})[path]["handle"]


def is_gone(vault: Vault, handle: str, owner: Owner = CALL, path: str = "/token") -> bool:
    try:
        vault.open(owner, [(path, handle)])
    except Gone:
        return True
    return False


def event(body: Any, key: bytes = b"acme/books/x") -> Event:
    meta = EventMeta("e", 0, 0, 1, "c", "", "acme", 0)
    return Event(body, meta, key, 0, 0)


async def until(done: Any) -> None:
    async with asyncio.timeout(10):
        while not done():
            await asyncio.sleep(0.01)


async def test_erasure_recorded_before_a_crash_is_carried_out_at_the_next_start(
    vault: Vault, vault_access: VaultAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.vault.reconciler.AGAIN_AFTER_S", 0.01)
    handle, kept = sealed(vault), sealed(vault, CALL._replace(subject_id="d"))
    views = Views()
    views.erasures, views.away = [Erasure("acme", "books", "x", "c")], 2
    running = asyncio.create_task(VaultReconciler(vault_access, views).run())  # type: ignore[arg-type]

    await until(lambda: is_gone(vault, handle))

    assert not is_gone(vault, kept, CALL._replace(subject_id="d"))
    running.cancel()


async def test_erasures_that_the_tail_tells_are_carried_out(vault: Vault, vault_access: VaultAccess) -> None:
    handle, answer = sealed(vault), sealed(vault, REQUEST)
    reconciler = VaultReconciler(vault_access, Views())  # type: ignore[arg-type]
    running = asyncio.create_task(reconciler.run())

    reconciler.note([event(SecretsErased(call_id="c", request_id="", reason="", by="olga"))])
    await until(lambda: is_gone(vault, handle))
    assert not is_gone(vault, answer, REQUEST)
    destroyed = DataKeyDestroyed(name="key-1", project="books", reason="", by="root")
    reconciler.note([event(destroyed, b"acme/books/data-key/key-1")])
    await until(lambda: is_gone(vault, answer, REQUEST))

    running.cancel()


async def test_what_the_log_never_named_is_shredded_after_a_day_and_nothing_else(
    vault: Vault, vault_access: VaultAccess, clock: Clock
) -> None:
    now_ms = clock.ms
    clock.ms = now_ms - ORPHAN_AFTER_MS - 1
    named, old, lost = sealed(vault), sealed(vault, REQUEST, "/KEY"), sealed(vault, path="/lost")
    clock.ms = now_ms
    fresh = sealed(vault, path="/fresh")
    views = Views()
    views.rows["call", "c"] = {"arguments": f'{{"token":"{named}"}}', "response": None}
    # The hold of this execution's request: other executions may have one of the same id.
    hold_id = derived_id("hold", "acme", "books", "x", "request", "q")
    views.rows["request", hold_id] = {"arguments": None, "response": f'{{"KEY":"{old}"}}'}

    await VaultReconciler(vault_access, views).sweep()  # type: ignore[arg-type]

    assert not is_gone(vault, named)
    assert not is_gone(vault, old, REQUEST, "/KEY")
    assert not is_gone(vault, fresh, path="/fresh")
    assert is_gone(vault, lost, path="/lost")
    assert vault.mark() >= now_ms
    assert [one.handle for one in vault.unconfirmed(now_ms + 1)] == [fresh]


async def test_vault_access_whose_vault_does_not_answer_says_so_and_quotes_nothing(caplog: Any) -> None:
    def lost(*_: Any) -> Any:
        raise VaultUnavailable("the vault cannot be used now: disk I/O error")

    vault_access = VaultAccess(lambda: SimpleNamespace(seal=lost, close=lambda: None))  # type: ignore[arg-type,return-value]
    await vault_access.start()

    with pytest.raises(Problem) as refused:
        await vault_access.run(lambda vault: vault.seal(CALL, "bot", {"/token": "hunter2"}))

    assert refused.value.code is Refusal.UNAVAILABLE
    assert "hunter2" not in caplog.text + str(refused.value)
    await vault_access.stop()


def test_erasure_of_an_event_names_whose_values_it_is_about() -> None:
    body = SecretsErased(call_id="", request_id="q", reason="", by="olga")

    assert erasure_of(event(body)) == Erasure("acme", "books", "x", "", "q")

"""Heads posted outside, to a real HTTP server: each at least once, in order, also after failures and a restart."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from host.errors import SettingsRefused
from host.key_files import SigningKey, load_published
from projections.audit.head_files import HeadFiles, HeadsUnusable
from projections.audit.head_settings import checked_address, heads_dir
from projections.audit.settings import opened_audit
from projections.audit.webhook import Webhook
from schemas.audit import AUDIT_KEY, AUDIT_KEYS, CALL_CONTEXT, read_head, sign_head
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, many_runs


@dataclass
class Keeper:
    """Somebody outside who takes heads; `statuses` are answered first, then 200."""

    statuses: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            assert line.startswith(b"POST /heads ")
            headers: dict[str, str] = {}
            while (text := (await reader.readline()).decode().strip()) != "":
                name, _, value = text.partition(":")
                headers[name.lower()] = value.strip()
            body = await reader.readexactly(int(headers["content-length"]))
            status = self.statuses.pop(0) if self.statuses else 200
            if status == 200:
                self.bodies.append(body)
                self.signatures.append(headers["placet-signature"])
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(keeper: Keeper) -> AsyncIterator[str]:
    server = await asyncio.start_server(keeper.serve, "127.0.0.1", keeper.port)
    keeper.port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{keeper.port}/heads"
    finally:
        server.close()


@asynccontextmanager
async def posting(webhook: Webhook) -> AsyncIterator[None]:
    task = asyncio.create_task(webhook.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


def write_heads(files: HeadFiles, key: SigningKey, count: int) -> None:
    for _ in range(count):
        files.append(sign_head(key, "acme", "2026-01-01T00:00:00.000Z", files.newest("acme"), []))


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return load_published(tmp_path / "keys", AUDIT_KEY, AUDIT_KEYS)


@pytest.fixture
def files(tmp_path: Path) -> HeadFiles:
    (tmp_path / "heads").mkdir()
    return HeadFiles(tmp_path / "heads")


def numbers(keeper: Keeper) -> list[int]:
    return [read_head(body.decode()).number for body in keeper.bodies]


async def test_heads_are_posted_in_order_until_each_was_taken(files: HeadFiles, key: SigningKey) -> None:
    write_heads(files, key, 3)
    keeper = Keeper(statuses=[500, 200, 302, 429])
    async with serving(keeper) as url:
        webhook = Webhook(url, files, key, retry_first_s=0.01)
        async with posting(webhook):
            await until(lambda: numbers(keeper) == [1, 2, 3])
            write_heads(files, key, 1)
            webhook.woken.set()
            await until(lambda: numbers(keeper) == [1, 2, 3, 4])


async def test_restart_goes_on_after_the_last_head_that_was_taken(files: HeadFiles, key: SigningKey) -> None:
    write_heads(files, key, 2)
    keeper = Keeper()
    async with serving(keeper) as url:
        async with posting(Webhook(url, files, key)):
            await until(lambda: numbers(keeper) == [1, 2])
            await until(lambda: "2" in (files.directory / "webhook.json").read_text())
        write_heads(files, key, 1)
        async with posting(Webhook(url, files, key)):
            await until(lambda: numbers(keeper) == [1, 2, 3])


async def test_keeper_that_is_away_gets_them_when_it_is_back(files: HeadFiles, key: SigningKey) -> None:
    write_heads(files, key, 1)
    keeper = Keeper()
    async with serving(keeper) as url:
        pass
    async with posting(Webhook(url, files, key, retry_first_s=0.01)):
        await asyncio.sleep(0.05)
        async with serving(keeper):
            await until(lambda: numbers(keeper) == [1])


async def test_call_is_signed_over_the_whole_body(files: HeadFiles, key: SigningKey) -> None:
    write_heads(files, key, 1)
    keeper = Keeper()
    async with serving(keeper) as url, posting(Webhook(url, files, key)):
        await until(lambda: keeper.bodies != [])
    kid, _, signature = keeper.signatures[0].partition(".")
    assert kid == key.kid
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    key.private_key.public_key().verify(raw, CALL_CONTEXT + keeper.bodies[0])


@pytest.mark.parametrize(
    "url", ["ftp://keeper/heads", "keeper.example", "https://u:secret@keeper/heads", "https://"]
)
def test_address_that_cannot_be_posted_to_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        checked_address(url)
    assert "secret" not in str(refused.value)


async def test_heads_that_a_projector_signs_are_posted_as_its_settings_say(
    filler: Filler, tmp_path: Path
) -> None:
    keeper = Keeper()
    settings = {"data_dir": str(tmp_path), "keys_dir": str(tmp_path / "keys"), "audit_head_events": "1"}
    async with serving(keeper) as url, opened_audit(settings | {"audit_webhook": url}) as audit:
        for count in (1, 2):
            filler.fill(many_runs(LogBuilder(1).claim_all(), 5 * count, seed=6))
            audit.head_signer.begin(filler.store)
            audit.head_signer.turn(filler.store, is_caught_up=True)
            await until(lambda: numbers(keeper) == list(range(1, count + 1)))  # noqa: B023
    assert HeadFiles(heads_dir(settings)).newest("acme") == read_head(keeper.bodies[-1].decode())


async def test_webhook_that_cannot_go_on_ends_the_projector(tmp_path: Path) -> None:
    settings = {
        "data_dir": str(tmp_path),
        "keys_dir": str(tmp_path / "keys"),
        "audit_webhook": "http://127.0.0.1:9",
    }
    heads_dir(settings).mkdir(parents=True)
    (heads_dir(settings) / "acme.jsonl").write_text("no head\n")
    with pytest.raises(HeadsUnusable, match="not an audit head"):
        await _run_until_failure(settings)


async def _run_until_failure(settings: dict[str, str]) -> None:
    ended = asyncio.Event()
    async with opened_audit(settings) as audit:
        audit.on_failure = ended.set
        async with asyncio.timeout(10):
            await ended.wait()

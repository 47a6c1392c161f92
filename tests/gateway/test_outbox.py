from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.asking.outbox import Outbox, QueuedCommand
from gateway.kafka.commands import BATCH_MAX_BYTES, batches
from log.errors import AppendFailed
from log.places import TopicPartition
from schemas.actor import Actor
from schemas.commands import PauseExecution
from schemas.envelope import Draft, Signer, Verifier
from schemas.ids import execution_key
from schemas.record import OutRecord, RawRecord
from schemas.topics import partition_of

PARTITIONS = 4
PRIVATE = Ed25519PrivateKey.generate()
ANNA = Actor(subject="anna", tenant="acme", project="books", roles=("reviewer",))


@dataclass
class Appended:
    """Every append: where and what. The one to `fails_at` is lost."""

    fails_at: int = -1
    calls: list[tuple[str, int, list[OutRecord]]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def append(self, topic: str, partition: int, records: Sequence[OutRecord]) -> None:
        await self.gate.wait()
        if partition == self.fails_at:
            raise AppendFailed(TopicPartition(topic, partition), "the broker is away")
        self.calls.append((topic, partition, list(records)))


def _outgoing(name: str, failures: list[str]) -> QueuedCommand:
    draft = Draft(PauseExecution(), ANNA, f"id-{name}", execution_key("acme", "books", name))
    failed = lambda reason: failures.append(f"{name}: {reason}")  # noqa: E731
    return QueuedCommand(draft, "commands", PARTITIONS, lambda: None, failed)


async def _run(outbox: Outbox, log: Appended, number: int) -> None:
    running = asyncio.create_task(outbox.run())
    log.gate.set()
    async with asyncio.timeout(5):
        while sum(len(records) for _, _, records in log.calls) < number:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_run_commands_of_one_turn_share_a_signature_and_are_believed() -> None:
    log = Appended()
    outbox = Outbox(Signer("gw", PRIVATE), log)
    failures: list[str] = []
    for number in range(20):
        outbox.put(_outgoing(f"e{number}", failures))
    await _run(outbox, log, 20)
    assert failures == []
    verifier = Verifier({"gw": PRIVATE.public_key()}.get, lambda token, at_ms: ANNA)
    signatures = set()
    for topic, partition, records in log.calls:
        assert topic == "commands"
        for offset, record in enumerate(records):
            assert partition == partition_of(record.key, PARTITIONS)
            command = verifier.read(RawRecord(partition, offset, 0, *record))
            assert command.actor == ANNA
            signatures.add(dict(record.headers)["placet_signature"].rpartition(b".")[2])
    assert len(signatures) == 1


async def test_run_append_that_fails_is_told_to_its_commands_only() -> None:
    names = [f"e{number}" for number in range(8)]
    homes = {name: partition_of(execution_key("acme", "books", name), PARTITIONS) for name in names}
    lost = homes["e0"]
    log = Appended(fails_at=lost)
    outbox = Outbox(Signer("gw", PRIVATE), log)
    failures: list[str] = []
    for name in names:
        outbox.put(_outgoing(name, failures))
    await _run(outbox, log, sum(home != lost for home in homes.values()))
    assert {text.partition(":")[0] for text in failures} == {name for name in names if homes[name] == lost}


def test_batches_cut_before_the_ceiling_and_keep_the_order() -> None:
    records = [OutRecord(b"k", bytes([n % 256]) * 300_000, ()) for n in range(7)]
    parts = list(batches(records))
    assert [record for part in parts for record in part] == records
    assert all(sum(record.size_bytes() for record in part) <= BATCH_MAX_BYTES for part in parts)


def test_batches_one_record_over_the_ceiling_goes_alone() -> None:
    big = OutRecord(b"k", b"x" * (BATCH_MAX_BYTES + 1), ())
    small = OutRecord(b"k", b"x", ())
    assert list(batches([small, big, small])) == [[small], [big], [small]]

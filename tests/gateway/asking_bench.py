"""An asker on a log that is written by hand: what was sent, what the views know, and a trace when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.asking.asker import Ask, Asker, CommandIds, CommandName, name_of
from gateway.asking.outbox import Outbox
from gateway.live.live import Live
from gateway.live.outcome import Outcome
from gateway.live.waiters import Wanted
from log.errors import AppendFailed
from log.places import TopicPartition
from schemas import codec
from schemas.actor import Actor
from schemas.commands import ConsumeGrant
from schemas.envelope import Signer, command_digest
from schemas.record import OutRecord
from tests.gateway.facts import DIGEST, Partition, key_of, new_live

KEY = key_of("e1")
BODY = ConsumeGrant(call_id="c1", digest=DIGEST, attempt_id="a1")
OTHER = ConsumeGrant(call_id="c1", digest=DIGEST, attempt_id="a2")
BOT = Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing")
IDS = CommandIds.of_gateways(b"of these tests")
KEYED = name_of(BOT, "/route", "key-1")
CHOSEN = name_of(BOT, "/route", None, ("c1",))


@dataclass
class CommandTopic:
    """What was appended, in order; or a topic that cannot be reached."""

    fails: bool = False
    hangs: bool = False
    appended: list[OutRecord] = field(default_factory=list)

    async def append(self, topic: str, partition: int, records: Sequence[OutRecord]) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise AppendFailed(TopicPartition(topic, partition), "nobody answers")
        self.appended += records

    def ids(self) -> list[str]:
        return [dict(record.headers)["ce_id"].decode() for record in self.appended]


@dataclass
class PastAnswers:
    """What the views remember."""

    known: dict[str, Outcome] = field(default_factory=dict)

    async def answers(self, wanted: list[Wanted]) -> dict[Wanted, Outcome]:
        return {one: self.known[one.command_id] for one in wanted if one.command_id in self.known}


@dataclass
class Bench:
    live: Live
    partition: Partition
    topic: CommandTopic
    past: PastAnswers
    asker: Asker

    def ask(
        self,
        body: ConsumeGrant = BODY,
        name: CommandName = KEYED,
        timeout_s: float = 5.0,
        anew: bool = False,
    ) -> asyncio.Task[Outcome | None]:
        ask = Ask(body, BOT, KEY, "commands", 3, name, anew)
        return asyncio.create_task(self.asker.answer(ask, timeout_s))

    async def sent(self, number: int) -> list[str]:
        async with asyncio.timeout(5):
            while len(self.topic.appended) < number:
                await asyncio.sleep(0.001)
        return self.topic.ids()


def digest_of(body: ConsumeGrant = BODY) -> str:
    return command_digest(codec.encode(body))


@asynccontextmanager
async def open_bench() -> AsyncIterator[Bench]:
    live, _ = new_live()
    topic, past = CommandTopic(), PastAnswers()
    outbox = Outbox(Signer("gateway", Ed25519PrivateKey.generate()), topic)
    asker = Asker(live, outbox, past, IDS)
    tasks = [asyncio.create_task(outbox.run()), asyncio.create_task(asker.run())]
    yield Bench(live, Partition(live), topic, past, asker)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

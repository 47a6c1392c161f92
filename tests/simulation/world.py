"""One seed, one world: deciders, gateways, agents and people on a bad network, for some simulated minutes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from log.memory.log import MemoryLog
from log.places import TopicPartition
from ops.checker import Violation, check, check_view, counting_facts, read_log
from ops.checker.facts import Fact
from schemas.actor import Actor
from schemas.envelope import Signer, Verifier
from schemas.record import RawRecord
from schemas.topics import Topics
from services.domain.execution import calls, turns, verdicts
from services.runtime import command_forwarder, executions_partition, snapshots, writer
from tests.simulation import loop
from tests.simulation.agents import Agent
from tests.simulation.conversations import Conversation
from tests.simulation.definitions import SHARED
from tests.simulation.faults import Faults
from tests.simulation.gateway import Gateway
from tests.simulation.history import History
from tests.simulation.nemesis import Broker, Nemesis
from tests.simulation.people import REVIEWERS, Operator, Reviewer
from tests.simulation.planters import Planter
from tests.simulation.poison import Poisoner, deadly, is_poison
from tests.simulation.process import Process, ProcessLog
from tests.simulation.replay import check_replay, is_under_way
from tests.simulation.services import Service
from tests.simulation.stewards import Steward
from tests.simulation.trust_role import TrustRole
from tests.simulation.turns_seen import check_answered, how_a_turn_went_on
from tests.simulation.workers import Machine

START_MS = 1_780_000_000_000
HARM_S = 60.0
# After the last fault: batches still on their way, holds, grants and runs come to their ends.
SETTLE_S = 240.0
# From then on workers of conversations take no detours, so that every turn can end.
CALM_AFTER_S = 30.0
# How long a gateway may take to see what stands in the log.
LOOK_S = 1.0
LOOKS_MAX = 5


@dataclass
class Outcome:
    """What became of one world."""

    seed: int
    violations: list[Violation]
    history: History
    records: Mapping[TopicPartition, Sequence[RawRecord]]
    happened: Counter[str] = field(default_factory=Counter)

    def digest(self) -> str:
        """Names every byte of every record of the log."""
        whole = hashlib.sha256()
        for tp, raws in sorted(self.records.items()):
            for raw in raws:
                whole.update(repr((tp, raw)).encode())
        return whole.hexdigest()


@dataclass
class World:
    """Everything that lives in one world."""

    seed: int
    rng: random.Random = field(init=False)
    partitions: int = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.partitions = self.rng.randint(1, 3)
        self.broker = Broker(START_MS)
        self.log = MemoryLog(Topics(), self.partitions, self.broker.now_ms)
        self.faults = Faults(self.rng)
        self.history = History(self.broker.now_ms)
        self.key = Ed25519PrivateKey.from_private_bytes(self.rng.randbytes(32))
        self.decider_key = Ed25519PrivateKey.from_private_bytes(self.rng.randbytes(32))
        self.happened = self.faults.happened
        # Sometimes somebody gave two deciders the same name.
        self.are_twins = self.rng.random() < 0.1
        self.machines = [self._machine(i) for i in range(self.rng.randint(1, 3))]
        self.gateways = [self._gateway(f"gateway-{i}") for i in range(2)]
        self.nemesis = Nemesis(self.log, self.machines, self.broker, self.rng, self.happened)
        self.effects: Counter[str] = Counter()
        self.is_poisoned = self.rng.random() < 0.35
        self.trust = TrustRole(self.log, self.partitions, random.Random(f"trust {self.seed}"))

    async def live(self) -> Outcome:
        """Let the world run to its rest, and look at what is left."""
        tails = [asyncio.create_task(gateway.follow()) for gateway in self.gateways]
        for machine in self.machines[: self.rng.randint(1, len(self.machines))]:
            machine.start()
        operator = Operator(self.gateways[0], self.rng, self._has_stewards, self._takes_accounts)
        await operator.publish_basics(*self._shared)
        agents = [self._agent(i) for i in range(self.rng.randint(2, 6))]
        # Rules are made of payments: stewards without any would have nothing to do.
        payers = self.rng.choice((0, 3, 3)) or 3 * self._has_stewards
        agents += [self._payer(i) for i in range(payers)]
        agents += [self._bookkeeper() for _ in self._shared]
        keys = [agent.key for agent in agents]
        runs = [asyncio.create_task(agent.run()) for agent in agents]
        runs += [asyncio.create_task(service.run()) for service in self._services()]
        people = [asyncio.create_task(self._reviewer(actor).run()) for actor in REVIEWERS]
        people += [asyncio.create_task(steward.run()) for steward in self._stewards()]
        conversations, calm = self._conversations(), asyncio.Event()
        keys += [each.key for each in conversations]
        runs += [asyncio.create_task(task) for each in conversations for task in each.tasks(calm)]
        steering = [asyncio.create_task(operator.run(keys))]
        planter = Planter(self.gateways[0], random.Random(f"planter {self.seed}"))
        if self._has_planted_calls:
            steering.append(asyncio.create_task(planter.run()))
            tails.append(asyncio.create_task(self.trust.run()))
        if self.is_poisoned:
            steering.append(asyncio.create_task(Poisoner(self.gateways[0], self.rng).run(keys)))

        await self.nemesis.run(HARM_S)
        self.faults.stop()
        self.nemesis.mend()
        if conversations:
            asyncio.get_running_loop().call_later(CALM_AFTER_S, calm.set)
        await _cancel(steering)
        await operator.resume_all([*keys, *planter.keys])
        await asyncio.sleep(SETTLE_S / 2)
        await _cancel([*runs, *people])
        await operator.report_all([*keys, *planter.keys])
        await asyncio.sleep(SETTLE_S / 2)

        outcome = await self._look([each.key.decode() for each in conversations])
        await _cancel(tails)
        for machine in self.machines:
            await machine.end()
        return outcome

    async def _look(self, conversations: Sequence[str]) -> Outcome:
        records = await read_log(self.log)
        for _ in range(LOOKS_MAX):
            # A sign of life may be on its way just then.
            if not is_under_way(self.machines, records):
                break
            await asyncio.sleep(LOOK_S)
            records = await read_log(self.log)
        now_ms = self.broker.now_ms()
        violations = check(records, self.history.lines, at_rest_ms=now_ms)
        facts = counting_facts(records, self.log.topics.executions)
        violations += check_replay(self.machines, records)
        violations += check_answered(facts, conversations)
        if self._has_planted_calls:
            violations += self.trust.check(records, self.happened)
        await asyncio.sleep(LOOK_S)
        ends = {
            tp.partition: len(raws) for tp, raws in records.items() if tp.topic == self.log.topics.executions
        }
        for gateway in self.gateways:
            counted = [place for place in gateway.counted if place[1] < ends[place[0]]]
            violations += check_view(gateway.name, counted, facts)
        for fact in (*facts, *counting_facts(records, self.log.topics.definitions)):
            self.happened[fact.type] += 1
            if (how := how_a_turn_went_on(fact)) is not None:
                self.happened[how] += 1
        every = sum(len(raws) for tp, raws in records.items() if tp.topic == self.log.topics.executions)
        self.happened["not_counting"] += every - len(facts)
        self._count_abandoned(facts, records)
        self.happened["effects"] += sum(self.effects.values())
        return Outcome(self.seed, violations, self.history, records, self.happened)

    def _count_abandoned(
        self, facts: Sequence[Fact], records: Mapping[TopicPartition, Sequence[RawRecord]]
    ) -> None:
        commands = self.log.topics.commands
        for fact in facts:
            if fact.type == "CommandAbandoned":
                raw = records[TopicPartition(commands, fact.tp.partition)][fact.command_offset]
                self.happened["poison_abandoned" if is_poison(raw) else "innocent_abandoned"] += 1

    def _machine(self, number: int) -> Machine:
        return Machine(
            name=f"decider-{number}",
            member="decider" if self.are_twins else f"decider-{number}",
            log=self.log,
            faults=self.faults,
            rng=self.rng,
            verifier=self._verifier,
            signer=Signer("decider", self.decider_key, b"/placet/decider"),
            partitions=self.partitions,
            clock_ahead_ms=self.rng.choice((0, 0, -1_000, 1_000)),
            now_ms=self.broker.true_ms,
            happened=self.happened,
        )

    def _verifier(self) -> Verifier:
        def no_tokens(text: str, at_ms: int) -> Actor:
            raise ValueError("no issuer is known here")

        deciders = {"decider": self.decider_key.public_key()}
        return Verifier({"gateway": self.key.public_key()}.get, no_tokens, deciders.get)

    def _gateway(self, name: str) -> Gateway:
        reached = ProcessLog(self.log, Process(name), self.faults)
        return Gateway(name, reached, Signer("gateway", self.key), self.partitions, self.history)

    def _agent(self, number: int) -> Agent:
        return Agent(f"x{number}", *self._two_gateways(), self.rng, self.effects, self.seed)

    def _payer(self, number: int) -> Agent:
        """Whoever pays again and again is soon paid for by a standing rule."""
        return Agent(f"p{number}", *self._two_gateways(), self.rng, self.effects, self.seed, payments=8)

    @property
    def _shared(self) -> tuple[str, ...]:
        """The tool that two people share, in some worlds; the others stay as they are without it."""
        return (SHARED,) if self.seed % 4 == 3 else ()

    def _bookkeeper(self) -> Agent:
        """Asks two people again and again, who may agree on what is remembered."""
        return Agent("b0", *self._two_gateways(), self.rng, self.effects, self.seed, payments=10, pays=SHARED)

    def _conversations(self) -> list[Conversation]:
        """In some worlds, of every other kind; the others stay as they are without them."""
        count = (self.seed // 3) % 2 + 1 if self.seed % 3 == 2 else 0
        return [
            Conversation(f"t{i}", tuple(self.gateways), self.effects, f"{self.seed} t{i}")
            for i in range(count)
        ]

    def _services(self) -> list[Service]:
        """In some worlds; the others stay as they are without it."""
        return (
            [Service(self.gateways[0], random.Random(f"service {self.seed}"))] if self.seed % 8 == 5 else []
        )

    @property
    def _has_stewards(self) -> bool:
        """Whether rules take another person's word here: in some worlds; the others stay as they are without it."""
        return self.seed % 8 in (1, 7)

    @property
    def _takes_accounts(self) -> bool:
        """Whether rules and delegations name an account that is taken away: in some worlds, as above."""
        return self.seed % 8 in (2, 6)

    @property
    def _has_planted_calls(self) -> bool:
        """Whether calls are planted here, and a trust role counts: in some worlds, as above."""
        return self.seed % 12 == 3

    def _stewards(self) -> list[Steward]:
        people = REVIEWERS if self._has_stewards else ()
        return [
            Steward(actor, self.gateways[0], random.Random(f"steward {actor.subject} {self.seed}"))
            for actor in people
        ]

    def _two_gateways(self) -> tuple[Gateway, Gateway]:
        one = self.rng.choice(self.gateways)
        return one, next(gateway for gateway in self.gateways if gateway is not one)

    def _reviewer(self, actor: Actor) -> Reviewer:
        return Reviewer(actor, self.rng.choice(self.gateways), self.rng, self._takes_accounts)


def run_world(seed: int) -> Outcome:
    """The world of a seed, from its beginning to its rest."""

    async def main() -> Outcome:
        return await World(seed).live()

    with small_limits(), deadly() as deaths:
        outcome = loop.run(main)
    outcome.violations += deaths.violations()
    outcome.happened["poison_deaths"] += deaths.of.total()
    outcome.happened["most_poison_deaths"] = max(deaths.of.values(), default=0)
    return outcome


@contextlib.contextmanager
def small_limits() -> Iterator[None]:
    """Reach within minutes, and with few records, what else takes days and thousands."""
    changes: list[tuple[Any, str, Any]] = [
        (snapshots, "WORTHWHILE_EVENTS", 25),
        (executions_partition, "RECENT_MAX", 2),
        (command_forwarder, "RETRY_S", 0.2),
        (writer, "ALIVE_EVERY_RECORDS", 40),
        (verdicts, "GRANT_TTL_MS", 40_000),
        (calls, "RUN_TIMEOUT_MS", 20_000),
        (turns, "TURN_LEASE_MS", 10_000),
        (turns, "TURN_LAPSES_MAX", 2),
        (turns, "TURNS_OPEN_MAX", 3),
    ]
    logger = logging.getLogger("services")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.ExitStack() as stack:
            for place, name, value in changes:
                stack.enter_context(patch.object(place, name, value))
            yield
    finally:
        logger.setLevel(before)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result

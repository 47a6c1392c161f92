"""Logs in memory that the decider's own code decided, and what a backtest finds in them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from log.memory.log import MemoryLog
from log.places import TopicPartition
from ops.backtest.found import Found, Judged
from ops.backtest.history import Candidate
from ops.backtest.partition import Window
from ops.backtest.run import Question, backtest
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical, tool_version_of
from schemas.events.definitions import PolicyPublished, PolicyRetired, ToolPublished
from schemas.events.log import DefinitionsAdopted, WriterClaimed
from schemas.headers import event_record
from schemas.ids import definition_key
from schemas.message import Message
from schemas.policy_document import policy_from_value
from schemas.record import EventMeta, OutRecord
from schemas.topics import Topics
from schemas.trust_score import TrustFunction
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import KIND_OF, evolve
from services.runtime.definitions_book import TrustFor, unknown_trust
from tests.domain.steps import decided
from tests.domain.trusting import SEED
from tests.domain.world import BOT, RITA, START_MS, TENANT, TOOLS, World

TOPICS = Topics("placet")
EXECUTIONS, DEFINITIONS = TopicPartition(TOPICS.executions, 0), TopicPartition(TOPICS.definitions, 0)
LOG_KEY = b"_log/0"
ALWAYS = Window()


class Past:
    """A log of one partition; every command is decided as on a running stack, and recorded at once."""

    def __init__(self, trust: TrustFor = unknown_trust, seed: str = SEED) -> None:
        self.world = World(definitions=Definitions(policies=PolicySet()), trust=trust, seed=seed)
        self.log = MemoryLog(TOPICS, 1, lambda: START_MS)
        self._recorded = 0
        # Of each event of the world, its offset in the log.
        self.offsets: list[int] = []
        for tp in (EXECUTIONS, DEFINITIONS):
            claim = WriterClaimed(claim_id=f"c-{tp.topic}", after=-1, worker="w")
            self.land(tp, claim, EventMeta(f"c-{tp.topic}", START_MS, -1, 0, "", "", ""), LOG_KEY)

    def land(self, tp: TopicPartition, body: Message, meta: EventMeta, key: bytes) -> int:
        return self.log.land(tp, [event_record(body, meta, key)])

    def raw(self, key: bytes, value: bytes, headers: Any = ()) -> None:
        """Record foreign bytes among the executions."""
        self.log.land(EXECUTIONS, [OutRecord(key, value, headers)])

    def publish(self, event: Message, project: str = "*") -> None:
        """Record a definition, and put it in force on the executions' partition."""
        key = definition_key(TENANT, KIND_OF.get(type(event), "rule"), _name(event), project)
        meta = EventMeta(f"d-{key!r}-{self.world.now_ms}", self.world.now_ms, 0, 1, "publish", "", TENANT)
        offset = self.land(DEFINITIONS, event, meta, key)
        self.world.definitions = evolve(self.world.definitions, event, TENANT, offset)
        self.adopt(offset)

    def adopt(self, offset: int) -> None:
        body = DefinitionsAdopted(through_offset=offset, through_record_id="r", through_term=0, versions={})
        self.land(EXECUTIONS, body, EventMeta(f"a-{offset}", self.world.now_ms, 0, 0, "", "", ""), LOG_KEY)

    def tools(self, *tools: dict[str, Any]) -> None:
        for tool in tools or TOOLS:
            version = tool_version_of(tool)
            self.publish(
                ToolPublished(
                    name=tool["name"], version=1, tool_version=version, definition=canonical(tool), by="olga"
                )
            )

    def policy(self, document: dict[str, Any], version: int = 1, project: str = "*") -> None:
        name = document["policy"]
        self.publish(
            PolicyPublished(
                name=name, version=version, document=json.dumps(document), by="olga", project=project
            ),
            project,
        )

    def retire(self, name: str, version: int = 1, project: str = "*") -> None:
        self.publish(
            PolicyRetired(name=name, version=version, reason="", by="olga", project=project), project
        )

    def ask(self, body: Message, actor: Actor = BOT, execution_id: str = "x") -> list[Message]:
        """The events of a command, recorded."""
        bodies = self.world.ask(body, actor, execution_id=execution_id)
        self.record()
        return bodies

    def record(self) -> None:
        """Record what the world has decided besides."""
        for event in self.world.events[self._recorded :]:
            self.offsets.append(self.land(EXECUTIONS, event.body, event.meta, event.key))
        self._recorded = len(self.world.events)

    def start(self, execution_id: str = "x") -> None:
        self.ask(k.StartExecution(agent="bot"), execution_id=execution_id)

    def propose(
        self, tool: str, call_id: str = "c", execution_id: str = "x", **arguments: Any
    ) -> list[Message]:
        body = k.ProposeToolCall(call_id=call_id, tool=tool, arguments=canonical(arguments or {"amount": 5}))
        return self.ask(body, execution_id=execution_id)

    def decide(self, hold: Any, decision: str, by: Actor = RITA, **content: Any) -> list[Message]:
        bodies = decided(self.world, hold, decision, by, **content)
        self.record()
        return bodies

    def against(
        self,
        document: dict[str, Any],
        window: Window = ALWAYS,
        project: str | None = None,
        tenant: str = TENANT,
        function: TrustFunction | None = None,
    ) -> Found:
        """What a backtest finds."""
        candidate = Candidate(policy_from_value(document), tenant, project)
        return asyncio.run(backtest(self.log, Question(candidate, window, function=function)))


def _name(event: Message) -> str:
    return str(getattr(event, "name", "") or getattr(event, "rule_id", ""))


def policy(*rules: dict[str, Any], **blocks: Any) -> dict[str, Any]:
    return {"policy": "p", "rules": list(rules), **blocks}


def one(found: Found) -> Judged:
    """The one row of note."""
    (row,) = found.rows
    return row

"""One partition's executions without any log: commands in, events out, folded at once."""

import json
from dataclasses import dataclass, field
from typing import Any

from schemas.actor import Actor
from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.ids import event_id, execution_key
from schemas.message import Message
from schemas.record import Command, Event, EventMeta
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet, Verdict
from services.domain.publishing import evolve
from services.domain.state import Call, Execution
from services.runtime.definitions_book import TrustFor, unknown_trust
from services.runtime.executions_partition import ExecutionsPartition

TENANT, PROJECT = "acme", "main"
START_MS = 1_780_000_000_000
BOT = Actor(subject="bot", tenant=TENANT, project=PROJECT, roles=("agent",), agent="bot")
OTHER_BOT = Actor(subject="bot-2", tenant=TENANT, project=PROJECT, roles=("agent",), agent="bot-2")
RITA = Actor(subject="rita", tenant=TENANT, project=PROJECT, roles=("reviewer",))
CLARA = Actor(subject="clara", tenant=TENANT, project=PROJECT, roles=("cfo",))
OLGA = Actor(subject="olga", tenant=TENANT, project=PROJECT, roles=("operator",))
ANNA = Actor(subject="anna", tenant=TENANT, project=PROJECT, roles=("analyst",))

PAY_SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
    "required": ["amount"],
}


def rule(name: str, tool: str, then: str, **hold: Any) -> dict[str, Any]:
    """A rule about one tool."""
    return {"id": name, "match": {"tools": [tool]}, "then": then, **({"hold": hold} if hold else {})}


RULES = [
    rule("reads", "read", "allow"),
    rule("bans", "drop", "deny"),
    {**rule("too-much", "pay", "deny"), "when": "args.amount > 1000.0"},
    rule("payments", "pay", "hold", timeout_seconds=600),
    rule("transfers", "transfer", "hold", roles=["cfo"], exclude_requester=True, timeout_seconds=600),
    rule("halts", "halt", "hold", timeout_seconds=600, on_timeout="halt", on_reject="halt"),
    rule("waits", "wait", "hold", on_timeout="wait"),
    rule(
        "escalates",
        "escalate",
        "hold",
        timeout_seconds=600,
        on_timeout="escalate",
        escalate={"after_seconds": 300, "roles": ["cfo"]},
    ),
]
TOOLS: list[dict[str, Any]] = [
    {"name": "read", "annotations": {"readOnlyHint": True}},
    {"name": "drop"},
    {"name": "pay", "inputSchema": PAY_SCHEMA},
    {"name": "transfer", "inputSchema": PAY_SCHEMA},
    {"name": "halt"},
    {"name": "wait"},
    {"name": "escalate"},
    {"name": "again", "idempotent": True},
]


def published(
    definitions: Definitions,
    rules: list[dict[str, Any]] | None = None,
    tools: list[dict[str, Any]] | None = None,
    tenant: str = TENANT,
    **blocks: Any,
) -> Definitions:
    """The definitions with a next version of the policy, and of the tools; `blocks` are the policy's others."""
    offset = definitions.through_offset + 1
    for tool in tools or []:
        event = ToolPublished(
            name=tool["name"], version=offset + 1, tool_version="-", definition=json.dumps(tool), by="olga"
        )
        definitions = evolve(definitions, event, tenant, offset)
        offset += 1
    if rules is not None:
        document = json.dumps({"policy": "p", "scope": {"tenant": "*"}, "rules": rules, **blocks})
        policy = PolicyPublished(name="p", version=offset + 1, document=document, by="olga")
        definitions = evolve(definitions, policy, tenant, offset)
    return definitions


def with_people(definitions: Definitions, *people: dict[str, Any], tenant: str = TENANT) -> Definitions:
    """The definitions with a next version of some principals."""
    for person in people:
        offset = definitions.through_offset + 1
        name = person["principal"]
        event = PrincipalPublished(name=name, version=offset + 1, document=json.dumps(person), by="root")
        definitions = evolve(definitions, event, tenant, offset)
    return definitions


class _Rules:
    """The world's definitions as a partition reads them, with the world's trust."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.definitions, name)

    def judge(self, execution: Execution, call: Call, now_ms: int, **about: Any) -> Verdict:
        place = (execution.tenant, execution.project, call.agent, call.tool)
        trust = self._world.trust
        return self._world.definitions.judge(
            execution, call, now_ms, trust=lambda trust_class: trust(*place, trust_class), **about
        )


@dataclass
class World:
    """Asks the decider and folds what it says, as a writer would; whoever asks is of its tenant and project."""

    definitions: Definitions = field(
        default_factory=lambda: published(Definitions(policies=PolicySet()), RULES, TOOLS)
    )
    now_ms: int = START_MS
    events: list[Event] = field(default_factory=list)
    asked: int = 0
    tenant: str = TENANT
    project: str = PROJECT
    trust: TrustFor = unknown_trust
    seed: str = ""

    def __post_init__(self) -> None:
        self.partition = ExecutionsPartition(lambda: _Rules(self), fresh_seed=lambda: self.seed)

    def ask(
        self, body: Message, actor: Actor = BOT, command_id: str | None = None, execution_id: str = "x"
    ) -> list[Message]:
        """The events of a command, folded."""
        self.asked += 1
        key = self.key(execution_id)
        actor = actor.model_copy(update={"tenant": self.tenant, "project": self.project})
        name = command_id or f"command-{self.asked}"
        command = Command(body, actor, name, "", key, 0, self.asked, self.now_ms)
        if self.partition.seen(key, name, command.digest) != "new":
            return []
        bodies = self.partition.decide(command, self.now_ms)
        version = self.partition.next_version(key)
        for index, said in enumerate(bodies):
            meta = EventMeta(
                event_id(name, 0, index), self.now_ms, 0, version + index, name, "", self.tenant, self.asked
            )
            event = Event(said, meta, key, 0, len(self.events))
            self.partition.apply(event, command)
            self.events.append(event)
        return bodies

    def key(self, execution_id: str = "x") -> bytes:
        """The key of an execution."""
        return execution_key(self.tenant, self.project, execution_id)

    def state(self, execution_id: str = "x") -> Execution:
        """The execution as it stands, live or just ended."""
        key = self.key(execution_id)
        entry = self.partition.live.get(key) or self.partition.recent[key]
        return entry.state

    def later(self, seconds: float) -> None:
        """Let the log's time pass."""
        self.now_ms += int(seconds * 1000)


def names(bodies: list[Message]) -> list[str]:
    """The types of events, in order."""
    return [type(body).__name__ for body in bodies]


def the(bodies: list[Message], name: str) -> Any:
    """The one event of a type."""
    (found,) = [body for body in bodies if type(body).__name__ == name]
    return found

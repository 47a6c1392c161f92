"""Events as the decider would have recorded them, for tests of what the gateway makes of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

from gateway.live.cursor import CursorKey
from gateway.live.live import Live
from gateway.live.log_time import LogTime
from gateway.pushes.hub import Hub
from gateway.settings import Limits
from gateway.shares.budget import Budget
from gateway.shares.work import Work
from gateway.sockets.outgoing import OutgoingFrames
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.ids import execution_key
from schemas.message import Message
from schemas.record import Event, EventMeta

LANES = 4
SECRET = b"k" * 32
AT_MS = 1_800_000_000_000
ARGUMENTS = '{"amount":5}'
DIGEST = "d" * 64


def new_work() -> Work:
    """What counts the cost of answers, and lets everything pass."""
    return Work(share=1.0, burst_s=1_000.0, patience_s=1_000.0)


def new_outgoing(limits: Limits, budget: Budget | None = None, subject: str = "anna") -> OutgoingFrames:
    """A reader's queue, with a budget of its own where none is given."""
    return OutgoingFrames(
        limits, ("acme", subject), budget or Budget(limits.subject_bytes, limits.total_bytes)
    )


async def taken(out: OutgoingFrames) -> bytes | None:
    """The next frame; None when the queue is closed and empty. The call implies that the last was sent."""
    frames = await out.take_some(1)
    return frames[0] if frames else None


def new_live(hub: Hub | None = None) -> tuple[Live, Hub]:
    """A live state of a log with three partitions, at its beginning."""
    hub = hub or Hub()
    return Live.at(CursorKey(SECRET, LANES), hub.publish, [(0, "")] * LANES), hub


def log_time(now_ms: int) -> LogTime:
    """The log's time, which stands still."""
    found = LogTime(running_s=lambda: 0.0)
    found.learn(found.moment(), now_ms)
    return found


@dataclass
class Partition:
    """Writes events of one partition and hands them to a live state."""

    live: Live
    partition: int = 0
    _offsets: count[int] = field(default_factory=lambda: count(1))
    _versions: count[int] = field(default_factory=lambda: count(1))

    def events(
        self, key: bytes, command_id: str, bodies: Sequence[Message], digest: str = "body"
    ) -> list[Event]:
        """The events of a command, not given to anybody yet."""
        tenant = key.decode().split("/")[0]
        found = []
        for body in bodies:
            offset = next(self._offsets)
            meta = EventMeta(
                f"{self.partition}-{offset}",
                AT_MS + offset,
                0,
                next(self._versions),
                command_id,
                digest,
                tenant,
            )
            found.append(Event(body, meta, key, self.partition, offset))
        return found

    def write(self, key: bytes, command_id: str, *bodies: Message, digest: str = "body") -> list[Event]:
        """Record a command's events and let the tail deliver them."""
        events = self.events(key, command_id, bodies, digest)
        self.live.take(self.partition + 1, events, events[-1].offset + 1)
        return events


def gate_of(**parts: Any) -> Any:
    """The services that operations need, as far as a test needs them, at anybody's cost."""
    gate = SimpleNamespace(**parts)
    gate.of = lambda actor: gate
    return gate


def key_of(execution_id: str, tenant: str = "acme", project: str = "books") -> bytes:
    return execution_key(tenant, project, execution_id)


def started(agent: str = "billing") -> x.ExecutionStarted:
    return x.ExecutionStarted(agent=agent, user="", workspace="", request="", context="{}", by="bot")


def proposed(call_id: str = "c1", revision: int = 1) -> c.ToolCallProposed:
    return c.ToolCallProposed(
        call_id=call_id,
        revision=revision,
        agent="billing",
        tool="send_money",
        tool_version="",
        arguments=ARGUMENTS,
        digest=DIGEST,
        context="{}",
        claims="{}",
        reason="",
        by="bot",
    )


def verdict(call_id: str = "c1", effect: c.Effect = "hold") -> c.PolicyVerdictIssued:
    return c.PolicyVerdictIssued(
        call_id=call_id,
        revision=1,
        effect=effect,
        rules=("p@1/r",),
        policy_version="p@1",
        reason="matched",
        detail="",
        risk_score=0.1,
        risk_level="low",
        risk_parts=(),
        risk_required=0.5,
        trust=None,
        definitions_through=0,
    )


def held(call_id: str = "c1", hold_id: str = "h1") -> h.HoldOpened:
    return h.HoldOpened(
        hold_id=hold_id,
        call_id=call_id,
        request_id="",
        revision=1,
        digest=DIGEST,
        kind="permission",
        cause="policy",
        question="Pay?",
        options="[]",
        input_schema="{}",
        requester="bot",
        roles=(),
        quorum=1,
        exclude_requester=False,
        deadline_at_ms=AT_MS + 900_000,
        on_timeout="deny",
        default_value=None,
        escalate_at_ms=None,
        escalate_roles=(),
        on_reject="feedback",
    )


def decided(hold_id: str = "h1", call_id: str = "c1", decision_id: str = "d1") -> h.DecisionRecorded:
    return h.DecisionRecorded(
        decision_id=decision_id,
        hold_id=hold_id,
        call_id=call_id,
        revision=1,
        digest=DIGEST,
        decision="approve",
        by="anna",
        roles=("reviewer",),
        feedback="",
        edited_arguments=None,
        value=None,
        scope="once",
        resolves=True,
    )


def released(call_id: str = "c1") -> c.ToolCallReleased:
    return c.ToolCallReleased(
        call_id=call_id,
        revision=1,
        digest=DIGEST,
        grant_id="g1",
        decision_id="d1",
        released_by="decision",
        arguments=ARGUMENTS,
        expires_at_ms=AT_MS + 900_000,
    )


def refused(code: str = "not_released", detail: str = "no") -> x.CommandRefused:
    return x.CommandRefused.model_validate(
        {"code": code, "command": "ConsumeGrant", "subject_id": "c1", "detail": detail, "by": "bot"}
    )


def refused_decision(hold_id: str = "h1") -> h.DecisionRefused:
    return h.DecisionRefused.model_validate(
        {
            "hold_id": hold_id,
            "decision": "reject",
            "digest": DIGEST,
            "code": "already_decided",
            "detail": "no",
            "winning_decision_id": "d1",
            "by": "bob",
        }
    )


HELD_CALL = (proposed(), verdict(), held())

"""Facts about holds, as records of a partition and as notices."""

from __future__ import annotations

import random
from typing import Any

from schemas.events.calls import PolicyVerdictIssued
from schemas.events.executions import ExecutionStarted
from schemas.events.holds import (
    DecisionRecorded,
    HoldCancelled,
    HoldDelegated,
    HoldEscalated,
    HoldExpired,
    HoldOpened,
    HoldReminded,
)
from schemas.ids import execution_key
from services.processors.notifications.document import EventName
from services.processors.notifications.notice import Hold, Notice, Source
from tests.processors.history import START_MS, History

DEADLINE_MS = START_MS + 900_000


def history(partition: int = 0) -> History:
    """An empty partition that a writer has claimed."""
    found = History(partition, random.Random(partition))
    found.claim()
    return found


def start(found: History, tenant: str = "acme", execution: str = "e1", agent: str = "billing-bot") -> bytes:
    """An execution begins; its key."""
    key = execution_key(tenant, "main", execution)
    started = ExecutionStarted(agent=agent, user="", workspace="", request="", context="{}", by="svc")
    found.add(key, started)
    return key


def hold_call(found: History, hold_id: str, tenant: str = "acme", **fields: Any) -> bytes:
    """A call is proposed, judged and held; its execution's key. `tool`, `risk`, `term`, and a hold's own fields."""
    tool, risk, term = fields.pop("tool", "send_money"), fields.pop("risk", "high"), fields.pop("term", None)
    call = found.propose((tenant, "main", "billing-bot", tool), term)
    verdict = PolicyVerdictIssued(
        call_id=call.call_id,
        revision=1,
        effect="hold",
        rules=(),
        policy_version="1",
        reason="",
        detail="",
        risk_score=0.9,
        risk_level=risk,
        risk_parts=(),
        risk_required=0.5,
        trust=None,
        definitions_through=0,
    )
    found.add(call.key, verdict, term)
    found.add(call.key, opened(hold_id, call_id=call.call_id, **fields), term)
    return call.key


def opened(hold_id: str, **fields: Any) -> HoldOpened:
    values: dict[str, Any] = {
        "hold_id": hold_id,
        "call_id": "",
        "request_id": "",
        "revision": 1,
        "digest": "d",
        "kind": "permission",
        "cause": "policy",
        "question": "Send the money?",
        "options": "[]",
        "input_schema": "{}",
        "requester": "bot",
        "roles": ("finance",),
        "quorum": 1,
        "exclude_requester": False,
        "deadline_at_ms": DEADLINE_MS,
        "on_timeout": "deny",
        "default_value": None,
        "escalate_at_ms": None,
        "escalate_roles": (),
        "on_reject": "feedback",
    }
    return HoldOpened.model_validate({**values, **fields})


def decided(hold_id: str, decision: str = "approve", *, resolves: bool = True) -> DecisionRecorded:
    return DecisionRecorded.model_validate(
        {
            "decision_id": "d",
            "hold_id": hold_id,
            "call_id": "c",
            "revision": 1,
            "digest": "d",
            "decision": decision,
            "by": "ann",
            "roles": (),
            "feedback": "",
            "edited_arguments": None,
            "value": None,
            "scope": "once",
            "resolves": resolves,
        }
    )


def expired(hold_id: str, on_timeout: Any = "deny") -> HoldExpired:
    return HoldExpired(hold_id=hold_id, on_timeout=on_timeout)


def reminded(hold_id: str) -> HoldReminded:
    return HoldReminded(hold_id=hold_id)


def escalated(hold_id: str, roles: tuple[str, ...] = ("board",)) -> HoldEscalated:
    return HoldEscalated(hold_id=hold_id, by="timer", roles=roles, deadline_at_ms=None)


def delegated(hold_id: str, to: str = "bob") -> HoldDelegated:
    return HoldDelegated(hold_id=hold_id, by="ann", to=to)


def cancelled(hold_id: str) -> HoldCancelled:
    return HoldCancelled(hold_id=hold_id, reason="given up")


def notice(number: int = 1, kind: EventName = "hold_opened", **fields: Any) -> Notice:
    """A notice as a fact at offset `number` would give it."""
    hold: dict[str, Any] = {
        "call_id": f"c{number}",
        "kind": "permission",
        "cause": "policy",
        "question": "Send the money?",
        "roles": ("finance",),
        "deadline_at_ms": DEADLINE_MS,
        "agent": "billing-bot",
        "tool": "send_money",
        "risk": "high",
    }
    hold |= {name: value for name, value in fields.items() if name in hold}
    others = {name: value for name, value in fields.items() if name not in hold}
    key = execution_key("acme", "main", f"e{number}")
    return Notice(
        **{
            "id": f"event-{number}",
            "type": kind,
            "at_ms": START_MS + number,
            "tenant": "acme",
            "project": "main",
            "execution_id": f"e{number}",
            "hold_id": f"h{number}",
            "hold": Hold(**hold),
            "source": Source(0, number, START_MS, key, "0" * 64),
            **others,
        }
    )

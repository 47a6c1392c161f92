"""The attributes of spans about commands and events: ids, names and codes, and nothing of their content."""

from __future__ import annotations

import time

from schemas.events.calls import PolicyVerdictIssued
from schemas.events.executions import CommandRefused
from schemas.events.holds import DecisionRefused
from schemas.ids import split_execution_key
from schemas.message import Message
from schemas.topics import DEFINITION_COMMANDS, DEFINITIONS

KAFKA = "kafka"
# A reader that was away for longer than this makes no spans for what it missed.
RECENT_MS = 10 * 60 * 1000

# The fields of a body that are attributes; each is an id or a name.
NAMED = ("call_id", "hold_id", "request_id", "turn_id", "tool", "decision", "kind", "cause", "outcome")


def facts_of(topic: str, key: bytes, body: Message, tenant: str) -> dict[str, str | int]:
    """The attributes of a command or event.

    Args:
        topic: of its record.
        key: of its record.
        body: its body.
        tenant: whose it is.
    """
    facts: dict[str, str | int] = {"placet.tenant": tenant}
    if topic.endswith((DEFINITIONS, DEFINITION_COMMANDS)):
        return facts
    try:
        tenant, project, execution_id = split_execution_key(key)
    except ValueError:
        # About the uses of a rule, or the log itself.
        return facts
    facts.update({"placet.tenant": tenant, "placet.project": project, "placet.execution_id": execution_id})
    values = body.__dict__
    for name in NAMED:
        if (value := values.get(name)) and isinstance(value, str):
            facts[f"placet.{name}"] = value
    return facts


def outcome_of(body: Message) -> dict[str, str | int] | None:
    """The attributes that an event adds to the decision that led to it: the verdict, or the code of a refusal."""
    if isinstance(body, PolicyVerdictIssued):
        return {"placet.verdict": body.effect}
    if isinstance(body, CommandRefused | DecisionRefused):
        return {"placet.refusal_code": str(body.code)}
    return None


def is_recent(at_ms: int) -> bool:
    """True if an event is new enough for a span; a reader that begins anew makes none for the past."""
    return time.time_ns() // 1_000_000 - at_ms <= RECENT_MS


def of_record(topic: str, partition: int, offset: int, operation: str) -> dict[str, str | int]:
    """The attributes of a record of Kafka that is processed, by the conventions for messaging.

    Args:
        topic: of the record.
        partition: of the record.
        offset: of the record.
        operation: what is done with it.
    """
    return {
        "messaging.system": KAFKA,
        "messaging.operation.type": "process",
        "messaging.operation.name": operation,
        "messaging.destination.partition.id": str(partition),
        "messaging.destination.name": topic,
        "messaging.kafka.offset": offset,
    }

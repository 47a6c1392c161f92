"""Who may do what on a cluster of Placet's own: one principal a role, each with the least that it needs.

Only the decider writes facts, only trust writes trust. The installation itself, which makes the topics, is a super
user of the embedded broker and is in no row here. docs/log-contract.md has the same table for a shared cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.topics import Topics

# Principals: the roles, the process that keeps snapshots, and commands that only read.
DECIDER, PROJECTOR, GATEWAY, TRUST, NOTIFIER = "decider", "projector", "gateway", "trust", "notifier"
SNAPSHOTS, READER, INSTALLATION = "snapshots", "reader", "installation"
PRINCIPALS = (DECIDER, PROJECTOR, GATEWAY, TRUST, NOTIFIER, SNAPSHOTS, READER, INSTALLATION)
# Those that say every second how they are.
TELLING = (DECIDER, PROJECTOR, GATEWAY, TRUST, NOTIFIER)

# Numbers of Kafka's protocol: ResourceType, PatternType, AclOperation.
TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4
DECIDER_GROUP = "placet-decider"


@dataclass(frozen=True, slots=True)
class Grant:
    """One row: a principal may do one thing with one resource. Both imply that it may describe it."""

    principal: str
    resource_type: int
    resource_name: str
    pattern: int
    operation: int


def grants(topics: Topics) -> tuple[Grant, ...]:
    """Every row that the roles of one log need."""
    return (
        *_reads(
            DECIDER,
            topics.commands,
            topics.definition_commands,
            topics.executions,
            topics.definitions,
            topics.trust,
            topics.snapshots,
        ),
        *_writes(
            DECIDER,
            topics.executions,
            topics.definitions,
            topics.snapshots,
            topics.commands,
            topics.definition_commands,
            topics.dead_letters,
        ),
        _group(DECIDER, DECIDER_GROUP),
        *_reads(SNAPSHOTS, topics.executions, topics.snapshots),
        *_writes(SNAPSHOTS, topics.snapshots),
        *_reads(PROJECTOR, topics.executions, topics.definitions, topics.dead_letters),
        *_reads(GATEWAY, topics.commands, topics.executions, topics.definitions, topics.trust),
        *_writes(GATEWAY, topics.commands, topics.definition_commands),
        *_reads(TRUST, topics.executions, topics.trust),
        *_writes(TRUST, topics.trust),
        _group(TRUST, f"{topics.prefix}-{TRUST}"),
        *_reads(NOTIFIER, topics.executions, topics.dead_letters),
        *_writes(NOTIFIER, topics.dead_letters),
        _group(NOTIFIER, f"{topics.prefix}-{NOTIFIER}"),
        *(row for role in TELLING for row in _writes(role, topics.heartbeats)),
        *_reads(GATEWAY, topics.heartbeats),
        Grant(READER, TOPIC, f"{topics.prefix}.", PREFIXED, READ),
    )


def _reads(principal: str, *names: str) -> Iterator[Grant]:
    return _topics(principal, names, READ)


def _writes(principal: str, *names: str) -> Iterator[Grant]:
    return _topics(principal, names, WRITE)


def _topics(principal: str, names: Sequence[str], operation: int) -> Iterator[Grant]:
    return (Grant(principal, TOPIC, name, LITERAL, operation) for name in names)


def _group(principal: str, name: str) -> Grant:
    return Grant(principal, GROUP, name, LITERAL, READ)

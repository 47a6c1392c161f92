"""Who may do what on a cluster of Placet's own: one principal a role, each with the least that it needs.

Only the decider writes facts, only trust writes trust. The installation itself, which makes the topics, is a super
user of the embedded broker and is in no row here. docs/log-contract.md has the same table for a shared cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ops.role import ROLES, Role
from schemas.topics import Topics

# Principals beside the roles: the process that keeps snapshots, commands that only read, and the installation.
SNAPSHOTS, READER, INSTALLATION = "snapshots", "reader", "installation"
PRINCIPALS = (*ROLES, SNAPSHOTS, READER, INSTALLATION)

# Numbers of Kafka's protocol: ResourceType, PatternType, AclOperation.
TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4


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
        *(row for role in ROLES.values() for row in _of_role(role, topics)),
        *_reads(SNAPSHOTS, topics.executions, topics.snapshots),
        *_writes(SNAPSHOTS, topics.snapshots),
        Grant(READER, TOPIC, f"{topics.prefix}.", PREFIXED, READ),
    )


def _of_role(role: Role, topics: Topics) -> Iterator[Grant]:
    yield from _reads(role.name, *(getattr(topics, name) for name in role.reads))
    yield from _writes(role.name, *(getattr(topics, name) for name in role.writes), topics.heartbeats)
    if role.group:
        yield Grant(role.name, GROUP, role.group_of(topics), LITERAL, READ)


def _reads(principal: str, *names: str) -> Iterator[Grant]:
    return _topics(principal, names, READ)


def _writes(principal: str, *names: str) -> Iterator[Grant]:
    return _topics(principal, names, WRITE)


def _topics(principal: str, names: Sequence[str], operation: int) -> Iterator[Grant]:
    return (Grant(principal, TOPIC, name, LITERAL, operation) for name in names)

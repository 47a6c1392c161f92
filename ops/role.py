"""The roles of a stack, each declared once: its processes, Kafka's access lists and probes are derived from here.

A new processor is declared here; CONTRIBUTING.md says what else it touches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.topics import Topics

PREFIXED_GROUP = "{prefix}-{role}"


@dataclass(frozen=True, slots=True)
class Role:
    """One role.

    Attributes:
        name: on the command line, in the log of a supervisor, and as a principal of Kafka.
        run: the function that it runs, as `module:function`; imported in its own process only.
        reads: the topics that it reads, by their attribute of `Topics`.
        writes: those that it writes; heartbeats besides, which every role writes.
        group: its consumer group; empty for none.
        asked_for_by: the setting of a stack (`StackConfig`) without which it does not run; empty: it always runs.
        may_lag: no decision waits for it, so a start does not wait for it either.
        niceness: added to its process; statistics may lag behind under load.
        has_probe: it answers at a probe of its own; the gateway answers at its own address.
    """

    name: str
    run: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    group: str = ""
    asked_for_by: str = ""
    may_lag: bool = False
    niceness: int = 0
    has_probe: bool = True

    def group_of(self, topics: Topics) -> str:
        """The name of its consumer group on the log of these topics; empty for none."""
        return self.group.format(prefix=topics.prefix, role=self.name)


DECIDER = Role(
    "decider",
    "services.runtime.main:run",
    reads=("commands", "definition_commands", "executions", "definitions", "trust", "snapshots"),
    writes=("executions", "definitions", "snapshots", "commands", "definition_commands", "dead_letters"),
    group="placet-decider",
)
PROJECTOR = Role("projector", "projections.main:run", reads=("executions", "definitions", "dead_letters"))
GATEWAY = Role(
    "gateway",
    "gateway.main:run",
    reads=("commands", "executions", "definitions", "trust", "heartbeats"),
    writes=("commands", "definition_commands"),
    has_probe=False,
)
TRUST = Role(
    "trust",
    "services.processors.main:run",
    reads=("executions", "trust"),
    writes=("trust",),
    group=PREFIXED_GROUP,
    may_lag=True,
    niceness=10,
)
NOTIFIER = Role(
    "notifier",
    "services.processors.notifications.main:run",
    reads=("executions", "dead_letters"),
    writes=("dead_letters",),
    group=PREFIXED_GROUP,
    asked_for_by="notifications_file",
    may_lag=True,
)
GRPC = Role("grpc", "gateway.rpc.main:run", asked_for_by="grpc_port")
# In the order in which they start and in which their probes' ports follow each other.
ROLES: Mapping[str, Role] = {role.name: role for role in (DECIDER, PROJECTOR, GATEWAY, TRUST, NOTIFIER, GRPC)}
# Those that every stack runs.
ALWAYS = tuple(role.name for role in ROLES.values() if not role.asked_for_by)

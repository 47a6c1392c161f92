"""What a decision may look at besides the state: who asks, when, and the definitions in force."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from schemas.actor import Actor
from schemas.ids import derived_id
from schemas.principals import TenantPeople
from schemas.standing_rule import StandingRuleDocument
from schemas.tool_definition import LEASE_S, RUN_TIMEOUT_S
from services.domain.policy import Verdict
from services.domain.state import Call, Execution

GRANT_TTL_MS = 15 * 60 * 1000
RUN_TIMEOUT_MS = RUN_TIMEOUT_S * 1000
# So long an attempt is believed to run without a sign of life.
LEASE_MS = LEASE_S * 1000


class Tool(Struct, frozen=True):
    """A published tool. `validate` gives where and why arguments do not fit its schema (`path: reason`), or None.

    `unreadable` says why its definition cannot be read, and is empty where it can: then nothing is known of it but
    its version, and every call of it is held at least.
    """

    name: str
    version: str
    definition: Mapping[str, Any]
    input_schema: str
    idempotent: bool
    run_timeout_ms: int
    lease_ms: int
    validate: Callable[[Any], str | None]
    unreadable: str = ""


class InForce(Struct, frozen=True):
    """What is remembered here, with who activated it. `spent` tells that its last use is known to be taken."""

    document: StandingRuleDocument
    spent: bool = False
    activators: tuple[str, ...] = ()


# The rules that are active here for a project, an agent and a tool.
Standing = Callable[[str, str, str], tuple[InForce, ...]]


def no_rules(project: str, agent: str, tool: str) -> tuple[InForce, ...]:
    """Where no standing rule was made."""
    return ()


class Context(Struct, frozen=True):
    """The surroundings of one decision.

    `actor` has the roles that count in `people`. `now_ms` is the log's time, never a clock's. `judge` applies the
    policy in force to a revision of a call; `definitions_through` names the definitions that it used. `command_id`
    and `key`, the record's, seed every new id. `execution_id` is whose command it is, also where it never started.
    """

    actor: Actor
    command_id: str
    now_ms: int
    definitions_through: int
    tool: Callable[[str], Tool | None]
    judge: Callable[[Execution, Call], Verdict]
    people: TenantPeople
    standing: Standing = no_rules
    execution_id: str = ""
    key: str = ""

    def new_id(self, kind: str, *parts: object) -> str:
        """The id of something that this decision makes: no other command makes the same, in any execution.

        Whoever writes to Kafka chooses command ids, and the same id on another key is another command: ids of
        decisions and grants, which others use as idempotency keys, are made of both.
        """
        return derived_id(kind, self.key, self.command_id, *parts)

"""The inputs of a decision besides the state: the actor, the time and the definitions in force."""

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
# An attempt is taken to be running for this long without a sign of life.
LEASE_MS = LEASE_S * 1000


class Tool(Struct, frozen=True):
    """A published tool. `validate` returns the path and reason of a misfit with its schema (`path: reason`), or None.

    `unreadable` is the reason why the definition cannot be read, else empty. Of an unreadable tool only the version
    is known, and every call of it is at least held.
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
    """A remembered decision in force here, with its activators. `spent` is set once its last use is taken."""

    document: StandingRuleDocument
    spent: bool = False
    activators: tuple[str, ...] = ()


# Returns the rules that are active here for a project, an agent and a tool.
Standing = Callable[[str, str, str], tuple[InForce, ...]]


def no_rules(project: str, agent: str, tool: str) -> tuple[InForce, ...]:
    """No standing rules."""
    return ()


class Context(Struct, frozen=True):
    """The context of one decision.

    `actor` has the roles that `people` gives it. `now_ms` is the log's time, never a clock's. `judge` applies the
    policy in force to a revision of a call; `definitions_through` names the definitions that it uses. `command_id`
    and `key` are the record's, and seed every new id. `execution_id` is the command's, even if it never started.
    `fresh_seed` returns a seed that nobody can foretell, for a draw; empty if there is none.
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
    fresh_seed: Callable[[], str] = str

    def new_id(self, kind: str, *parts: object) -> str:
        """The id of something that this decision creates: no other command creates the same id, in any execution.

        Senders on Kafka choose their command ids, and the same id under another key is another command. So the ids of
        decisions and grants, which others use as idempotency keys, are derived from both.
        """
        return derived_id(kind, self.key, self.command_id, *parts)

"""Who asks: the identity that a command carries, and that every fact about a person names."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemas.limits import NAME_MAX_CHARS

Role = Literal["agent", "reviewer", "operator", "analyst", "admin", "system"]

# What the system itself signs with; no token may speak for it.
RESERVED_ROLE = "system"
RESERVED_SUBJECT = "placet:"


def subject_fault(subject: str) -> str | None:
    """Why no token can have this subject, or None."""
    if not subject.isprintable() or not 1 <= len(subject) <= NAME_MAX_CHARS:
        return f"must be 1 to {NAME_MAX_CHARS} printable characters"
    if subject != subject.strip():
        # Nobody would see that it is another person than the one without them.
        return "must not begin or end with a space"
    if subject.startswith(RESERVED_SUBJECT):
        return f"must not begin with {RESERVED_SUBJECT}, which is Placet's own"
    return None


class Actor(BaseModel):
    """A subject with its roles, as a token or the system itself vouches for it.

    `roles` holds the built-in roles and the installation's own (treasurer, cfo, …).
    `agent` is the only agent in whose name the subject may act; None for people.
    """

    # The empty constraint on texts makes pydantic refuse lone surrogates, which no header could carry.
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=0)

    subject: str
    tenant: str
    project: str
    roles: tuple[str, ...] = ()
    agent: str | None = None

    def has(self, *roles: str) -> bool:
        """Whether the actor has one of the roles, or is an admin; an agent's token has none, whatever it lists."""
        return self.agent is None and ("admin" in self.roles or any(role in self.roles for role in roles))


TIMER = "placet:timer"
DECIDER = "placet:decider"


def system_actor(tenant: str, project: str) -> Actor:
    """The decider's own timer, in whose name it nudges."""
    return Actor(subject=TIMER, tenant=tenant, project=project, roles=("system",))


def decider_actor(tenant: str, project: str) -> Actor:
    """A decider that carries something from one partition to another."""
    return Actor(subject=DECIDER, tenant=tenant, project=project, roles=("system",))


def tool_role(tool: str) -> str:
    """The role of a server that runs one tool: it may consume releases of that tool's calls, and report on them."""
    return f"tool:{tool}"

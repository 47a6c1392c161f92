"""The actor: the identity that a command carries, and that every fact about a person names."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemas.limits import NAME_MAX_CHARS

Role = Literal["agent", "reviewer", "operator", "analyst", "admin", "system"]

# The role and the subjects of the system itself; no token can have them.
RESERVED_ROLE = "system"
RESERVED_SUBJECT = "placet:"


def subject_fault(subject: str) -> str | None:
    """Why no token can have this subject, or None."""
    if not subject.isprintable() or not 1 <= len(subject) <= NAME_MAX_CHARS:
        return f"must be 1 to {NAME_MAX_CHARS} printable characters"
    if subject != subject.strip():
        # People would take it for the subject without the spaces, which is another person.
        return "must not begin or end with a space"
    if subject.startswith(RESERVED_SUBJECT):
        return f"must not begin with {RESERVED_SUBJECT}, which is reserved for Placet"
    return None


class Actor(BaseModel):
    """A subject with its roles, authenticated by a token or by the system itself.

    `roles` holds the built-in roles and the installation's own (treasurer, cfo, …).
    `agent` is the only agent in whose name the subject can act; None for people. `user` is the person for whom its
    token is (the claim `user` with a name), or empty.
    """

    # The empty constraint on texts makes pydantic refuse lone surrogates, which no header can carry.
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=0)

    subject: str
    tenant: str
    project: str
    roles: tuple[str, ...] = ()
    agent: str | None = None
    user: str = ""

    def has(self, *roles: str) -> bool:
        """Returns True if the actor has one of the roles or is an admin; an agent's token never has one."""
        return self.agent is None and ("admin" in self.roles or any(role in self.roles for role in roles))


TIMER = "placet:timer"
DECIDER = "placet:decider"


def system_actor(tenant: str, project: str) -> Actor:
    """The actor of the decider's own timer, which sends nudges."""
    return Actor(subject=TIMER, tenant=tenant, project=project, roles=("system",))


def decider_actor(tenant: str, project: str) -> Actor:
    """The actor of a decider that sends commands from one partition to another."""
    return Actor(subject=DECIDER, tenant=tenant, project=project, roles=("system",))


def tool_role(tool: str) -> str:
    """The role of a server that runs one tool: it can consume releases of that tool's calls and report results."""
    return f"tool:{tool}"

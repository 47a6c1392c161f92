"""A notice: what one fact reports to people, and the fact's position."""

import msgspec

from services.domain.policy.patterns import matcher
from services.processors.notifications.document import EventName, When

# Notices that ask people to look: worthless once the hold is closed.
ASKING: frozenset[str] = frozenset(
    {"hold_opened", "hold_reminded", "hold_escalated", "hold_delegated", "outcome_unknown"}
)


class Hold(msgspec.Struct, frozen=True):
    """The data of an open hold that notices use; `call_id`, `tool` and `risk` are empty for a request."""

    call_id: str
    kind: str
    cause: str
    question: str
    roles: tuple[str, ...]
    deadline_at_ms: int | None
    agent: str
    tool: str
    risk: str


class Call(msgspec.Struct, frozen=True):
    """An open call."""

    agent: str
    tool: str
    risk: str


class Source(msgspec.Struct, frozen=True):
    """The position of a fact, and the digest of its bytes."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    sha256: str


class Notice(msgspec.Struct, frozen=True):
    """One thing to report.

    `detail` is the decision, or the delegate of a hold; `trace` is the trace context of its fact, empty without one.
    """

    id: str
    type: EventName
    at_ms: int
    tenant: str
    project: str
    execution_id: str
    hold_id: str
    hold: Hold
    source: Source
    detail: str = ""
    trace: str = ""


def is_asked_for(when: When, notice: Notice) -> bool:
    """True if a notice matches a notification's conditions."""
    hold = notice.hold
    return (
        _is_event(when, notice.type)
        and matcher(when.tenant)(notice.tenant)
        and matcher(when.project)(notice.project)
        and (not when.kinds or hold.kind in when.kinds)
        and (not when.risk or hold.risk in when.risk)
        and (not when.roles or bool(set(when.roles) & set(hold.roles)))
        and _matches(when.tools, hold.tool)
        and _matches(when.agents, hold.agent)
    )


def _is_event(when: When, event: EventName) -> bool:
    # An unknown outcome opens a hold as well, so people who are notified of holds are notified of this one.
    return event in when.events or (event == "outcome_unknown" and "hold_opened" in when.events)


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or (bool(name) and any(matcher(pattern)(name) for pattern in patterns))

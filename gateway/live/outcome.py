"""The outcome of a command, read from its trace in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from schemas.events.calls import ProbeEnded, ToolCallProposed
from schemas.events.executions import CommandAbandoned, CommandRefused
from schemas.events.holds import DecisionRecorded, DecisionRefused, HoldOpened
from schemas.events.rules import RuleAsked
from schemas.message import Message
from schemas.record import Event
from schemas.refusals import Refusal

ABANDONED = "the command could not be decided and was given up; an operator must examine it"


@dataclass(frozen=True, slots=True)
class Refused:
    """The refusal of a command; `given_up` if it could not be decided at all, and must not be tried again."""

    code: Refusal
    detail: str
    winning_decision_id: str = ""
    given_up: bool = False


class Outcome(NamedTuple):
    """A command's answer.

    Attributes:
        digest: the digest of the body that was answered; another one under the same id is a reuse.
        key: the Kafka key of the command.
        refused: None if it was accepted.
        body: its first event, if it was just read from the log; the views keep less of it.
        decision_id: the id of the decision that it recorded.
        resolves: True if that decision resolved its hold.
        edited_digest: the digest of what would run now, if the decision is an edit.
        opened: the hold that the decision opened, as an edit does that needs another person.
        counted: the number of votes that this hold has from the start.
        asked_rule: the standing rule that the decision requests.
        probe: the end of the planted call that the decision was about, if it ended it.
        last_offset: the offset of its last event.
        old: True if it was decided before the present request.
        at_ms: the time of the decision; 0 if it is not known.
    """

    digest: str
    key: bytes
    refused: Refused | None
    body: Message | None = None
    decision_id: str = ""
    resolves: bool = False
    edited_digest: str = ""
    opened: HoldOpened | None = None
    counted: int = 0
    asked_rule: RuleAsked | None = None
    probe: ProbeEnded | None = None
    last_offset: int = -1
    old: bool = False
    at_ms: int = 0


def outcome_of(events: Sequence[Event], *, old: bool = False) -> Outcome:
    """Return the outcome that the events of one command show."""
    first, last = events[0], events[-1]
    refused: Refused | None = None
    decisions: list[DecisionRecorded] = []
    found: dict[type[Message], Message] = {}
    for event in events:
        body = event.body
        if isinstance(body, DecisionRecorded):
            decisions.append(body)
        elif refused is None and type(body) in _REFUSALS:
            refused = _refusal(body)
        else:
            found.setdefault(type(body), body)
    asked = found.get(RuleAsked)
    outcome = Outcome(
        first.meta.command_digest,
        first.key,
        refused,
        first.body,
        asked_rule=asked if isinstance(asked, RuleAsked) else None,
        last_offset=last.offset,
        old=old,
        at_ms=last.meta.at_ms,
    )
    return _decided(outcome, decisions, found) if decisions else outcome


def _decided(
    outcome: Outcome, decisions: Sequence[DecisionRecorded], found: Mapping[type[Message], Message]
) -> Outcome:
    """Complete the outcome of a decision with the decision itself, the hold it opened and the edited arguments."""
    opened, revised, probe = found.get(HoldOpened), found.get(ToolCallProposed), found.get(ProbeEnded)
    return outcome._replace(
        decision_id=decisions[0].decision_id,
        resolves=decisions[0].resolves,
        edited_digest=revised.digest if isinstance(revised, ToolCallProposed) else "",
        opened=opened if isinstance(opened, HoldOpened) else None,
        counted=len(decisions) - 1 if opened else 0,
        probe=probe if isinstance(probe, ProbeEnded) else None,
    )


def _refusal(body: Message) -> Refused:
    if isinstance(body, CommandRefused):
        return Refused(body.code, body.detail)
    if isinstance(body, DecisionRefused):
        return Refused(body.code, body.detail, body.winning_decision_id)
    return given_up()


def given_up() -> Refused:
    """Return the answer to a command that made deciders crash, and to each repeat of it."""
    return Refused(Refusal.UNAVAILABLE, ABANDONED, given_up=True)


_REFUSALS = frozenset({CommandRefused, DecisionRefused, CommandAbandoned})

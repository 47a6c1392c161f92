"""Facts counted into parts: sums for a tool, and the newest facts of each class of its calls."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from schemas.call_history import NO_HISTORY, CallHistory
from schemas.trust import ClassFact, ClassPart, FactKind, TrustPart
from schemas.trust_score import CONTRARY, against_of, kept

Kind = Literal["successes", "failures", "unknowns", "approvals", "edits", "rejections"]
KINDS: tuple[Kind, ...] = ("successes", "failures", "unknowns", "approvals", "edits", "rejections")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact about an agent and a tool, with its position in the log.

    `kind` is what it counts as for the tool, `fact` for the call's class; None if it does not count there. `by` are
    the accounts whose word it is, `requester` the account that proposed the call, `history` is that of its values.
    """

    tenant: str
    project: str
    agent: str
    tool: str
    kind: Kind | None
    at_ms: int
    partition: int
    offset: int
    record_id: str
    term: int
    topic_id: str
    trust_class: str = ""
    fact: FactKind | None = None
    by: tuple[str, ...] = ()
    requester: str = ""
    history: CallHistory = NO_HISTORY


def count(part: TrustPart | None, evidence: Evidence) -> TrustPart:
    """The part of a tool with one more fact; the same part if it has counted that offset already."""
    if part is not None and evidence.offset <= part.through_offset:
        return part
    if evidence.kind is None:
        raise ValueError("this fact does not count for the tool")
    base = part or _first_part(evidence)
    return base.model_copy(
        update={
            evidence.kind: getattr(base, evidence.kind) + 1,
            "last_evidence_at_ms": evidence.at_ms,
            "through_offset": evidence.offset,
            "record_id": evidence.record_id,
            "term": evidence.term,
        }
    )


def count_in_class(part: ClassPart | None, evidence: Evidence) -> ClassPart:
    """The part of a class with one more fact; the same part if it has counted that offset already."""
    if part is not None and evidence.offset <= part.through_offset:
        return part
    if evidence.fact is None:
        raise ValueError("this fact does not count for the class")
    fact = ClassFact(
        offset=evidence.offset,
        at_ms=evidence.at_ms,
        kind=evidence.fact,
        by=evidence.by,
        requester=evidence.requester,
        **_values_in(evidence),
    )
    given = (*(part.facts if part else ()), fact)
    facts = kept(given)
    offsets = {one.offset for one in facts}
    dropped = [one for one in given if one.offset not in offsets]
    return ClassPart(
        tenant=evidence.tenant,
        project=evidence.project,
        agent=evidence.agent,
        tool=evidence.tool,
        trust_class=evidence.trust_class,
        partition=evidence.partition,
        facts=facts,
        begins_at=part.begins_at if part else evidence.offset,
        counted=(part.counted if part else 0) + 1,
        against=against_of(part.against if part else (), dropped, evidence.at_ms),
        through_offset=evidence.offset,
        record_id=evidence.record_id,
        term=evidence.term,
        topic_id=evidence.topic_id,
    )


def _values_in(evidence: Evidence) -> dict[str, Any]:
    """What a fact says of values: an approval makes them known, a contrary fact outweighs one approval of each."""
    history = evidence.history
    if evidence.fact == "approval":
        return {"values": history.values, "numbers": history.numbers}
    return {"values": history.values} if evidence.fact in CONTRARY else {}


def _first_part(evidence: Evidence) -> TrustPart:
    return TrustPart(
        tenant=evidence.tenant,
        project=evidence.project,
        agent=evidence.agent,
        tool=evidence.tool,
        partition=evidence.partition,
        last_evidence_at_ms=evidence.at_ms,
        through_offset=evidence.offset,
        record_id=evidence.record_id,
        term=evidence.term,
        topic_id=evidence.topic_id,
    )


def combine(parts: Iterable[TrustPart]) -> dict[str, int]:
    """The sums of several parts' counts, and the time of the newest fact (0 if there is none)."""
    found = tuple(parts)
    sums: dict[str, int] = {kind: sum(getattr(part, kind) for part in found) for kind in KINDS}
    newest = max((part.last_evidence_at_ms for part in found), default=0)
    return sums | {"last_evidence_at_ms": newest}

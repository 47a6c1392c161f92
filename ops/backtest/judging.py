"""A recorded verdict judged again, by the functions with which the decider judged it.

What the decider took from elsewhere than the log of the call (the trust in its class, the seed of the draw) is taken
from the verdict itself, which records it. Trust that was not known then is not known here either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from schemas.actor import Actor
from schemas.adaptive import outcome_from_text
from schemas.call_history import NO_HISTORY, CallHistory, history_from_text
from schemas.events.calls import PolicyVerdictIssued
from schemas.policy_document import PolicyDocument
from schemas.record import Event
from services.domain.arguments import parsed
from services.domain.context import Context, InForce
from services.domain.definitions import Definitions
from services.domain.execution.verdicts import Judgement, judgement_of
from services.domain.policy import CallFacts, Verdict
from services.domain.policy.identifying import identifying_of
from services.domain.policy.leaves import TooMany
from services.domain.state import Call, Execution
from services.domain.trust.otherwise import is_of_others
from services.runtime.rule_changes import PendingRuleChanges

FRACTIONS = ("lower_bound", "raising", "lowering")
UNKNOWN = CallHistory(parts=("novel", "tainted"), is_whole=False)
MANY = 1_000_000
NOBODY = Actor(subject="", tenant="", project="", roles=())


class Inputs(NamedTuple):
    """What a verdict records of what it was judged by.

    `trust` in the call's `trust_class` is None if it was not known. `history` is what the past says of the call's
    values; for the candidate, if an earlier version recorded none, `presumed` is that all of them are new and out of
    untrusted outputs. `seed` is that of the draw; of a verdict without one it is derived from the event's id, so that
    each replay makes the same draw, and `drawn_at` is None; else it is the rate of samples of the draw that was made.
    `approved_otherwise` are the approvals of other classes that the verdict names.
    """

    trust: Mapping[str, Any] | None
    trust_class: str
    history: CallHistory
    presumed: CallHistory
    seed: str
    drawn_at: float | None
    approved_otherwise: str = ""

    @property
    def are_whole(self) -> bool:
        """True if trust and the history of the values are recorded, as far as the candidate depends on them."""
        return self.trust is not None and self.presumed.is_known and self.presumed is not UNKNOWN

    @property
    def permissive(self) -> Inputs:
        """The same with the trust and the history that release most, where they are not recorded."""
        trust = self.trust if self.trust is not None else _most_trust(self.trust_class)
        history = NO_HISTORY if self.presumed is UNKNOWN else structs.replace(self.history, is_known=True)
        return self._replace(trust=trust, trust_class=trust["trust_class"], history=history, presumed=history)


def looks_back(document: PolicyDocument) -> bool:
    """True if a policy's verdicts may depend on the history of a call's values, or on trust."""
    conditions = " ".join(rule.when or "" for rule in document.rules)
    named = ("novel", "tainted", "history", "risk", "trust")
    return document.adaptive is not None or any(name in conditions for name in named)


def inputs_of(event: Event, verdict: PolicyVerdictIssued, arguments: str, *, looks_back: bool) -> Inputs:
    """The recorded inputs of a verdict.

    Args:
        event: the verdict's record.
        verdict: its body.
        arguments: of the call, JSON.
        looks_back: whether the candidate depends on the history of the call's values (see `looks_back`).

    Raises:
        ValueError: they cannot be read.
    """
    outcome = None if verdict.adaptive is None else outcome_from_text(verdict.adaptive)
    seed = "" if outcome is None else outcome.seed
    drawn_at = outcome.sample_rate if outcome is not None and seed else None
    drawn_by = seed or sha256(event.meta.event_id.encode()).hexdigest()
    trust = None if verdict.trust is None else _trust(verdict.trust)
    history = history_from_text(verdict.history)
    is_unknown = looks_back and verdict.history is None and _has_values(verdict, arguments)
    presumed = UNKNOWN if is_unknown else history
    otherwise = outcome.why if outcome is not None and is_of_others(outcome.why) else ""
    return Inputs(trust, verdict.trust_class, history, presumed, drawn_by, drawn_at, otherwise)


def _most_trust(trust_class: str) -> dict[str, Any]:
    none = ("failures", "unknowns", "edits", "rejections")
    return {
        **dict.fromkeys(none, 0),
        **dict.fromkeys(("successes", "approvals"), MANY),
        "last_evidence_at_ms": 0,
        "trust_class": trust_class or "presumed",
        "lower_bound": 1.0,
        "raising": float(MANY),
        "lowering": 0.0,
        "contrary_at": "",
        "through": {},
    }


def _has_values(verdict: PolicyVerdictIssued, arguments: str) -> bool:
    """True if a call has values that have a history."""
    try:
        found = identifying_of(parsed(arguments), verdict.risk_parts)
    except (TooMany, OverflowError):
        return True
    return bool(found.values or found.numbers)


class _Cited(msgspec.Struct):
    """The form of what a verdict records of trust; an earlier version recorded less."""

    successes: int = 0
    failures: int = 0
    unknowns: int = 0
    approvals: int = 0
    edits: int = 0
    rejections: int = 0
    last_evidence_at_ms: int = 0
    trust_class: str = ""
    lower_bound: float = 0.0
    raising: float = 0.0
    lowering: float = 0.0
    contrary_at: str = ""
    through: dict[int, int] = {}


def _trust(text: str) -> dict[str, Any]:
    """What a verdict records of trust.

    Raises:
        ValueError: it is of another form.
    """
    try:
        trust: dict[str, Any] = msgspec.json.decode(text, type=dict)
        msgspec.json.decode(text, type=_Cited)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    # RFC 8785 writes 1.0 as 1, and CEL compares no whole number with one that is not.
    return trust | {name: float(trust[name]) for name in FRACTIONS if name in trust}


@dataclass(frozen=True, slots=True)
class Moment:
    """One verdict in its place: the run before it, its call, and what it records of its inputs."""

    event: Event
    state: Execution
    call: Call
    inputs: Inputs
    changes: PendingRuleChanges
    facts: dict[CallHistory, CallFacts] = field(default_factory=dict)

    @property
    def permissive(self) -> Moment:
        """The same with the inputs that release most, where they are not recorded."""
        return replace(self, inputs=self.inputs.permissive, facts={})

    @property
    def is_first(self) -> bool:
        """True if the decider judged an agent's own proposal, and not an edit or a release of before."""
        return not self.call.judged and self.call.revision == 1

    def facts_by(self, definitions: Definitions, history: CallHistory) -> CallFacts:
        """The call's facts; they do not depend on policies, so the candidate is given those of the published ones."""
        if history not in self.facts:
            facts = definitions.facts_of(self.state, self.call, history, self.inputs.trust_class)
            otherwise = self.inputs.approved_otherwise
            self.facts[history] = structs.replace(facts, approved_otherwise=lambda: otherwise)
        return self.facts[history]


def judged(moment: Moment, definitions: Definitions, history: CallHistory) -> Judgement:
    """The judgement on a call by these definitions and this history of its values."""
    ctx = _context(moment, definitions, history)
    if moment.is_first:
        return judgement_of(moment.state, moment.call, ctx)
    return Judgement(ctx.judge(moment.state, moment.call))


def _context(moment: Moment, definitions: Definitions, history: CallHistory) -> Context:
    state, event, changes = moment.state, moment.event, moment.changes
    now_ms = event.meta.at_ms

    def judge(execution: Execution, call: Call) -> Verdict:
        cited = moment.inputs.trust
        return definitions.judge_citing(
            execution,
            call,
            now_ms,
            lambda _: cited,
            history,
            rests=changes.rests,
            facts=moment.facts_by(definitions, history),
        )

    def standing(project: str, agent: str, tool: str) -> tuple[InForce, ...]:
        return tuple(
            InForce(rule.document, (rule.tenant, rule.rule_id) in changes.spent, rule.activators)
            for rule in definitions.standing.active(state.tenant, project, agent, tool)
            if not changes.rests(rule)
        )

    return Context(
        actor=NOBODY,
        command_id=event.meta.command_id,
        now_ms=now_ms,
        definitions_through=definitions.through_offset,
        tool=lambda name: definitions.tool(state.tenant, name, state.project),
        judge=judge,
        people=definitions.people.of(state.tenant, state.project),
        standing=standing,
        execution_id=state.execution_id,
        key=event.key.decode(),
        fresh_seed=lambda: moment.inputs.seed,
    )

"""A verdict by which trust released a call, as the checker reads it: what it says, and what contradicts it.

Written apart from `services.domain.policy` and `schemas.trust_family` on purpose: a mistake there must not be
repeated here. Only the numbers of docs/policy.md and docs/trust.md are repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from ops.checker.policies import Policy
from schemas.adaptive import draw_of

# docs/policy.md, Risk.
WEIGHTS = {
    "unknown_tool": 0.50,
    "destructive": 0.35,
    "money": 0.35,
    "writes": 0.25,
    "runs_code": 0.25,
    "open_world": 0.10,
    "not_idempotent": 0.05,
    "novel": 0.30,
    "tainted": 0.65,
}
# The parts that the history of a call's values adds.
OF_HISTORY = ("novel", "tainted")
MEDIUM, HIGH, TOLERATED = 0.30, 0.65, 0.05
_RISK = "risk="
PATHS_MAX = 160

T = TypeVar("T")


class Outcome(msgspec.Struct, frozen=True):
    """What is read of `adaptive`. No number is NaN or infinite: neither is JSON."""

    result: str
    lower_bound: float
    required: float
    floor: float | None
    sample_rate: float
    seed: str
    draw: float | None


class Cited(msgspec.Struct, frozen=True):
    """What is read of `trust`; `through` is partition → offset."""

    trust_class: str
    through: dict[int, int]
    raising: float
    lowering: float
    lower_bound: float
    contrary_at: str


class History(msgspec.Struct, frozen=True):
    """What is read of `history`."""

    parts: tuple[str, ...] = ()
    novel: tuple[str, ...] = ()
    tainted: tuple[str, ...] = ()
    is_whole: bool = True
    is_known: bool = True
    opposed: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


class Unreadable(Exception):
    """A text is not what a verdict records."""


class Family(NamedTuple):
    """What is read of a class: the terms before its risk, and the paths of new and of tainted values in its risk."""

    terms: str
    novel: frozenset[str]
    tainted: frozenset[str]

    def closes(self, other: Family) -> bool:
        """Whether what was contrary in this class counts for another: equal terms, with no path less in its risk."""
        return self.terms == other.terms and self.novel <= other.novel and self.tainted <= other.tainted


def family_of(trust_class: str) -> Family:
    """The family of a class; the plain `novel` and `tainted` of earlier versions are at a place of their own."""
    terms, mark, risk = trust_class.rpartition(_RISK)
    if not mark:
        return Family(trust_class, frozenset(), frozenset())
    paths: dict[str, frozenset[str]] = dict.fromkeys(OF_HISTORY, frozenset())
    for part in risk.split(","):
        name, colon, listed = part.partition(":")
        if name in paths:
            paths[name] = frozenset(listed.split("+") if colon else ("*",))
    return Family(terms, paths["novel"], paths["tainted"])


def read(body: Any) -> tuple[Outcome, Cited, History]:
    """The three texts of a verdict that trusts.

    Raises:
        Unreadable: one is missing, or not what a verdict records.
    """
    if body.adaptive is None or body.trust is None:
        raise Unreadable("a verdict without an outcome or trust")
    history = "{}" if body.history is None else body.history
    return _read(body.adaptive, Outcome), _read(body.trust, Cited), _read(history, History)


def contradictions(
    body: Any, outcome: Outcome, trust: Cited, history: History, policy: Policy | None, digest: str
) -> Iterator[str]:
    """What a verdict that trusts says against itself and against the policy, by docs/trust.md.

    Each comparison is written so that a number which is none passes nothing.

    Args:
        body: the PolicyVerdictIssued.
        outcome: its `adaptive`.
        trust: its `trust`.
        history: its `history`.
        policy: the policy that it names, as in force; None for none.
        digest: the digest of the call.
    """
    if outcome.result != "released":
        yield "without an outcome that says so"
    if trust.trust_class != body.trust_class or not body.trust_class:
        yield "in another class of calls"
    if trust.contrary_at:
        yield "against what people had said"
    yield from _of_values(history, body.trust_class)
    if trust.lower_bound != outcome.lower_bound:
        yield "by another bound than that of its trust"
    floor = outcome.floor
    if floor is None or not (outcome.lower_bound >= outcome.required and outcome.lower_bound >= floor):
        yield "that is not enough"
    score, required = _risk((*body.risk_parts, *history.parts))
    if not (outcome.required >= required and outcome.required >= body.risk_required):
        yield "that must outweigh less than its risk"
    yield from _of_policy(outcome, policy, score)
    yield from _of_rules(body, policy)
    draw = draw_of(outcome.seed, body.call_id, body.revision, digest)
    if not outcome.seed or draw != outcome.draw or not draw >= outcome.sample_rate:
        yield "against its draw"


def _of_values(history: History, trust_class: str) -> Iterator[str]:
    """What the history of a call's values says against a release."""
    if history.opposed:
        yield "with a value that people were against"
    if history.apart:
        yield "with values that people have approved, but not together"
    if not history.is_whole:
        yield "with values that were not looked at"
    if not history.is_known:
        yield "while nobody knew what is new in it"
    of_class = {part for part in trust_class.rpartition(_RISK)[2].split(",") if _name(part) in OF_HISTORY}
    paths = {"novel": set(history.novel), "tainted": set(history.novel) & set(history.tainted)}
    named = {f"{name}:{_listed(paths.get(name, ()))}" for name in history.parts}
    is_told = bool(history.novel) == ("novel" in history.parts)
    # Classes of earlier versions name no paths.
    if not is_told or of_class not in (named, set(history.parts)):
        yield "in a class for other values than it has"


def _listed(paths: Iterable[str]) -> str:
    """The paths as a class names them: of more than 160 characters, a digest."""
    text = "+".join(sorted(paths))
    return text if len(text) <= PATHS_MAX else f"~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _of_rules(body: Any, policy: Policy | None) -> Iterator[str]:
    """What the rules that a verdict cites say against a release: each must ask any one reviewer, and allow it."""
    if policy is None:
        return
    if not body.rules:
        yield "though no rule holds it"
    prefix = f"{body.policy_version}/"
    for cited in body.rules:
        never = policy.rules.get(cited.removeprefix(prefix)) if cited.startswith(prefix) else None
        if never is None:
            yield "by a rule that its policy does not have"
        elif never:
            yield never


def _of_policy(outcome: Outcome, policy: Policy | None, score: float) -> Iterator[str]:
    block = None if policy is None else policy.adaptive
    if block is None:
        yield "by a policy that is not in force, or has no adaptive block"
        return
    floor = block.floor.high if score >= HIGH else block.floor.medium if score >= MEDIUM else block.floor.low
    if outcome.floor != (None if floor == "ask" else floor):
        yield "by another floor than the policy's"
    if outcome.sample_rate != block.sample_rate:
        yield "by another sample rate than the policy's"


def _risk(parts: Iterable[str]) -> tuple[float, float]:
    """The score of a risk, and the trust that must outweigh it; the parts in the order in which they are recorded."""
    harmless, is_known = 1.0, True
    for part in parts:
        harmless *= 1 - WEIGHTS.get(part, 1.0)
        is_known = is_known and part in WEIGHTS and part != "unknown_tool"
    score = round(1 - harmless, 4)
    if not is_known:
        return score, 1.0
    return score, round(max(0.0, 1 - TOLERATED / score), 4) if score else 0.0


def _name(part: str) -> str:
    return part.partition(":")[0]


def _read(text: str, form: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise Unreadable(str(error)) from error

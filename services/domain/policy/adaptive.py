"""Release by earned trust: whether the policy's adaptive block lets trust answer what a rule asks people.

Trust only ever turns a hold into a release, never a denial, and only a hold of a rule that matched. It must reach
both what the risk requires and the floor of the risk's level, whatever the condition says. Where anything is missing
or fails, people are asked.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.policy_document import Adaptive, Floor, Hold
from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import CompiledExpression, Evaluator, compile_expression
from services.domain.policy.risk import Risk
from services.domain.policy.verdict import AdaptiveAnswer, nothing_approved


@dataclass(frozen=True, slots=True)
class CompiledAdaptive:
    """A policy's adaptive block."""

    allow_when: CompiledExpression
    sample_rate: float
    floor: Floor


def compile_adaptive(block: Adaptive) -> CompiledAdaptive:
    """Compile a block.

    Raises:
        DoesNotCompile: its condition does not compile.
    """
    return CompiledAdaptive(compile_expression(block.allow_when), float(block.sample_rate), block.floor)


def answer_of(
    block: CompiledAdaptive,
    asking: Iterable[Hold],
    plain: Risk,
    risk: Risk,
    trust: Mapping[str, Any] | None,
    bindings: Iterable[Bindings],
    evaluate: Evaluator,
    approved_otherwise: Callable[[], str] = nothing_approved,
) -> AdaptiveAnswer:
    """What a block says of a call that matched rules hold.

    Args:
        block: the policy's.
        asking: the holds of the rules that ask for people.
        plain: the call's risk by its tool alone.
        risk: the same with what the history of its values adds.
        trust: the trust as the verdict cites it; None while incomplete.
        bindings: the call's values for conditions, for each view of its tool.
        evaluate: evaluates conditions.
        approved_otherwise: what approvals of other classes of calls there are, for people to read.
    """
    bound = None if trust is None else float(trust["lower_bound"])
    why = (
        asks_certain_people(asking)
        or _too_little(block, plain, risk, trust, approved_otherwise)
        or _not_allowed(block.allow_when, bindings, evaluate)
    )
    return AdaptiveAnswer(not why, why, bound, risk.required, _floor(block, risk), block.sample_rate)


def refused(block: CompiledAdaptive, risk: Risk, why: str) -> AdaptiveAnswer:
    """The answer for a hold that trust cannot release, whatever it is."""
    return AdaptiveAnswer(False, why, None, risk.required, None, block.sample_rate)


def asks_certain_people(asking: Iterable[Hold]) -> str:
    """Why trust never releases a call that these holds ask about; empty if it may."""
    for hold in asking:
        if not hold.adaptive:
            return "the rule always asks"
        certain = hold.roles or hold.reviewers or hold.excluded or hold.exclude_requester
        if certain or hold.quorum > 1 or hold.escalate is not None or hold.kind != "permission":
            return "the rule asks certain people"
    return ""


def _floor(block: CompiledAdaptive, risk: Risk) -> float | None:
    at_level = getattr(block.floor, risk.level)
    return None if at_level == "ask" else float(at_level)


def _too_little(
    block: CompiledAdaptive,
    plain: Risk,
    risk: Risk,
    trust: Mapping[str, Any] | None,
    approved_otherwise: Callable[[], str],
) -> str:
    if trust is None:
        return "trust is not complete"
    if not trust["trust_class"]:
        return "its arguments are in no class of calls"
    if trust["contrary_at"]:
        return _contrary(trust["contrary_at"], trust.get("through") or {})
    floor = _floor(block, risk)
    if floor is None:
        return _too_risky(block, plain, risk)
    if not trust["raising"]:
        return nothing_raises(trust, approved_otherwise)
    bound, needed = trust["lower_bound"], max(floor, risk.required)
    if bound >= needed:
        return ""
    because = f"new values raise the risk {_raised(plain, risk)}: " if risk.score > plain.score else ""
    return f"{because}trust is at least {_down(bound)}, and {needed:.4f} is needed"


def _contrary(place: str, through: Mapping[str, int]) -> str:
    """What keeps a class from being released, by its place `partition@offset`.

    A fact within what trust has counted is in the score already: only a sample still keeps the class from there.
    """
    partition, _, offset = place.partition("@")
    if offset and int(offset) <= through.get(partition, -1):
        return f"a sampled call like this one waits for people, at {place} of the log"
    return f"such a call was decided otherwise, or waits for people as a sample, at {place} of the log"


def _too_risky(block: CompiledAdaptive, plain: Risk, risk: Risk) -> str:
    if _floor(block, plain) is None:
        return f"at {plain.level} risk ({', '.join(plain.parts)}) people are always asked"
    return f"people are asked while these values are new: they raise the risk {_raised(plain, risk)}"


def nothing_raises(trust: Mapping[str, Any], approved_otherwise: Callable[[], str] = nothing_approved) -> str:
    """Why nothing raises the trust in a class of calls.

    Args:
        trust: the trust as the verdict cites it.
        approved_otherwise: what approvals of other classes of calls there are; empty if none.
    """
    if trust["lowering"]:
        return "people were against such a call, or it failed, and no approval since then counts"
    if otherwise := approved_otherwise():
        return otherwise
    if trust.get("approvals") or trust.get("edits"):
        # Of the tool, in any class: in this one they may be uncounted as yet, too old, or of a withdrawn account.
        return "no approval of such a call counts: none is counted yet, or none counts any more"
    return "no approval of such a call is counted yet"


def _raised(plain: Risk, risk: Risk) -> str:
    parts = ", ".join(risk.parts)
    return f"from {plain.level} {plain.score:.4f} to {risk.level} {risk.score:.4f} ({parts})"


def _down(bound: float) -> str:
    """The bound rounded down, so that it never looks like the number that it does not reach."""
    return f"{math.floor(bound * 10_000) / 10_000:.4f}"


def _not_allowed(condition: CompiledExpression, bindings: Iterable[Bindings], evaluate: Evaluator) -> str:
    try:
        allowed = all(evaluate(condition, one) is True for one in bindings)
    except Exception as error:  # Whatever a condition raises, people are asked.
        return f"allow_when failed: {error}"
    return "" if allowed else "allow_when is not met"

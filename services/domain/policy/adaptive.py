"""Release by earned trust: whether the policy's adaptive block lets trust answer what a rule asks people.

Trust only ever turns a hold into a release, never a denial, and only a hold of a rule that matched. It must reach
both what the risk requires and the floor of the risk's level, whatever the condition says. Where anything is missing
or fails, people are asked.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.policy_document import Adaptive, Floor, Hold
from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import CompiledExpression, Evaluator, compile_expression
from services.domain.policy.risk import Risk
from services.domain.policy.verdict import AdaptiveAnswer


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
    risk: Risk,
    trust: Mapping[str, Any] | None,
    bindings: Iterable[Bindings],
    evaluate: Evaluator,
) -> AdaptiveAnswer:
    """What a block says of a call that matched rules hold.

    Args:
        block: the policy's.
        asking: the holds of the rules that ask for people.
        risk: the call's risk.
        trust: the trust as the verdict cites it; None while incomplete.
        bindings: the call's values for conditions, for each view of its tool.
        evaluate: evaluates conditions.
    """
    bound = None if trust is None else float(trust["lower_bound"])
    at_level = getattr(block.floor, risk.level)
    floor = None if at_level == "ask" else float(at_level)
    why = (
        _asks_certain_people(asking)
        or _too_little(trust, risk, floor)
        or _not_allowed(block.allow_when, bindings, evaluate)
    )
    return AdaptiveAnswer(not why, why, bound, risk.required, floor, block.sample_rate)


def refused(block: CompiledAdaptive, risk: Risk, why: str) -> AdaptiveAnswer:
    """The answer for a hold that trust cannot release, whatever it is."""
    return AdaptiveAnswer(False, why, None, risk.required, None, block.sample_rate)


def _asks_certain_people(asking: Iterable[Hold]) -> str:
    for hold in asking:
        if not hold.adaptive:
            return "the rule always asks"
        certain = hold.roles or hold.reviewers or hold.excluded or hold.exclude_requester
        if certain or hold.quorum > 1 or hold.escalate is not None or hold.kind != "permission":
            return "the rule asks certain people"
    return ""


def _too_little(trust: Mapping[str, Any] | None, risk: Risk, floor: float | None) -> str:
    if trust is None:
        return "trust is not complete"
    if not trust["trust_class"]:
        return "its arguments are in no class of calls"
    if trust["contrary_at"]:
        return (
            f"such a call was decided otherwise, or waits as a sample, at {trust['contrary_at']} of the log"
        )
    if floor is None:
        return f"at {risk.level} risk ({', '.join(risk.parts)}) people are always asked"
    if not trust["raising"]:
        return "nobody has approved such a call"
    bound = trust["lower_bound"]
    needed = max(floor, risk.required)
    return f"trust is at least {_down(bound)}, and {needed:.4f} is needed" if bound < needed else ""


def _down(bound: float) -> str:
    """The bound rounded down, so that it never looks like the number that it does not reach."""
    return f"{math.floor(bound * 10_000) / 10_000:.4f}"


def _not_allowed(condition: CompiledExpression, bindings: Iterable[Bindings], evaluate: Evaluator) -> str:
    try:
        allowed = all(evaluate(condition, one) is True for one in bindings)
    except Exception as error:  # Whatever a condition raises, people are asked.
        return f"allow_when failed: {error}"
    return "" if allowed else "allow_when is not met"

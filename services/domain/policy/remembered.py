"""The verdict if conditions read `memory.approved`: approved values can only replace asking people.

A call is first judged with nothing remembered. If that is a hold, it is judged again with the values that can replace
the people whom it asks. A condition may also negate them ("deny what nobody has approved"), so it is judged with all
values as well, and the stricter verdict counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from schemas.canonical import parse_strict
from schemas.policy_document import Remember
from services.domain.policy.cel import Evaluator, evaluate_in_process
from services.domain.policy.compiled import PolicySet
from services.domain.policy.judge import judge, reads_memory
from services.domain.policy.verdict import STRICTNESS, CallFacts, Verdict

Values = Mapping[str, Sequence[Any]]
Every = TypeVar("Every", bound=Values)


def judge_with_memory(
    policies: PolicySet,
    call: CallFacts,
    now_ms: int,
    every: Callable[[], Every],
    standing_in: Callable[[Every, Verdict], Values],
    evaluate: Evaluator = evaluate_in_process,
) -> Verdict:
    """The verdict of the policies on a call, with remembered values.

    Args:
        policies: the set in force.
        call: the call's facts, with nothing remembered.
        now_ms: the log's time, milliseconds since the epoch.
        every: returns all values, by argument; called only if a condition reads them.
        standing_in: returns those of the values that can replace the people whom a hold asks.
        evaluate: as for `judge`.
    """

    def judged(memory: Values) -> Verdict:
        return judge(policies, replace(call, memory=memory), now_ms, evaluate)

    verdict = judged({})
    if not reads_memory(policies, call) or not (values := every()):
        return verdict
    if verdict.effect == "hold" and (counting := standing_in(values, verdict)):
        verdict = judged(counting)
        if counting == values:
            return verdict
    whole = judged(values)
    if STRICTNESS[whole.effect] != STRICTNESS[verdict.effect]:
        return max(verdict, whole, key=lambda one: STRICTNESS[one.effect])
    # Trust releases a call only if it may release it with any values.
    is_refused = whole.adaptive is not None and not whole.adaptive.is_eligible
    return replace(verdict, adaptive=whole.adaptive) if is_refused else verdict


def may_be_stood_in_for(verdict: Verdict) -> bool:
    """True if values can replace the people of a hold: the policy allows remembering it without a limit of uses."""
    terms = verdict.hold
    if terms is None or verdict.reason != "matched" or terms.requirements or terms.remember is None:
        return False
    today = Remember.model_validate(parse_strict(terms.remember))
    return "rule" in today.scopes and today.max_uses == "unlimited"


def judge_alone(policies: PolicySet, call: CallFacts, now_ms: int, evaluate: Evaluator) -> Verdict:
    """The verdict on a call outside a log; `memory` has the values of rules that would cover the call otherwise."""
    return judge_with_memory(
        policies,
        call,
        now_ms,
        lambda: call.memory,
        lambda values, held: values if may_be_stood_in_for(held) else {},
        evaluate,
    )

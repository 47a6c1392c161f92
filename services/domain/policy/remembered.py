"""The verdict where conditions read what is remembered (`memory.approved`): it only ever takes the place of people.

A call is judged as if nothing were remembered. Where that is a hold, it is judged again with the values that stand in
for those whom it asks. And a condition may negate them ("deny what nobody has approved"): so all values are tried as
well, and the stricter verdict counts.
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
    """What the policies say of a call, with what is remembered.

    Args:
        policies: the set in force.
        call: the call's facts, with nothing remembered.
        now_ms: the log's time, milliseconds since the epoch.
        every: by argument, all values; asked for where a condition reads them.
        standing_in: of those, the values that take the place of the people whom a hold asks.
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
    return whole if STRICTNESS[whole.effect] > STRICTNESS[verdict.effect] else verdict


def may_be_stood_in_for(verdict: Verdict) -> bool:
    """Whether a hold is one for whose people values can stand: the policy lets it be remembered without a limit."""
    terms = verdict.hold
    if terms is None or verdict.reason != "matched" or terms.requirements or terms.remember is None:
        return False
    today = Remember.model_validate(parse_strict(terms.remember))
    return "rule" in today.scopes and today.max_uses == "unlimited"


def judge_alone(policies: PolicySet, call: CallFacts, now_ms: int, evaluate: Evaluator) -> Verdict:
    """What policies say of a call outside a log: its `memory` has the values of rules of which all else fits."""
    return judge_with_memory(
        policies,
        call,
        now_ms,
        lambda: call.memory,
        lambda values, held: values if may_be_stood_in_for(held) else {},
        evaluate,
    )

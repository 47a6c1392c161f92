"""The terms of one hold, from the hold blocks of the rules that ask for it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from schemas.canonical import canonical
from schemas.policy_document import DefaultAnswer, Defaults, Hold, Remember
from services.domain.policy.needed import all_of
from services.domain.policy.question import render
from services.domain.policy.verdict import HoldTerms

DEFAULT_QUESTION = "Run {{tool.name}} for {{agent}}?"
# From lenient to strict: what a rejection does to the run, and what a deadline does to the call.
ON_REJECT_STRICTNESS = ("feedback", "rollback", "halt")
_ON_TIMEOUT_STRICTNESS = ("wait", "escalate", "default", "deny", "halt")
_PLAIN = Hold()


def terms_of_all(
    asking: Sequence[tuple[str, Hold | None]], defaults: Defaults, variables: Mapping[str, Any]
) -> HoldTerms:
    """The terms of a hold for which several rules may ask.

    The people of each rule are needed; for everything else the strictest rule counts, and the question is the first
    rule's. Such a hold cannot be remembered.

    Args:
        asking: the rules, in the form of citations, with their blocks; empty for a hold that no rule describes.
        defaults: the policy's defaults.
        variables: the variables of the question, as in `question.render`.
    """
    if len({block for _, block in asking}) <= 1:
        return terms_of(asking[0][1] if asking else None, defaults, variables)
    every = [terms_of(block, defaults, variables) for _, block in asking]
    needed = all_of((terms, (rule,)) for terms, (rule, _) in zip(every, asking, strict=True))
    ends = max(every, key=lambda terms: _ON_TIMEOUT_STRICTNESS.index(terms.on_timeout))
    named = next(
        (terms for terms, (_, block) in zip(every, asking, strict=True) if block and block.question), every[0]
    )
    escalate_after = [terms.escalate_after_ms for terms in every if terms.escalate_after_ms is not None]
    return HoldTerms(
        kind=every[0].kind if len({terms.kind for terms in every}) == 1 else "permission",
        question=named.question,
        roles=needed.roles,
        reviewers=needed.reviewers,
        excluded=_distinct(name for terms in every for name in terms.excluded),
        quorum=needed.quorum,
        requirements=needed.requirements,
        exclude_requester=any(terms.exclude_requester for terms in every),
        timeout_ms=_shortest(every),
        on_timeout=ends.on_timeout,
        on_timeout_default=ends.on_timeout_default,
        # Not before the last rule's time: others are asked later than their rule says, never earlier.
        escalate_after_ms=max(escalate_after, default=None),
        escalate_roles=_escalation(every),
        on_reject=max((terms.on_reject for terms in every), key=ON_REJECT_STRICTNESS.index),
        remind_after_ms=min(
            (ms for terms in every if (ms := terms.remind_after_ms) is not None), default=None
        ),
    )


def _shortest(every: Iterable[HoldTerms]) -> int | None:
    ending = [
        terms.timeout_ms for terms in every if terms.on_timeout != "wait" and terms.timeout_ms is not None
    ]
    return min(ending, default=None)


def _escalation(every: Sequence[HoldTerms]) -> tuple[str, ...]:
    return _distinct(role for terms in every for role in terms.escalate_roles)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def terms_of(hold: Hold | None, defaults: Defaults, variables: Mapping[str, Any]) -> HoldTerms:
    """The terms of a hold.

    Args:
        hold: the rule's block; None for a hold that no rule describes.
        defaults: the policy's defaults.
        variables: the variables of the question, as in `question.render`.
    """
    block = hold or _PLAIN
    on_timeout = block.on_timeout or defaults.on_timeout
    # As JSON, the form of a hold's default, even if a question asks for another kind of value.
    answer = canonical(on_timeout.default) if isinstance(on_timeout, DefaultAnswer) else None
    seconds = defaults.timeout_seconds if block.timeout_seconds is None else block.timeout_seconds
    escalate = block.escalate
    return HoldTerms(
        kind=block.kind,
        question=render(block.question or DEFAULT_QUESTION, variables),
        roles=block.roles,
        quorum=block.quorum,
        exclude_requester=block.exclude_requester,
        timeout_ms=_milliseconds(seconds),
        on_timeout="default" if isinstance(on_timeout, DefaultAnswer) else on_timeout,
        on_timeout_default=answer,
        escalate_after_ms=_milliseconds(escalate.after_seconds) if escalate else None,
        escalate_roles=escalate.roles if escalate else (),
        on_reject=block.on_reject,
        reviewers=block.reviewers,
        excluded=block.excluded,
        remember=_json_of(block.remember),
        remind_after_ms=None
        if block.remind_after_seconds is None
        else _milliseconds(block.remind_after_seconds),
    )


@lru_cache(maxsize=1024)
def _json_of(remember: Remember) -> str:
    """The block as JSON, with every default filled in."""
    return canonical(remember.model_dump(mode="json"))


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))

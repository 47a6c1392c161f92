"""Warnings about a policy's adaptive block that can never release a call, or that releases more than it seems to."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from schemas.policy_document import ALLOW_WHEN, Adaptive, Hold, PolicyDocument, Rule
from schemas.policy_problems import Problem, warning
from schemas.trust_score import Posterior
from services.domain.policy.adaptive import asks_certain_people
from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import (
    CompiledExpression,
    DoesNotCompile,
    compile_expression,
    evaluate_in_process,
)
from services.domain.policy.cel_tokens import Unreadable, tokenize
from services.domain.policy.failures import ExpressionTooLarge
from services.domain.policy.risk import with_history
from services.domain.policy.tool_facts import tool_views
from services.domain.policy.verdict import CallFacts
from services.domain.policy.visible import VISIBLE, variables_of
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from services.domain.trust.reading import fields_of

BLOCK = "adaptive"
LEVELS = ("low", "medium", "high")
# What a call's own facts add can be anything: only a condition on these alone is tried.
_TRIED = frozenset({"trust", "risk"})
# Whether they equal a text depends on the call, or on the log.
_TEXTS = frozenset({"trust_class", "contrary_at", "through", "last_evidence_at_ms"})
_MANY = 1_000_000


def adaptive_warnings(document: PolicyDocument) -> Iterator[Problem]:
    """What of a document's adaptive block, and of its rules' word about it, has no effect or a surprising one."""
    yield from _without_effect(document)
    if (block := document.adaptive) is None:
        return
    if not any(map(_may_be_released, document.rules)):
        message = (
            "no rule holds a call that trust could release: it releases none that is allowed or denied, or that asks "
            "certain people, more than one or others later, or says adaptive: false"
        )
        yield warning(BLOCK, "never_releases", message)
    yield from _of_condition(block)
    yield from _of_floor(block)
    if not block.sample_rate:
        message = "nothing checks what trust releases: only sampled calls show how often it would be wrong"
        yield warning(f"{BLOCK}.sample_rate", "no_sample", message)


def _may_be_released(rule: Rule) -> bool:
    return rule.then == "hold" and not asks_certain_people([rule.hold or Hold()])


def _without_effect(document: PolicyDocument) -> Iterator[Problem]:
    """A warning for each hold that says `adaptive: true` where trust never releases its calls."""
    for index, rule in enumerate(document.rules):
        hold = rule.hold
        if hold is None or not hold.adaptive or "adaptive" not in hold.model_fields_set:
            continue
        if document.adaptive is None:
            why = "the policy has no adaptive block, so trust releases nothing; add one, or remove this"
        elif why := asks_certain_people([hold]):
            why = f"{why}, and trust never releases such a call; remove this, or whom it asks"
        if why:
            yield warning(f"rules[{index}].hold.adaptive", "no_effect", f"true has no effect: {why}")


def _of_floor(block: Adaptive) -> Iterator[Problem]:
    highest, at = -1.0, ""
    for level in LEVELS:
        bound = getattr(block.floor, level)
        path, value = f"{BLOCK}.floor.{level}", 2.0 if bound == "ask" else float(bound)
        if value == 1:
            message = (
                "no evidence makes a trust of 1, so no such call is ever released; write ask if that is meant"
            )
            yield warning(path, "never_releases", message)
        if value < highest:
            message = (
                f"calls of {level} risk need less trust than those of {at} risk, which are less dangerous"
            )
            yield warning(path, "lower_floor", message)
        else:
            highest, at = value, level


class _Tried(NamedTuple):
    """What a condition gave: how often it was true, and of how many; the first failure, and how many there were."""

    true: int
    of: int
    failures: int
    error: str


def _of_condition(block: Adaptive) -> Iterator[Problem]:
    tried = _tried(block.allow_when)
    if tried is None:
        return
    path = ALLOW_WHEN
    if tried.failures == tried.of:
        message = f"it fails for every trust and risk, so nothing is ever released: {tried.error}"
        yield warning(path, "always_fails", message)
    elif tried.failures:
        message = f"it fails for some values of trust and risk, and people are asked then: {tried.error}"
        yield warning(path, "may_fail", message)
    elif not tried.true:
        message = f"it is true for none of {tried.of} values of trust and risk that were tried"
        yield warning(path, "never_releases", f"{message}, from no trust to all of it: look for a typo")


def _tried(condition: str) -> _Tried | None:
    """What a condition gives on trust and risk of every size; None if that depends on other values."""
    try:
        names = {token.text for token in tokenize(condition) if token.kind == "name"}
        compiled = compile_expression(condition)
    except (Unreadable, DoesNotCompile):
        # The compiler reports it.
        return None
    if not (names & VISIBLE.keys() <= _TRIED) or names & _TEXTS:
        return None
    true, failures, error = 0, 0, ""
    samples = _samples()
    for variables in samples:
        try:
            true += _evaluated(compiled, variables)
        except ExpressionTooLarge:
            return None
        except Exception as failure:  # Whatever a condition raises, it is a failure: see `judge`.
            failures, error = failures + 1, error or str(failure)
    return _Tried(true, len(samples), failures, error)


def _evaluated(compiled: CompiledExpression, variables: dict[str, Any]) -> bool:
    return evaluate_in_process(compiled, Bindings(variables, 0, frozenset(compiled.shape.reads))) is True


@lru_cache(maxsize=1)
def _samples() -> tuple[dict[str, Any], ...]:
    """The variables of calls of each level of risk, with little and with much trust."""
    return tuple(
        {
            **variables_of(CallFacts(tenant="", project="", tool=tool, agent="", trust=trust), view),
            "risk": risk,
        }
        for tool, annotations in _TOOLS
        for view in tool_views(tool, {"name": tool, "annotations": annotations}, "", {})[-1:]
        for parts in ((), ("novel",), ("novel", "tainted"))
        for risk in (msgspec.to_builtins(with_history(view.risk, parts, is_known=True)),)
        for trust in _trusts()
    )


_CLOSED = {"openWorldHint": False, "idempotentHint": True}
_TOOLS: tuple[tuple[str, dict[str, bool]], ...] = (
    ("read", {"readOnlyHint": True, **_CLOSED}),
    ("note", {"destructiveHint": False, **_CLOSED}),
    ("pay", {"destructiveHint": False, **_CLOSED}),
    ("run_shell", {"destructiveHint": True}),
)


def _trusts() -> Iterator[dict[str, Any]]:
    counts = combine(())
    for number, lowering, bound in ((0, 0, 0.05), (20, 20, 0.37), (20, 0, 0.87), (_MANY, 0, 0.999_997)):
        found = Posterior(bound, float(number), float(lowering))
        value = fields_of(KnownTrust(counts, (), {}), "", found, None)
        against = {"rejections", "failures", "unknowns", "edits"}
        filled = {name: lowering if name in against else number for name in counts}
        yield {**value, **filled}

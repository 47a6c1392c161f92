"""The verdict on one call. If anything goes wrong on the way, the verdict is never allow.

1. Choose the policy by scope; none: hold.
2. Take the first rule that fits the tool, its hints and its condition; none: hold.
3. A condition that fails or does not end in time: at least the effect in `defaults.error`. The rules after it are
   still read, and can only make the verdict stricter. The people of every rule that failed are needed in addition
   to those of the rule that then matches, so that causing a failure gains nothing.
4. An unknown tool: at least the effect in `defaults.unknown_tool`, whatever the rule allows.
5. The agent's claims about its own tool are judged too, and the stricter of the two verdicts counts; if both hold,
   the people of both are needed.
6. While a policy of the tenant cannot be read, nothing is allowed: it might apply to this call, and deny it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from schemas.display.escape import revealed
from schemas.policy_document import Defaults, Effect, Hold
from services.domain.policy.adaptive import answer_of, nothing_raises, refused
from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import Evaluator, evaluate_in_process
from services.domain.policy.cel_memory import MEMORY
from services.domain.policy.compiled import CompiledPolicy, CompiledRule, PolicySet, UnreadablePolicy
from services.domain.policy.failures import EvaluationFailed, PolicyTimeout
from services.domain.policy.hold_terms import terms_of_all
from services.domain.policy.paths import PathResolver
from services.domain.policy.risk import Risk, with_history
from services.domain.policy.scopes import ScopeFacts
from services.domain.policy.tool_facts import ToolView, tool_views
from services.domain.policy.verdict import STRICTNESS, AdaptiveAnswer, CallFacts, HoldTerms, Reason, Verdict
from services.domain.policy.visible import variables_of
from services.domain.trust.otherwise import named

MAX_DETAIL_CHARS = 500
# Of trust as a verdict cites it: people's words for calls, of this class or of any.
_RAISING = ("raising", "approvals", "edits")


class _Case(msgspec.Struct, frozen=True):
    """One policy and one view of one call."""

    call: CallFacts
    view: ToolView
    risk: Risk
    policy: CompiledPolicy | None
    variables: dict[str, Any]

    @property
    def defaults(self) -> Defaults:
        return self.policy.defaults if self.policy else Defaults()

    @property
    def known(self) -> bool:
        return self.call.tool_definition is not None


class _Failure(msgspec.Struct, frozen=True):
    """The rules whose conditions gave no answer; reason and detail are those of the first."""

    rules: tuple[CompiledRule, ...]
    reason: Reason
    detail: str


class _Finding(msgspec.Struct, frozen=True):
    """One policy's verdict on one view: the rules to cite, and those among them that ask for people."""

    case: _Case
    effect: Effect
    reason: Reason
    detail: str
    rules: tuple[CompiledRule, ...] = ()
    asking: tuple[CompiledRule, ...] = ()


def judge(
    policies: PolicySet,
    call: CallFacts,
    now_ms: int,
    evaluate: Evaluator = evaluate_in_process,
    resolve_path: PathResolver | None = None,
) -> Verdict:
    """The verdict of the policies on a call. Pure, and never raises because of the content of a call or policy.

    Args:
        policies: the set in force.
        call: the call's facts.
        now_ms: the log's time, milliseconds since the epoch; CEL's `now`.
        evaluate: evaluates conditions; the default refuses those whose work may be large.
        resolve_path: follows symbolic links for `real_path()`; by default paths are resolved lexically.

    Returns:
        The verdict; `hold` is set exactly when the effect is hold.
    """
    try:
        views = tool_views(call.tool, call.tool_definition, call.tool_version, call.claimed_annotations)
        policy = policies.select(_scope_of(call))
        cases = [_Case(call, view, views[-1].risk, policy, variables_of(call, view)) for view in views]
        findings = [_judge(case, now_ms, evaluate, resolve_path) for case in cases]
        verdict = _strictest(findings)
        unread = policies.unreadable_of(call.tenant, call.project) if verdict.effect != "deny" else None
        if verdict.effect == "hold":
            bindings = _conditions(cases, now_ms, resolve_path)
            adaptive = _adaptive(verdict, findings, unread, bindings, evaluate)
            return msgspec.structs.replace(verdict, adaptive=adaptive)
        return verdict if unread is None else _unread(cases[-1], unread)
    except Exception as error:
        return _unjudged(call, error)


def reads_memory(policies: PolicySet, call: CallFacts) -> bool:
    """True if a condition that may be evaluated on a call reads `memory`."""
    policy = policies.select(_scope_of(call))
    reads = frozenset() if policy is None else policy.rules_of(call.tool).reads
    return any(name == MEMORY for name, _ in reads)


def _scope_of(call: CallFacts) -> ScopeFacts:
    return ScopeFacts(call.tenant, call.project, call.workspace, call.user, call.agent)


def _strictest(findings: list[_Finding]) -> Verdict:
    # max keeps the first of equals: claims change a verdict only if they make it stricter.
    first = max(findings, key=lambda finding: STRICTNESS[finding.effect])
    if first.effect != "hold":
        return _verdict(first)
    # Two views are held by different rules: the people of both are needed.
    holding = [finding for finding in findings if finding.effect == "hold"]
    rules = _distinct(rule for finding in holding for rule in finding.rules)
    asking = _distinct(rule for finding in holding for rule in finding.asking)
    return _verdict(msgspec.structs.replace(first, rules=rules, asking=asking))


def _judge(case: _Case, now_ms: int, evaluate: Evaluator, resolve_path: PathResolver | None) -> _Finding:
    if case.policy is None:
        return _Finding(case, "hold", "no_policy", "no policy is published for this call")
    rules = case.policy.rules_of(case.call.tool)
    bindings = Bindings(case.variables, now_ms, rules.reads, resolve_path)
    failure: _Failure | None = None
    for rule in rules.rules:
        if not rule.fits_hints(case.view.hints):
            continue
        # One wait is enough: after a timeout, a condition counts as failed without being evaluated.
        if rule.when is not None and failure is not None and failure.reason == "policy_timeout":
            failure = _also(failure, rule)
            continue
        try:
            matched = rule.when is None or evaluate(rule.when, bindings) is True
        except Exception as error:
            failure = _failure(rule, error, failure)
        else:
            if matched:
                return _failed(case, failure, rule) if failure else _matched(case, rule)
    return _failed(case, failure, None) if failure else _unmatched(case)


def _conditions(cases: list[_Case], now_ms: int, resolve_path: PathResolver | None) -> Iterator[Bindings]:
    """The values for the condition of an adaptive block: as for rules, but the risk has what the history adds."""
    for case in cases:
        reads = case.policy.rules_of(case.call.tool).reads if case.policy else frozenset()
        risk = with_history(case.view.risk, case.call.history.parts, is_known=case.known)
        variables = {**case.variables, "risk": msgspec.to_builtins(risk)}
        yield Bindings(variables, now_ms, reads, resolve_path)


def _adaptive(
    verdict: Verdict,
    findings: list[_Finding],
    unread: UnreadablePolicy | None,
    bindings: Iterable[Bindings],
    evaluate: Evaluator,
) -> AdaptiveAnswer | None:
    """What the policy's adaptive block says of a hold."""
    case = findings[-1].case
    policy = case.policy
    if policy is None or policy.adaptive is None:
        return None
    risk = with_history(verdict.risk, case.call.history.parts, is_known=case.known)
    holding = [finding for finding in findings if finding.effect == "hold"]
    if any(finding.reason != "matched" for finding in holding):
        return refused(policy.adaptive, risk, "it is not a rule alone that holds this call")
    if unread is not None:
        return refused(policy.adaptive, risk, f"the policy {unread.label} cannot be read")
    if not case.call.history.is_whole:
        return refused(policy.adaptive, risk, "it has values that are not looked at")
    if why := _of_values(case.call):
        return refused(policy.adaptive, risk, why)
    asking = [rule.rule.hold or Hold() for finding in holding for rule in finding.asking]
    said = case.call.approved_otherwise
    return answer_of(policy.adaptive, asking, verdict.risk, risk, verdict.trust, bindings, evaluate, said)


def _of_values(call: CallFacts) -> str:
    """Why trust does not release a call with these values, in whatever class it is; empty if it may."""
    history, trust = call.history, call.trust
    if history.opposed:
        return f"people were against calls with the same value at {named(history.opposed)}"
    if not history.apart:
        return ""
    if trust is not None and not (any(map(trust.get, _RAISING)) or call.approved_otherwise()):
        return nothing_raises(trust)
    known = history.apart_only
    if not history.novel:
        return f"people have approved what is at {named(known)}, but not together in such a call"
    beside = f"such a call with something new at {named(history.novel)}"
    if not known:
        return f"people have not approved {beside}"
    return f"people have approved what is at {named(known)}, but not in {beside}"


def _matched(case: _Case, rule: CompiledRule) -> _Finding:
    effect = rule.rule.then
    if case.known:
        return _Finding(
            case, effect, "matched", f"rule {rule.rule.id} says {effect}", (rule,), _asking((rule,))
        )
    detail = f"the tool is not published; rule {rule.rule.id} says {effect}"
    at_least = _stricter(effect, case.defaults.unknown_tool)
    return _Finding(case, at_least, "unknown_tool", detail, (rule,), _asking((rule,)))


def _unmatched(case: _Case) -> _Finding:
    if case.known:
        return _Finding(case, "hold", "no_match", "no rule matches this call")
    detail = "the tool is not published, and no rule matches"
    return _Finding(case, case.defaults.unknown_tool, "unknown_tool", detail)


def _failure(rule: CompiledRule, error: Exception, before: _Failure | None) -> _Failure:
    late = isinstance(error, PolicyTimeout)
    if before is not None:
        also = _also(before, rule)
        return msgspec.structs.replace(also, reason="policy_timeout") if late else also
    kind = "" if isinstance(error, EvaluationFailed) else f"{type(error).__name__}: "
    detail = f"the condition of rule {rule.rule.id} failed: {kind}{error}"
    return _Failure((rule,), "policy_timeout" if late else "policy_error", detail)


def _also(failure: _Failure, rule: CompiledRule) -> _Failure:
    return msgspec.structs.replace(failure, rules=(*failure.rules, rule))


def _failed(case: _Case, failure: _Failure, later: CompiledRule | None) -> _Finding:
    effect: Effect = case.defaults.error
    if not case.known:
        effect = _stricter(effect, case.defaults.unknown_tool)
    rules = failure.rules
    if later is not None and later.rule.then != "allow":
        effect = _stricter(effect, later.rule.then)
        rules = (*rules, later)
    # Any of the failed rules might have been the one that decides: the people of all of them are needed.
    others = ", ".join(rule.rule.id for rule in failure.rules[1:])
    detail = f"{failure.detail}; it is also unknown whether {others} match" if others else failure.detail
    return _Finding(case, effect, failure.reason, detail, rules, _asking(rules))


def _asking(rules: tuple[CompiledRule, ...]) -> tuple[CompiledRule, ...]:
    return tuple(rule for rule in rules if rule.rule.then == "hold")


def _distinct(rules: Iterable[CompiledRule]) -> tuple[CompiledRule, ...]:
    return tuple({rule.rule.id: rule for rule in rules}.values())


def _stricter(one: Effect, other: Effect) -> Effect:
    return max(one, other, key=STRICTNESS.__getitem__)


def _verdict(finding: _Finding) -> Verdict:
    case = finding.case
    label = case.policy.label if case.policy else ""
    return Verdict(
        effect=finding.effect,
        rules=tuple(f"{label}/{rule.rule.id}" for rule in finding.rules),
        policy_version=label,
        risk=case.risk,
        trust=case.call.trust,
        reason=finding.reason,
        detail=_plain(finding.detail),
        hold=_hold_terms(finding, label) if finding.effect == "hold" else None,
        trust_class=case.call.trust_class,
        history=case.call.history,
    )


def _hold_terms(finding: _Finding, label: str) -> HoldTerms:
    case = finding.case
    asking = [(f"{label}/{rule.rule.id}", rule.rule.hold or Hold()) for rule in finding.asking]
    terms = terms_of_all(asking, case.defaults, case.variables)
    if finding.reason == "matched" and case.risk.level != "high":
        return terms
    # People are offered only what a decision accepts: such a call cannot be remembered.
    return msgspec.structs.replace(terms, remember=None)


def _unread(case: _Case, policy: UnreadablePolicy) -> Verdict:
    """The verdict if a readable policy allows the call, but another policy cannot be read."""
    detail = f"the policy {policy.label} cannot be read: {policy.why}"
    verdict = _verdict(_Finding(case, "hold", "policy_error", detail))
    return msgspec.structs.replace(verdict, policy_version=policy.label)


def _unjudged(call: CallFacts, error: Exception) -> Verdict:
    """The verdict if judging itself failed: held, at the highest risk."""
    return Verdict(
        effect="hold",
        rules=(),
        policy_version="",
        risk=Risk(1.0, "high", ("unreadable",), 1.0),
        trust=None,
        reason="policy_error",
        detail=_plain(f"the call could not be judged: {type(error).__name__}: {error}"),
        hold=HoldTerms(question=f"Run {_plain(str(call.tool))}?"),
    )


def _plain(text: str) -> str:
    return revealed(text[:MAX_DETAIL_CHARS])

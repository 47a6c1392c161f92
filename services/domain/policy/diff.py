"""The changes of a new version of a policy: in its rules, and for given calls."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from schemas.canonical import canonical
from schemas.policy_document import Effect, PolicyDocument
from services.domain.policy.cel import Evaluator, evaluate_alone
from services.domain.policy.compiled import policy_alone
from services.domain.policy.remembered import judge_alone
from services.domain.policy.verdict import CallFacts


class ChangedRule(msgspec.Struct, frozen=True):
    """A rule that is in both versions; `fields` are the names of the fields that differ."""

    rule: str
    fields: tuple[str, ...]


class ChangedValue(msgspec.Struct, frozen=True):
    """A value that differs, as JSON: of a rule, or of the document (`rule` is empty); `null` where there is none."""

    rule: str
    place: str
    before: str
    after: str


class ChangedCall(msgspec.Struct, frozen=True):
    """A sample call whose verdict the new version changes."""

    index: int
    tool: str
    before: Effect
    after: Effect
    rules_before: tuple[str, ...]
    rules_after: tuple[str, ...]


class PolicyDiff(msgspec.Struct, frozen=True):
    """The differences. `reordered` are rules that are now before a rule that they were after."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedRule, ...]
    reordered: tuple[str, ...]
    fields: tuple[str, ...]
    calls: tuple[ChangedCall, ...]
    values: tuple[ChangedValue, ...] = ()

    @property
    def empty(self) -> bool:
        """True if nothing differs."""
        return not (self.added or self.removed or self.changed or self.reordered or self.fields or self.calls)


def diff(
    old: PolicyDocument,
    new: PolicyDocument,
    calls: Iterable[CallFacts] = (),
    now_ms: int = 0,
    evaluate: Evaluator = evaluate_alone,
) -> PolicyDiff:
    """Compare two versions.

    Args:
        old: the version in force.
        new: the version to be published.
        calls: samples, judged by each version alone as if their own tenant had published it.
        now_ms: the time of the verdicts.
        evaluate: as in `judge`.

    Raises:
        PolicyRefused: one of the two does not compile.
    """
    before, after = _rules(old), _rules(new)
    both = [name for name in before if name in after]
    return PolicyDiff(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(
            ChangedRule(name, fields) for name in both if (fields := _differing(before[name], after[name]))
        ),
        reordered=_reordered(both, [name for name in after if name in before]),
        fields=_differing(_head(old), _head(new)),
        calls=tuple(_changed_calls(old, new, calls, now_ms, evaluate)),
        values=(
            *_values("", "", _head(old), _head(new)),
            *(one for name in both for one in _values(name, "", before[name], after[name])),
        ),
    )


def _rules(document: PolicyDocument) -> dict[str, dict[str, Any]]:
    return {rule.id: rule.model_dump() for rule in document.rules}


def _head(document: PolicyDocument) -> dict[str, Any]:
    return document.model_dump(exclude={"rules"})


def _differing(one: dict[str, Any], other: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in one if one[name] != other[name])


def _values(rule: str, place: str, one: Any, other: Any) -> Iterator[ChangedValue]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys((*one, *other)):
            inner = f"{place}.{name}" if place else str(name)
            yield from _values(rule, inner, one.get(name), other.get(name))
    elif one != other:
        yield ChangedValue(rule, place, canonical(one), canonical(other))


def _reordered(before: list[str], after: list[str]) -> tuple[str, ...]:
    position = {name: index for index, name in enumerate(after)}
    furthest = -1
    moved = []
    for name in before:
        if position[name] < furthest:
            moved.append(name)
        furthest = max(furthest, position[name])
    return tuple(moved)


def _changed_calls(
    old: PolicyDocument, new: PolicyDocument, calls: Iterable[CallFacts], now_ms: int, evaluate: Evaluator
) -> Iterable[ChangedCall]:
    for index, call in enumerate(calls):
        sets = (policy_alone(old, call.tenant, 1), policy_alone(new, call.tenant, 2))
        before, after = (judge_alone(policies, call, now_ms, evaluate) for policies in sets)
        if before.effect != after.effect:
            yield ChangedCall(index, call.tool, before.effect, after.effect, before.rules, after.rules)

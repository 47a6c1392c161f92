"""Shadowing of policies: if two fit a call, the more specific one applies alone, and the other's rules do not.

The author of a policy for one agent may not think of the rules that stop applying to it. So each pair of policies
that can fit the same call is reported, with the rules that do not apply any more and the calls concerned.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from schemas.ids import TENANT_WIDE
from schemas.policy_document import PolicyDocument, Rule, Scope
from schemas.policy_problems import Problem, warning
from services.domain.policy.patterns import is_exact, overlap, specificity
from services.domain.policy.scopes import DIMENSIONS, order_of

WARNINGS_MAX = 50
RULES_NAMED_MAX = 5
_STRICTEST_FIRST = {"deny": 0, "hold": 1, "allow": 2}
_MANY = {
    "agent": "agents",
    "user": "users",
    "workspace": "workspaces",
    "project": "projects",
    "tenant": "tenants",
}


class Standing(NamedTuple):
    """A policy that is, or would be, in force; a project's own policy applies to that project alone."""

    document: PolicyDocument
    version: int
    project: str = TENANT_WIDE
    tenant: str = ""

    @property
    def name(self) -> str:
        """The name under which it is published."""
        return self.document.policy

    @property
    def scope(self) -> Scope:
        """The calls to which it applies."""
        scope = self.document.scope
        if self.project == TENANT_WIDE:
            return scope
        return scope.model_copy(update={"project": self.project})


def shadows(policy: Standing, others: Iterable[Standing]) -> list[Problem]:
    """Warnings about the rules of others that never apply because of a policy, and about its own because of others.

    Args:
        policy: the policy that is checked.
        others: the policies of the same tenant in force; an earlier version of the same policy is skipped.
    """
    found: list[Problem] = []
    for other in others:
        if (other.name, other.project) != (policy.name, policy.project):
            found.extend(_between(policy, other))
    if len(found) <= WARNINGS_MAX:
        return found
    message = f"{len(found) - WARNINGS_MAX} more policies rank before or after this one"
    return [*found[:WARNINGS_MAX], _warning(message)]


def _between(one: Standing, other: Standing) -> Iterator[Problem]:
    shared = {name: _shared(getattr(one.scope, name), getattr(other.scope, name)) for name in DIMENSIONS}
    if None in shared.values():
        return
    winner, loser = sorted((one, other), key=order_of)
    # A rule that the winner also has is not lost.
    kept = {_meaning(rule) for rule in winner.document.rules}
    lost = [rule for rule in loser.document.rules if _meaning(rule) not in kept]
    if not lost:
        return
    lost.sort(key=lambda rule: _STRICTEST_FIRST[rule.then])
    whom = _whom({name: str(pattern) for name, pattern in shared.items() if name != "tenant"}, loser)
    yield _warning(
        f"{_label(winner)} {_why(winner, loser)} and wins as a whole: {_named(lost)} of {_label(loser)} never "
        f"{'applies' if len(lost) == 1 else 'apply'}{whom}"
    )


def _warning(message: str) -> Problem:
    return warning("scope", "shadowed", message)


def _meaning(rule: Rule) -> str:
    return rule.model_dump_json(exclude={"id"})


def _label(policy: Standing) -> str:
    return f"`{policy.name}`" if policy.project == TENANT_WIDE else f"`{policy.project}/{policy.name}`"


def _named(rules: Sequence[Rule]) -> str:
    names = [rule.id for rule in rules[:RULES_NAMED_MAX]]
    if len(rules) > RULES_NAMED_MAX:
        names.append(f"{len(rules) - RULES_NAMED_MAX} more")
    if len(names) == 1:
        return f"rule {names[0]}"
    return f"rules {', '.join(names[:-1])} and {names[-1]}"


def _why(winner: Standing, loser: Standing) -> str:
    for name in DIMENSIONS:
        mine, other = getattr(winner.scope, name), getattr(loser.scope, name)
        if specificity(mine) != specificity(other):
            return f"names the {name}" if is_exact(mine) else f"names the {name} more exactly ({mine})"
    if (winner.project == TENANT_WIDE) != (loser.project == TENANT_WIDE):
        return "has the same scope, is the whole tenant's"
    if winner.version != loser.version:
        return f"has the same scope, the higher version ({winner.version})"
    return "has the same scope, comes first in the alphabet"


def _whom(shared: dict[str, str], loser: Standing) -> str:
    """The calls for which the loser's rules are lost; empty if these are all calls that they were for."""
    narrowed = {
        name: pattern for name, pattern in shared.items() if pattern not in ("*", getattr(loser.scope, name))
    }
    if not narrowed:
        return ""
    if list(narrowed) == ["agent"] and is_exact(narrowed["agent"]):
        return f" to {narrowed['agent']}"
    parts = (f"{name if is_exact(pattern) else _MANY[name]} {pattern}" for name, pattern in narrowed.items())
    return f" to {', '.join(parts)}"


def _shared(one: str, other: str) -> str | None:
    """The names that match both patterns, described by the narrower; None if there are none."""
    if not overlap(one, other):
        return None
    narrow, wide = sorted((one, other), key=specificity, reverse=True)
    begins = wide.endswith("*") and is_exact(wide[:-1]) and narrow.startswith(wide[:-1])
    if begins or is_exact(narrow) or narrow == wide:
        return narrow
    return f"{narrow} that are {wide} too"

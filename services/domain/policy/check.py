"""All errors and warnings about a document: the output of `placet policy check`."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from schemas.policy_document import PolicyDocument, Rule, policy_from_value
from schemas.policy_problems import PolicyRefused, Problem, no_subjects, warning
from schemas.policy_size import size_problems
from schemas.policy_yaml import policy_value
from services.domain.policy.adaptive_warnings import adaptive_warnings
from services.domain.policy.calls_that_fail import failing_calls
from services.domain.policy.cel_memory import without_calls
from services.domain.policy.cel_tokens import Unreadable, tokenize
from services.domain.policy.compiled import compile_policy, foreign_scope
from services.domain.policy.names_in_conditions import unknown_names
from services.domain.policy.numbers_in_conditions import doubtful_numbers
from services.domain.policy.patterns import is_exact, is_usable, like_matcher, matcher
from services.domain.policy.programs import program_problems
from services.domain.policy.readable import readable_part
from services.domain.policy.shadowing import Standing, shadows
from services.domain.policy.typos import unknown_tools

Patterns = tuple[str, ...] | None
_RULE = re.compile(r"rules\[(\d+)\]")
Compiled = Callable[[str], Callable[[str], bool]]


class Beside(NamedTuple):
    """The published definitions that a document is checked against.

    `policies` are those in force, `tools` the published tools; `project` is the document's, `*` if tenant-wide.
    """

    tenant: str
    project: str
    policies: tuple[Standing, ...] = ()
    tools: frozenset[str] = frozenset()


def check_beside(value: Any, name: str, beside: Beside) -> tuple[PolicyDocument | None, list[Problem]]:
    """The errors and warnings of a document to be published under a name, with those against the policies in force.

    Args:
        value: parsed JSON or YAML.
        name: the name under which it would be published.
        beside: the published definitions.

    Returns:
        The document, None if its form is wrong; and its problems: errors, then warnings, each in the order of the
        rules, then how it and the policies in force shadow each other.
    """
    document, readable, faults = _read(value)
    of_place = _of_place(readable, name, beside)
    problems = _ordered(faults, _problems(document, readable, beside.tools), of_place)
    if document is not None and all(problem.severity == "warning" for problem in problems):
        version = 1 + max(
            (one.version for one in beside.policies if _is(one, name, beside.project)), default=0
        )
        mine = Standing(document, version, beside.project, beside.tenant)
        problems.extend(shadows(mine, beside.policies))
    return document, problems


def _ordered(
    faults: tuple[Problem, ...], others: Iterable[Problem], of_place: Iterable[Problem] = ()
) -> list[Problem]:
    """The errors of form and the other problems, in the order in which they are told."""
    return sorted([*_beside(faults, of_place), *faults, *_beside(faults, others)], key=_rank)


def _rank(problem: Problem) -> tuple[bool, int]:
    """The order of problems: errors first, each kind by its rule, and before them what belongs to no rule."""
    rule = _RULE.match(problem.path)
    return problem.severity != "error", int(rule[1]) if rule else -1


def _of_place(document: PolicyDocument, name: str, beside: Beside) -> Iterator[Problem]:
    """The reasons why it cannot be published under this name and for this tenant and project."""
    if document.policy != name:
        message = f"the document is of the policy {document.policy!r}, not of {name!r}"
        yield Problem(path="policy", code="invalid", message=message)
    if (foreign := foreign_scope(document, beside.tenant, beside.project)) is not None:
        yield foreign


def _is(policy: Standing, name: str, project: str) -> bool:
    return (policy.name, policy.project) == (name, project)


def _problems(
    document: PolicyDocument | None,
    readable: PolicyDocument,
    known_tools: Collection[str] | None = None,
    tenant: str | None = None,
) -> Iterator[Problem]:
    """The errors and warnings other than those of form, for everything that can be read.

    Args:
        document: None if its form is wrong.
        readable: the part of it that can be read.
        known_tools: the published tools' names; None: patterns are not compared with them.
        tenant: the publisher's tenant; None: the scope is not compared with it.
    """
    yield from _errors(readable, tenant)
    yield from doubtful_numbers(readable)
    if document is not None:
        # Which calls a rule takes is known only if the whole rule could be read.
        yield from _unreachable(document.rules)
        yield from _allowing_all(document.rules)
        yield from _reads_nothing(document.rules)
        yield from _escalates_before_its_timeout(document)
        yield from adaptive_warnings(document)
    if known_tools is not None:
        yield from unknown_tools(readable.rules, known_tools)


def _errors(readable: PolicyDocument, tenant: str | None) -> Iterator[Problem]:
    yield from size_problems(readable)
    yield from program_problems(readable)
    said: set[tuple[str, str]] = set()
    try:
        compile_policy(readable)
    except PolicyRefused as error:
        said = {(problem.path, problem.message) for problem in error.problems}
        yield from error.problems
    yield from failing_calls(readable)
    yield from _nobody(readable.rules)
    # If a name is unknown even to the check of policies in force, the compiler reports it.
    yield from (one for one in unknown_names(readable) if (one.path, one.message) not in said)
    if tenant is not None and (foreign := foreign_scope(readable, tenant)):
        yield foreign


def _nobody(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    """Names that cannot be a token's subject, such as one with a trailing space: they would ask or exclude nobody."""
    for index, rule in enumerate(rules):
        if rule.hold is not None:
            yield from no_subjects(f"rules[{index}].hold.reviewers", rule.hold.reviewers)
            yield from no_subjects(f"rules[{index}].hold.excluded", rule.hold.excluded)


def _allowing_all(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    for index, rule in enumerate(rules):
        if rule.then == "allow" and _takes_all(rule):
            message = "this rule allows every call that reaches it; narrow it by match or when"
            yield warning(f"rules[{index}]", "allows_all", message)


def check_text(
    text: str, known_tools: Collection[str] | None = None, tenant: str | None = None
) -> tuple[PolicyDocument | None, list[Problem]]:
    """Read and check a YAML text: the document (None if its form is wrong) and its problems."""
    try:
        value = policy_value(text)
    except PolicyRefused as error:
        return None, list(error.problems)
    return check_value(value, known_tools, tenant)


def check_value(
    value: Any, known_tools: Collection[str] | None = None, tenant: str | None = None
) -> tuple[PolicyDocument | None, list[Problem]]:
    """As `check_text`, for parsed JSON or YAML. An error of form hides no other problem."""
    document, readable, faults = _read(value)
    return document, _ordered(faults, _problems(document, readable, known_tools, tenant))


def _read(value: Any) -> tuple[PolicyDocument | None, PolicyDocument, tuple[Problem, ...]]:
    """The document, None if its form is wrong; the part of it that can be read; and the errors of its form."""
    try:
        document = policy_from_value(value)
    except PolicyRefused as error:
        return None, readable_part(value), error.problems
    return document, document, ()


def _beside(faults: tuple[Problem, ...], others: Iterable[Problem]) -> Iterator[Problem]:
    """The other problems, except those at places whose form is wrong, because the error of form reports these."""
    places = {problem.path for problem in faults}
    return (problem for problem in others if problem.path not in places)


def _reads_nothing(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    """A warning for each condition that reads `memory` although no rule allows remembering such values."""
    blocks = (rule.hold for rule in rules if rule.then == "hold" and rule.hold is not None)
    if any("rule" in block.remember.scopes and block.remember.max_uses == "unlimited" for block in blocks):
        return
    for index, rule in enumerate(rules):
        if rule.when is not None and _reads_memory(rule.when):
            message = "memory.approved is always empty: it contains only the values of rules without a limit of uses"
            advice = "set scope rule and max_uses: unlimited in the remember of a rule that holds"
            yield warning(f"rules[{index}].when", "reads_nothing", f"{message}; {advice}")


def _escalates_before_its_timeout(document: PolicyDocument) -> Iterator[Problem]:
    """A warning for each hold whose timeout never escalates, because the hold has escalated by then."""
    for index, rule in enumerate(document.rules):
        hold = rule.hold
        if rule.then != "hold" or hold is None or hold.on_timeout != "escalate" or hold.escalate is None:
            continue
        timeout, after = (
            hold.timeout_seconds or document.defaults.timeout_seconds,
            hold.escalate.after_seconds,
        )
        if after < timeout:
            message = f"the hold escalates after {after} s, so its timeout after {timeout} s denies the call"
            advice = (
                f"say deny, or set escalate.after_seconds to {timeout}: the hold then waits as long again"
            )
            yield warning(f"rules[{index}].hold.on_timeout", "escalates_before", f"{message}; {advice}")


def _reads_memory(condition: str) -> bool:
    try:
        return without_calls(tokenize(condition)) is not None
    except Unreadable:
        return False  # The compiler reports it.


def _takes_all(rule: Rule) -> bool:
    return _names_all(rule) and rule.match.annotations is None and rule.when is None


def _names_all(rule: Rule) -> bool:
    return all(names is None or "*" in names for names in (rule.match.tools, rule.match.tools_like))


def _unreachable(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    for index, rule in enumerate(rules):
        before = next((one for one in rules[:index] if _takes_all_of(one, rule)), None)
        if before is not None:
            what = "every call" if _takes_all(before) else "every call that this rule matches"
            message = (
                f"never reached: the earlier rule {before.id!r} matches {what}; move or narrow that rule"
            )
            yield warning(f"rules[{index}]", "unreachable", message)


def _takes_all_of(before: Rule, rule: Rule) -> bool:
    """True if no call reaches a rule because an earlier one takes all its calls."""
    if before.when is not None:
        return False
    if before.match.annotations is not None and before.match.annotations != rule.match.annotations:
        return False
    return _takes_names(before.match.tools, rule.match.tools, matcher) and _takes_names(
        before.match.tools_like, rule.match.tools_like, like_matcher
    )


def _takes_names(before: Patterns, after: Patterns, compiled: Compiled) -> bool:
    if before is None or "*" in before:
        return True
    return after is not None and all(
        pattern in before or (is_exact(pattern) and _fits_any(before, pattern, compiled)) for pattern in after
    )


def _fits_any(patterns: Collection[str], name: str, compiled: Compiled) -> bool:
    return any(is_usable(pattern, compiled) and compiled(pattern)(name) for pattern in patterns)

"""Everything that is wrong or doubtful about a document: what `placet policy check` prints."""

from collections.abc import Callable, Collection, Iterator

from schemas.linear_patterns import PatternRefused
from schemas.policy_document import PolicyDocument, Rule, parse_policy, size_problems
from schemas.policy_problems import PolicyRefused, Problem
from services.domain.policy.compiled import compile_policy, foreign_scope
from services.domain.policy.patterns import matcher


def check(
    document: PolicyDocument, known_tools: Collection[str] | None = None, tenant: str | None = None
) -> list[Problem]:
    """The errors (it cannot be published) and warnings of a document.

    Args:
        document: of the right form already.
        known_tools: the published tools' names; None: patterns are not compared with them.
        tenant: the publisher's; None: the scope is not compared with it.
    """
    problems: list[Problem] = [*size_problems(document)]
    try:
        compile_policy(document)
    except PolicyRefused as error:
        problems.extend(error.problems)
    if tenant is not None and (foreign := foreign_scope(document, tenant)):
        problems.append(foreign)
    problems.extend(_unreachable(document.rules))
    for index, rule in enumerate(document.rules):
        problems.extend(_doubts(rule, f"rules[{index}]", known_tools))
    return problems


def check_text(
    text: str, known_tools: Collection[str] | None = None, tenant: str | None = None
) -> tuple[PolicyDocument | None, list[Problem]]:
    """Read and check a YAML text: the document (None when its form is wrong) and its problems."""
    try:
        document = parse_policy(text)
    except PolicyRefused as error:
        return None, list(error.problems)
    return document, check(document, known_tools, tenant)


def _warning(path: str, code: str, message: str) -> Problem:
    return Problem(path=path, code=code, message=message, severity="warning")


def _takes_all(rule: Rule) -> bool:
    everything = rule.match.tools is None or "*" in rule.match.tools
    return everything and rule.match.annotations is None and rule.when is None


def _unreachable(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    ends = next((index for index, rule in enumerate(rules) if _takes_all(rule)), len(rules))
    for index in range(ends + 1, len(rules)):
        message = (
            f"never reached: rule {rules[ends].id!r} before it takes every call; move or narrow that one"
        )
        yield _warning(f"rules[{index}]", "unreachable", message)


def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        return matcher(pattern)
    except PatternRefused:
        # It has been told as an error; what it would match is no question any more.
        return lambda _name: True


def _doubts(rule: Rule, path: str, known_tools: Collection[str] | None) -> Iterator[Problem]:
    if rule.then == "allow" and _takes_all(rule):
        yield _warning(
            path, "allows_all", "this rule allows every call that reaches it; narrow it by match or when"
        )
    for number, pattern in enumerate(rule.match.tools or ()):
        if known_tools is not None and not any(map(_matcher(pattern), known_tools)):
            message = f"the pattern {pattern!r} matches no known tool; look for a typo, or publish the tool"
            yield _warning(f"{path}.match.tools[{number}]", "no_known_tool", message)

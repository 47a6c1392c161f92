"""Patterns of a policy that match no published tool: the tool is not published yet, or the pattern is misspelt."""

import re
from collections.abc import Collection, Iterator

from schemas.policy_document import Rule
from schemas.policy_problems import Problem, warning
from services.domain.policy.near_names import NearNames
from services.domain.policy.patterns import is_usable, like_matcher, matcher, spellings

_WILDCARDS = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]")


def unknown_tools(rules: tuple[Rule, ...], known_tools: Collection[str]) -> Iterator[Problem]:
    """A warning for each pattern that matches no known tool; `near_known_tool` if it looks like a typo."""
    named = _Names(known_tools)
    # Computed once for all patterns, not for each of them.
    spelt = _Names({form for name in known_tools for form in spellings(name)})
    for index, rule in enumerate(rules):
        path = f"rules[{index}].match"
        tools = [one if is_usable(one, matcher) else None for one in rule.match.tools or ()]
        yield from named.problems(tools, f"{path}.tools")
        like = [one if is_usable(one, like_matcher) else None for one in rule.match.tools_like or ()]
        yield from spelt.problems(like, f"{path}.tools_like")


class _Names:
    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._near: NearNames | None = None

    def problems(self, patterns: list[str | None], path: str) -> Iterator[Problem]:
        tests = [matcher(pattern) for pattern in patterns if pattern is not None]
        for number, pattern in enumerate(patterns):
            if pattern is None or self._has_one_of(pattern):
                continue
            # If another pattern of the list matches a name, the name is spelt correctly there and not meant here.
            near = [name for name in self._near_to(pattern) if not any(test(name) for test in tests)]
            code, advice = "no_known_tool", "; look for a typo, or publish the tool"
            if near:
                code, advice = "near_known_tool", f"; did you mean {near[0]!r}?"
            message = f"the pattern {pattern!r} matches no known tool{advice}"
            yield warning(f"{path}[{number}]", code, message)

    def _has_one_of(self, pattern: str) -> bool:
        # Thousands of names and patterns are compared: the pattern's longest literal part rules out most pairs.
        part = max(_WILDCARDS.split(pattern), key=len)
        return any(map(matcher(pattern), (name for name in self._known if part in name)))

    def _near_to(self, pattern: str) -> list[str]:
        self._near = self._near or NearNames(self._known)
        return self._near.near(pattern)

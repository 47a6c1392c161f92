"""Policies in the form used to judge: patterns and expressions compiled once, rules selected by tool once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from schemas.ids import TENANT_WIDE
from schemas.linear_patterns import PatternRefused
from schemas.policy_document import ALLOW_WHEN, Defaults, PolicyDocument, Rule, Scope, policy_from_value
from schemas.policy_problems import PolicyRefused, Problem
from services.domain.policy.adaptive import CompiledAdaptive, compile_adaptive
from services.domain.policy.cel import CompiledExpression, DoesNotCompile, compile_expression
from services.domain.policy.cel_work import Read
from services.domain.policy.patterns import like_matcher, matcher
from services.domain.policy.question import BadTemplate, parse_template
from services.domain.policy.scopes import DIMENSIONS, ScopeFacts, select_policy

_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with its tests; `annotations` are (hint, value) pairs that must all agree.

    `tools` and `tools_like` are tests of which at least one must pass; empty if the rule names none.
    """

    rule: Rule
    tools: tuple[Callable[[str], bool], ...]
    tools_like: tuple[Callable[[str], bool], ...]
    annotations: tuple[tuple[str, bool], ...]
    when: CompiledExpression | None

    def fits_tool(self, tool: str) -> bool:
        """True if the rule applies to this tool's name."""
        return all(not tests or any(test(tool) for test in tests) for tests in (self.tools, self.tools_like))

    def fits_hints(self, hints: Mapping[str, bool]) -> bool:
        """True if the rule applies to tools with these hints."""
        return all(hints[name] is value for name, value in self.annotations)


@dataclass(frozen=True, slots=True)
class RulesOfTool:
    """The rules that may apply to one tool, in file order, and the values that their expressions read."""

    rules: tuple[CompiledRule, ...]
    reads: frozenset[Read]


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A published version of a policy of one tenant, or of one of its projects.

    `scope` is the document's; for a project's own policy it names this project and no other.
    """

    tenant: str
    project: str
    name: str
    version: int
    scope: Scope
    defaults: Defaults
    rules: tuple[CompiledRule, ...]
    adaptive: CompiledAdaptive | None = None
    _by_tool: dict[str, RulesOfTool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def label(self) -> str:
        """`name@version`, as verdicts cite it; `project/name@version` for a project's own policy."""
        return label_of(self.project, self.name, self.version)

    def rules_of(self, tool: str) -> RulesOfTool:
        """The rules that may apply to a tool; cached by the tool's name."""
        found = self._by_tool.get(tool)
        if found is None:
            if len(self._by_tool) >= _CACHE_SIZE:
                self._by_tool.clear()
            rules = tuple(rule for rule in self.rules if rule.fits_tool(tool))
            reads = frozenset(read for rule in rules if rule.when for read in rule.when.shape.reads)
            if self.adaptive is not None:
                reads |= frozenset(self.adaptive.allow_when.shape.reads)
            found = self._by_tool[tool] = RulesOfTool(rules, reads)
        return found


def label_of(project: str, name: str, version: int) -> str:
    """The label of a version of a policy, unique in its tenant."""
    return f"{name}@{version}" if project == TENANT_WIDE else f"{project}/{name}@{version}"


def compile_policy(
    document: PolicyDocument, tenant: str = "", version: int = 1, project: str = TENANT_WIDE
) -> CompiledPolicy:
    """Compile a document's patterns, expressions and questions.

    Raises:
        PolicyRefused: with every expression and question that does not compile.
    """
    rules, problems = _compiled_rules(document)
    problems = (*_scope_problems(document.scope), *problems, *_adaptive_problems(document))
    if problems:
        raise PolicyRefused(problems)
    scope = document.scope
    if project != TENANT_WIDE:
        scope = scope.model_copy(update={"project": project})
    adaptive = None if document.adaptive is None else compile_adaptive(document.adaptive)
    return CompiledPolicy(
        tenant, project, document.policy, version, scope, document.defaults, rules, adaptive
    )


def _adaptive_problems(document: PolicyDocument) -> Iterator[Problem]:
    if document.adaptive is not None:
        yield from _fault(ALLOW_WHEN, compile_expression, document.adaptive.allow_when)


@lru_cache(maxsize=256)
def _compiled_rules(document: PolicyDocument) -> tuple[tuple[CompiledRule, ...], tuple[Problem, ...]]:
    rules: list[CompiledRule] = []
    problems: list[Problem] = []
    for index, rule in enumerate(document.rules):
        if found := tuple(_rule_problems(rule, f"rules[{index}]")):
            problems.extend(found)
        else:
            rules.append(_compiled_rule(rule))
    return tuple(rules), tuple(problems)


def _rule_problems(rule: Rule, path: str) -> Iterator[Problem]:
    """The parts of a rule that do not compile; parts that compile are cached, so compiling them again is cheap."""
    if rule.when is not None:
        yield from _fault(f"{path}.when", compile_expression, rule.when)
    for number, pattern in enumerate(rule.match.tools or ()):
        yield from _fault(f"{path}.match.tools[{number}]", matcher, pattern)
    for number, pattern in enumerate(rule.match.tools_like or ()):
        yield from _fault(f"{path}.match.tools_like[{number}]", like_matcher, pattern)
    if rule.hold is not None and rule.hold.question is not None:
        yield from _fault(f"{path}.hold.question", parse_template, rule.hold.question)


def _fault(path: str, compile_part: Callable[[str], Any], text: str) -> Iterator[Problem]:
    try:
        compile_part(text)
    except (DoesNotCompile, PatternRefused, BadTemplate) as error:
        yield _problem(path, str(error))


def _scope_problems(scope: Scope) -> Iterator[Problem]:
    for dimension in DIMENSIONS:
        try:
            matcher(getattr(scope, dimension))
        except PatternRefused as error:
            yield _problem(f"scope.{dimension}", str(error))


def _problem(path: str, message: str) -> Problem:
    code = "not_yet_supported" if "not yet supported" in message else "does_not_compile"
    return Problem(path=path, code=code, message=message)


def _compiled_rule(rule: Rule) -> CompiledRule:
    hints = rule.match.annotations.model_dump(exclude_none=True) if rule.match.annotations else {}
    return CompiledRule(
        rule=rule,
        tools=tuple(matcher(pattern) for pattern in rule.match.tools or ()),
        tools_like=tuple(like_matcher(pattern) for pattern in rule.match.tools_like or ()),
        annotations=tuple(hints.items()),
        when=compile_expression(rule.when) if rule.when is not None else None,
    )


def foreign_scope(document: PolicyDocument, tenant: str, project: str = TENANT_WIDE) -> Problem | None:
    """The problem of a document whose scope names another tenant or project than its publisher's.

    Args:
        document: the document to be published.
        tenant: the publisher's tenant.
        project: the publisher's project; `*` if the policy is for the whole tenant, and may name any project.
    """
    try:
        if not matcher(document.scope.tenant)(tenant):
            message = f"published by {tenant!r}, this policy never applies; write '*' for the publisher's own tenant"
            return Problem(path="scope.tenant", code="foreign_tenant", message=message)
    except PatternRefused as error:
        return _problem("scope.tenant", str(error))
    try:
        if project == TENANT_WIDE or matcher(document.scope.project)(project):
            return None
    except PatternRefused as error:
        return _problem("scope.project", str(error))
    message = (
        f"published for the project {project!r}, this policy applies to no other project; write '*' for the "
        "publisher's own project, or publish it with a token of the whole tenant"
    )
    return Problem(path="scope.project", code="foreign_project", message=message)


class UnreadablePolicy(NamedTuple):
    """A published version that cannot be read: `name@version`, and why."""

    label: str
    why: str


Place = tuple[str, str, str]  # tenant, project and name


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The newest version of every policy in force. Immutable: `with_policy` returns another set.

    `unreadable` are those whose newest version cannot be read.
    """

    policies: Mapping[Place, CompiledPolicy] = field(default_factory=dict)
    unreadable: Mapping[Place, UnreadablePolicy] = field(default_factory=dict)
    _selected: dict[ScopeFacts, CompiledPolicy | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    def with_policy(
        self,
        tenant: str,
        name: str,
        version: int,
        document: PolicyDocument | Mapping[str, Any],
        project: str = TENANT_WIDE,
    ) -> "PolicySet":
        """A set with this version added; a version older than the one in force changes nothing.

        Args:
            tenant: the publisher's tenant; the policy applies to this tenant only.
            name: the name under which it is published.
            version: counted from 1.
            document: the document or its parsed JSON.
            project: the project whose calls alone it judges; `*`: the whole tenant.

        Raises:
            PolicyRefused: it is not a document of this product version, or not for this tenant or project.
        """
        place = (tenant, project, name)
        present = self.policies.get(place)
        if present is not None and present.version >= version:
            return self
        model = document if isinstance(document, PolicyDocument) else policy_from_value(document)
        if model.policy != name:
            message = (
                f"the document is named {model.policy!r} and published as {name!r}; give both the same name"
            )
            raise PolicyRefused((Problem(path="policy", code="invalid", message=message),))
        if foreign := foreign_scope(model, tenant, project):
            raise PolicyRefused((foreign,))
        compiled = compile_policy(model, tenant, version, project)
        unread = {key: policy for key, policy in self.unreadable.items() if key != place}
        return PolicySet({**self.policies, place: compiled}, unread)

    def without_policy(self, tenant: str, name: str, project: str = TENANT_WIDE) -> "PolicySet":
        """A set with no version of this policy, not even one that cannot be read."""
        place = (tenant, project, name)
        policies = {key: policy for key, policy in self.policies.items() if key != place}
        return PolicySet(policies, {key: one for key, one in self.unreadable.items() if key != place})

    def with_unreadable(
        self, tenant: str, name: str, version: int, why: str, project: str = TENANT_WIDE
    ) -> "PolicySet":
        """A set in which this version is recorded as one that cannot be read.

        The version in force under the name stays, and can hold and deny; but no call of the tenant, or of the
        policy's project, is allowed any more.
        """
        unread = UnreadablePolicy(label_of(project, name, version), why)
        return PolicySet(self.policies, {**self.unreadable, (tenant, project, name): unread})

    def unreadable_of(self, tenant: str, project: str) -> "UnreadablePolicy | None":
        """A policy that cannot be read: it might apply to any call of the project, and be stricter than others."""
        found = sorted(
            key for key in self.unreadable if key[0] == tenant and key[1] in (TENANT_WIDE, project)
        )
        return self.unreadable[found[0]] if found else None

    def select(self, facts: ScopeFacts) -> CompiledPolicy | None:
        """The policy for a scope, or None; cached."""
        if facts not in self._selected:
            if len(self._selected) >= _CACHE_SIZE:
                self._selected.clear()
            self._selected[facts] = select_policy(self.policies.values(), facts)
        return self._selected[facts]


def policy_alone(document: PolicyDocument, tenant: str, version: int = 1) -> PolicySet:
    """A set of this document only, as if it were published for the tenant; empty if it is for another tenant.

    Raises:
        PolicyRefused: it does not compile.
    """
    if foreign_scope(document, tenant):
        return PolicySet()
    return PolicySet().with_policy(tenant, document.policy, version, document)

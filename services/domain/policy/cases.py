"""Policy tests: calls and their expected verdicts, as YAML (docs/policy.md, "Testing a policy")."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
from pydantic import AwareDatetime, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from schemas.call_history import CallHistory
from schemas.policy_document import Effect, PolicyDocument, PolicyModel, Share
from schemas.policy_problems import PolicyRefused, Problem, problems_of
from schemas.requirement import Requirement
from schemas.risk_score import RiskLevel
from schemas.strict_yaml import MalformedYaml, load_yaml
from schemas.tool_definition import form_problems
from services.domain.policy.annotations import claim_problem
from services.domain.policy.cel import Evaluator, evaluate_alone
from services.domain.policy.compiled import policy_alone
from services.domain.policy.remembered import judge_alone
from services.domain.policy.tool_facts import tool_views
from services.domain.policy.trust_class import class_of, terms_of
from services.domain.policy.verdict import CallFacts, Reason, Verdict

TENANT = "test"
DEFAULT_NOW = datetime.fromisoformat("2026-01-05T12:00:00+00:00")


class TrustCase(PolicyModel):
    """The trust in the agent with the tool (docs/trust.md); what is left out is zero or empty, and `raising` 1."""

    successes: StrictInt = 0
    failures: StrictInt = 0
    unknowns: StrictInt = 0
    approvals: StrictInt = 0
    edits: StrictInt = 0
    rejections: StrictInt = 0
    last_evidence_at_ms: StrictInt = 0
    lower_bound: Share = 0
    raising: Annotated[StrictInt | StrictFloat, Field(ge=0)] = 1
    lowering: Annotated[StrictInt | StrictFloat, Field(ge=0)] = 0
    contrary_at: str = ""
    through: dict[str, StrictInt] = Field(default_factory=dict)


class HistoryCase(PolicyModel):
    """The paths of arguments with new values, and of those with values out of untrusted outputs.

    `is_whole`: false if the call has values that are not looked at, `is_known`: false while trust is missing.
    """

    novel: tuple[StrictStr, ...] = ()
    tainted: tuple[StrictStr, ...] = ()
    is_whole: StrictBool = True
    is_known: StrictBool = True

    @property
    def found(self) -> CallHistory:
        """The history of the call; a value that is both new and untrusted taints the call."""
        parts = ["novel"] if self.novel or not self.is_whole else []
        if not self.is_whole or not set(self.novel).isdisjoint(self.tainted):
            parts.append("tainted")
        return CallHistory(
            parts=tuple(parts) if self.is_known else (),
            novel=self.novel if self.is_known else (),
            tainted=self.tainted,
            is_whole=self.is_whole,
            is_known=self.is_known,
        )


class CallCase(PolicyModel):
    """The facts of a call; fields that are left out are empty. `tool` is looked up in the file's `tools`.

    Nothing is new or untrusted unless `history` says so.
    """

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    agent: str = "agent"
    user: str = ""
    workspace: str = ""
    project: str = "default"
    tenant: str = TENANT
    context: dict[str, Any] = Field(default_factory=dict)
    request: str = ""
    claimed_annotations: dict[str, Any] = Field(default_factory=dict)
    trust: TrustCase | None = None
    memory: dict[str, list[Any]] = Field(default_factory=dict)
    history: HistoryCase = Field(default_factory=lambda: HistoryCase())
    now: AwareDatetime = DEFAULT_NOW


class ExpectedRequirement(PolicyModel):
    """The requirement of one of several rules; `rules` are their ids."""

    rules: tuple[StrictStr, ...]
    roles: tuple[StrictStr, ...] = ()
    reviewers: tuple[StrictStr, ...] = ()
    quorum: StrictInt = 1


class Expectation(PolicyModel):
    """The expected verdict; only the fields that are given are compared. `rule` is a rule's id, "" for none.

    `roles` and `reviewers` are all who can decide, in any order; `requirements` are, if several rules ask, the
    requirements of each. `adaptive` is true if trust may release the held call.
    """

    effect: Effect
    rule: str | None = None
    reason: Reason | None = None
    risk_level: RiskLevel | None = None
    question: str | None = None
    roles: tuple[StrictStr, ...] | None = None
    reviewers: tuple[StrictStr, ...] | None = None
    quorum: StrictInt | None = None
    exclude_requester: StrictBool | None = None
    requirements: tuple[ExpectedRequirement, ...] | None = None
    adaptive: StrictBool | None = None


class Case(PolicyModel):
    """One call and its expected verdict."""

    name: str
    call: CallCase
    expect: Expectation


class CaseFile(PolicyModel):
    """The published tools, by name, and the cases."""

    tools: dict[str, dict[str, Any]] = Field(default_factory=dict)
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]


class CaseResult(msgspec.Struct, frozen=True):
    """The result of one case. `differences` lists the expected and actual values; it is empty if the case passed."""

    name: str
    verdict: Verdict
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if the verdict is as expected."""
        return not self.differences


def parse_cases(text: str) -> CaseFile:
    """Read a file of policy tests.

    Raises:
        PolicyRefused: with every problem of form.
    """
    try:
        value = load_yaml(text)
    except MalformedYaml as error:
        where = f"line {error.line}, column {error.column}"
        raise PolicyRefused((Problem(path=where, code="malformed", message=error.message),)) from error
    beside = tuple(_beside_form(value))
    try:
        file = CaseFile.model_validate(value)
    except ValidationError as error:
        raise PolicyRefused((*problems_of(error, CaseFile), *beside)) from error
    if beside:
        raise PolicyRefused(beside)
    return file


def _beside_form(value: Any) -> Iterator[Problem]:
    """The problems of a file's tools and claims, as far as it has any, even if its form is wrong elsewhere."""
    stated = value if isinstance(value, dict) else {}
    tools, cases = stated.get("tools"), stated.get("cases")
    for name, tool in tools.items() if isinstance(tools, dict) else ():
        if isinstance(tool, dict):
            for problem in form_problems({"name": name, **tool}):
                # The allowed names of tools are not a policy's concern.
                if problem.path != "name":
                    yield problem.model_copy(update={"path": f"tools.{name}.{problem.path}"})
    for number, case in enumerate(cases if isinstance(cases, list) else ()):
        call = case.get("call") if isinstance(case, dict) else None
        claimed = call.get("claimed_annotations") if isinstance(call, dict) else None
        if isinstance(claimed, dict) and (wrong := claim_problem(claimed)) is not None:
            name, _, message = wrong.partition(": ")
            path = f"cases[{number}].call.claimed_annotations.{name}"
            yield Problem(path=path, code="unknown_field", message=message)


def facts_of(call: CallCase, tools: dict[str, dict[str, Any]]) -> CallFacts:
    """The case's call in the form in which the decider passes it to `judge`."""
    definition = tools.get(call.tool)
    risk = tool_views(call.tool, definition, "", call.claimed_annotations)[-1].risk
    history = call.history.found
    trust_class = class_of(terms_of(call.arguments, definition), risk.parts, history)
    return CallFacts(
        tenant=call.tenant,
        project=call.project,
        tool=call.tool,
        agent=call.agent,
        user=call.user,
        workspace=call.workspace,
        tool_definition=definition,
        arguments=call.arguments,
        claimed_annotations=call.claimed_annotations,
        context=call.context,
        request=call.request,
        trust=None if call.trust is None else _trust_of(call.trust, trust_class),
        trust_class=trust_class,
        history=history,
        memory=call.memory,
    )


def _trust_of(case: TrustCase, trust_class: str) -> dict[str, Any]:
    numbers = {name: float(getattr(case, name)) for name in ("lower_bound", "raising", "lowering")}
    return case.model_dump() | numbers | {"trust_class": trust_class}


def run_policy_tests(
    document: PolicyDocument, cases: CaseFile, evaluate: Evaluator = evaluate_alone
) -> list[CaseResult]:
    """Judge every case by the document alone.

    Raises:
        PolicyRefused: the document does not compile.
    """
    results = []
    for case in cases.cases:
        # Published by the case's own tenant, so that a scope with that tenant applies as it would in force.
        policies = policy_alone(document, case.call.tenant)
        now_ms = int(case.call.now.timestamp() * 1000)
        verdict = judge_alone(policies, facts_of(case.call, cases.tools), now_ms, evaluate)
        results.append(CaseResult(case.name, verdict, _differences(case.expect, verdict)))
    return results


def _differences(expect: Expectation, verdict: Verdict) -> tuple[str, ...]:
    hold = verdict.hold
    found: dict[str, Any] = {
        "effect": verdict.effect,
        "rule": _id_of(verdict.rules[0]) if verdict.rules else "",
        "reason": verdict.reason,
        "risk_level": verdict.risk.level,
        "question": hold.question if hold else "",
        "roles": sorted(hold.roles) if hold else [],
        "reviewers": sorted(hold.reviewers) if hold else [],
        "quorum": hold.quorum if hold else 0,
        "exclude_requester": hold.exclude_requester if hold else False,
        "requirements": [_as_expected(one) for one in hold.requirements] if hold else [],
        "adaptive": verdict.adaptive is not None and verdict.adaptive.is_eligible,
    }
    wanted = {name: _unordered(value) for name, value in expect.model_dump(exclude_none=True).items()}
    return tuple(
        f"{name}: expected {value!r}, found {found[name]!r} ({_reason(name, verdict)})"
        for name, value in wanted.items()
        if found[name] != value
    )


def _reason(name: str, verdict: Verdict) -> str:
    return verdict.adaptive.why if name == "adaptive" and verdict.adaptive else verdict.detail


def _as_expected(one: Requirement) -> dict[str, Any]:
    return {
        "rules": [_id_of(rule) for rule in one.rules],
        "roles": sorted(one.roles),
        "reviewers": sorted(one.reviewers),
        "quorum": one.quorum,
    }


def _unordered(value: Any) -> Any:
    """The expected value with its names in a fixed order, so that order does not count."""
    if not isinstance(value, tuple):
        return value
    if all(isinstance(item, str) for item in value):
        return sorted(value)
    return [
        {
            **one,
            "rules": list(one["rules"]),
            "roles": sorted(one["roles"]),
            "reviewers": sorted(one["reviewers"]),
        }
        for one in value
    ]


def _id_of(rule: str) -> str:
    return rule.rsplit("/", 1)[1]

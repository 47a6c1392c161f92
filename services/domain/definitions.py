"""Definitions: the policies, tools and people in force, and the verdict on a call by them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from schemas.call_history import CallHistory
from schemas.ids import TENANT_WIDE
from schemas.limits import ADOPTED_NAMED_MAX
from schemas.principals import People
from services.domain.arguments import parsed
from services.domain.context import Tool
from services.domain.input_schema import SchemaCheck, misfit_in_place
from services.domain.memory.coverage import approved_values, names_values
from services.domain.memory.standing_rules import (
    ApprovedValues,
    StandingRule,
    StandingRules,
    never,
)
from services.domain.policy import (
    CallFacts,
    Evaluator,
    PolicySet,
    Verdict,
    evaluate_in_process,
)
from services.domain.policy.history import history_of
from services.domain.policy.remembered import judge_with_memory
from services.domain.policy.risk import Risk
from services.domain.policy.tool_facts import tool_views
from services.domain.policy.trust_class import NO_CLASS, class_of, terms_of
from services.domain.state import Call, Execution
from services.domain.trust.approved import approved_by
from services.domain.trust.book import KnownTrust
from services.domain.trust.otherwise import approved_otherwise
from services.domain.trust.reading import Contrary, trust_value

Place = tuple[str, str, str]  # tenant, project and name
# Returns what is known of the call's agent with its tool and a class of calls; None while incomplete.
TrustOfClass = Callable[[str], KnownTrust | None]


def no_trust(trust_class: str) -> None:
    """Trust if nothing reads it: missing, so that a rule that needs it holds the call."""


def no_contrary(trust_class: str) -> None:
    """No contrary fact."""


class Published(Struct, frozen=True):
    """The newest version of one definition: its number, the digest of its text, and whether it was retired."""

    version: int
    digest: str
    offset: int
    retired: bool = False


class Definitions(Struct, frozen=True, kw_only=True):
    """Everything published up to an offset.

    Tools are stored by (tenant, project, name), with project `*` for the tenant's own; so are the destroyed data
    keys. `evaluate` and `check_schema` do work that can be large: conditions on calls, and input schemas on
    arguments.
    """

    policies: PolicySet
    tools: Map[Place, Tool] = Map()
    people: People = People()
    standing: StandingRules = StandingRules()
    published: Map[bytes, Published] = Map()
    destroyed: Map[Place, int] = Map()
    through_offset: int = -1
    evaluate: Evaluator = evaluate_in_process
    check_schema: SchemaCheck = misfit_in_place

    def tool(self, tenant: str, name: str, project: str) -> Tool | None:
        """A tool as a project sees it: the project's own, else the tenant's."""
        return self.tools.get((tenant, project, name)) or self.tools.get((tenant, TENANT_WIDE, name))

    def readable_tool(self, tenant: str, name: str, project: str) -> Tool | None:
        """A tool as a project sees it; one whose definition cannot be read is as if it was not published.

        So its calls are at least held, with no hint or claim in their favour.
        """
        tool = self.tool(tenant, name, project)
        return None if tool is None or tool.unreadable else tool

    def risk_of_tool(self, tenant: str, name: str, project: str) -> Risk:
        """The risk of a tool as a project sees it, without any claim of an agent."""
        tool = self.readable_tool(tenant, name, project)
        definition, version = (tool.definition, tool.version) if tool else (None, "")
        return tool_views(name, definition, version, {})[-1].risk

    def judge(
        self,
        execution: Execution,
        call: Call,
        now_ms: int,
        *,
        rests: Callable[[StandingRule], bool] = never,
        contrary: Callable[[str], Contrary | None] = no_contrary,
        against: Callable[[str], Contrary | None] = no_contrary,
        trust: TrustOfClass = no_trust,
    ) -> Verdict:
        """The verdict of the policies in force on a revision of a call.

        `trust` returns what is recorded of the agent with this tool and a class of its calls; None while incomplete.
        It is asked for no class first, to learn the values that people have approved: a new one changes the class.
        `contrary` returns the newest contrary fact about a class in this partition, `against` that about calls with a
        value, by its digest. A rule for which `rests` is true counts as suspended.
        """
        people = self.people.of(execution.tenant, execution.project)
        of_tool = trust(NO_CLASS)
        approved = None if of_tool is None else approved_by(of_tool, now_ms, people)

        def is_against(digest: str) -> bool:
            found = against(digest)
            return found is not None and of_tool is not None and found.holds_beside(of_tool.through)

        risk = self.risk_of_tool(execution.tenant, call.tool, execution.project)
        bare = _facts(execution, call, self.readable_tool(execution.tenant, call.tool, execution.project))
        terms = terms_of(bare.arguments, bare.tool_definition)
        history = history_of(
            bare.arguments,
            approved,
            execution.words,
            execution.request,
            risk_parts=risk.parts,
            terms=terms,
            is_against=is_against,
        )

        def cited(trust_class: str) -> Mapping[str, Any] | None:
            known = trust(trust_class)
            if known is None:
                return None
            return trust_value(known, trust_class, now_ms, people, contrary(trust_class))

        facts = _with_history(bare, history, terms)
        if approved is not None and terms is not None:
            said = partial(approved_otherwise, approved, call.tool, terms, history.novel)
            facts = replace(facts, approved_otherwise=said)
        return self.judge_citing(execution, call, now_ms, cited, history, rests=rests, facts=facts)

    def judge_citing(
        self,
        execution: Execution,
        call: Call,
        now_ms: int,
        cited: Callable[[str], Mapping[str, Any] | None],
        history: CallHistory,
        *,
        rests: Callable[[StandingRule], bool] = never,
        facts: CallFacts | None = None,
    ) -> Verdict:
        """As `judge`, with the history of the call's values, and with trust as a verdict cites it (`trust_value`).

        `facts` are those of `facts_of`, if they are known already.
        """
        tool = self.tool(execution.tenant, call.tool, execution.project)
        unreadable = tool.unreadable if tool else ""
        facts = facts or self.facts_of(execution, call, history)
        people = self.people.of(execution.tenant, execution.project)
        if (value := cited(facts.trust_class)) is not None:
            facts = replace(facts, trust=value)

        def unlimited() -> ApprovedValues:
            rules = self.standing.active(execution.tenant, execution.project, call.agent, call.tool)
            return ApprovedValues(
                tuple(rule for rule in rules if not rests(rule) and names_values(rule, call, people, now_ms))
            )

        verdict = judge_with_memory(
            self.policies,
            facts,
            now_ms,
            unlimited,
            lambda values, held: approved_values(values.rules, execution, call, held, people, now_ms),
            self.evaluate,
        )
        if unreadable and verdict.reason == "unknown_tool":
            return replace(verdict, detail=f"the tool's definition cannot be read: {unreadable}")
        return verdict

    def facts_of(
        self, execution: Execution, call: Call, history: CallHistory, trust_class: str | None = None
    ) -> CallFacts:
        """The facts of a call but for trust, with the history of its values, and with its class if that is known."""
        facts = _facts(execution, call, self.readable_tool(execution.tenant, call.tool, execution.project))
        if trust_class is not None:
            return replace(facts, history=history, trust_class=trust_class)
        return _with_history(facts, history, terms_of(facts.arguments, facts.tool_definition))

    def since(self, offset: int) -> dict[str, int]:
        """The versions published after an offset, by key; of many, only the newest `ADOPTED_NAMED_MAX`."""
        newer = sorted((row.offset, key) for key, row in self.published.items() if row.offset > offset)
        # Ordered by key: what is recorded must not depend on the order in which a process hashes strings.
        named = sorted(key for _, key in newer[-ADOPTED_NAMED_MAX:])
        return {key.decode(): self.published[key].version for key in named}


def _with_history(facts: CallFacts, history: CallHistory, terms: str | None) -> CallFacts:
    """The facts with the history of the call's values, and the class that it and the terms give the call."""
    views = tool_views(facts.tool, facts.tool_definition, facts.tool_version, facts.claimed_annotations)
    trust_class = class_of(terms, views[-1].risk.parts, history)
    return replace(facts, history=history, trust_class=trust_class)


def _facts(execution: Execution, call: Call, tool: Tool | None) -> CallFacts:
    """The facts of a call but for its history and for trust."""
    arguments, claims = parsed(call.arguments), parsed(call.claims)
    definition, version = (tool.definition, tool.version) if tool else (None, "")
    return CallFacts(
        tenant=execution.tenant,
        project=execution.project,
        tool=call.tool,
        agent=call.agent,
        user=execution.user,
        workspace=execution.workspace,
        tool_definition=definition,
        tool_version=version,
        arguments=arguments,
        proposed_arguments=parsed(call.proposed_arguments) if call.proposed_arguments else None,
        claimed_annotations=claims,
        execution_id=execution.execution_id,
        request=execution.request,
        context=parsed(execution.context),
    )

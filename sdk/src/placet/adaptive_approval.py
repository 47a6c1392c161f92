"""Whether a plan or call needs a person's approval, by the policies in force, trust and risk.

`AdaptiveApprovalService` has the names and arguments of the planners that move to Placet. What it says is an
assessment (`placet.trust`): the policies judge each call again when it is proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from placet.client import AsyncPlacet
from placet.sync import Placet
from placet.trust import AssessedCall, Assessment

RiskLevel = Literal["low", "medium", "high"]
LEVELS: tuple[RiskLevel, ...] = ("low", "medium", "high")
CALLS_MAX = 50
# Asked about if no agent is named: an agent that nobody trusts.
NOBODY = "nobody"


class AsyncAdaptiveApprovalService:
    """Says when people must be asked; the client's token may read the project."""

    def __init__(self, client: AsyncPlacet, *, agent: str | None = None) -> None:
        """Choose the client, and the agent of plans and calls that name none."""
        self._client = client
        self._agent = agent

    async def should_require_approval(
        self,
        plan_or_call: Mapping[str, Any],
        agent_trust_score: float | None = None,
        task_risk_level: RiskLevel | None = None,
    ) -> bool:
        """Return False only if the policies would now release every call of a plan, or the call, without people.

        Args:
            plan_or_call: a plan {agent, steps: [{function, parameters}, …]}, or a call {agent, tool, arguments};
                `function` and `parameters`, `tool` and `arguments` mean the same.
            agent_trust_score: the caller's own score, 0 to 1. It can only ask for more: trust releases nothing that
                this score would not.
            task_risk_level: the caller's own level. If it is above the computed one, trust releases nothing.

        Raises:
            ValueError: a score that is no number from 0 to 1, an unknown level, or a plan that is none.
        """
        asked = _asked_of(plan_or_call, self._agent)
        given = _checked(agent_trust_score, task_risk_level)
        return _requires_approval(
            [await self._client.trust.assess(asked.agent, part) for part in asked.parts], given
        )

    async def calculate_agent_trust_score(self, agent_id: str) -> float:
        """The lower bound of the trust in an agent, over all classes of its calls: to compare agents by.

        Raises:
            NotFound: the project has no such agent.
        """
        # It is of all classes, however many are asked for.
        return float((await self._client.trust.classes(agent_id, limit=1))["lower_bound"])

    async def calculate_task_risk_level(
        self, task_description: str, context: Mapping[str, Any] | None = None
    ) -> RiskLevel:
        """The risk of a task: of its calls, and of the tools that it may use, by their published definitions.

        The description can only raise it. A task of which neither is named may use every published tool.

        Args:
            task_description: what is to be done.
            context: `tools` (names), `steps` or `calls` (see `should_require_approval`), and `agent`.

        Raises:
            ValueError: the tools are not names, or the calls are none.
        """
        task = _task_of(context or {}, self._agent)
        found = [
            await self._client.trust.assess(
                task.agent, part, tools=task.tools, task_description=task_description
            )
            for part in task.parts
        ]
        return _highest(found)


class AdaptiveApprovalService:
    """`AsyncAdaptiveApprovalService` for programs without an event loop."""

    def __init__(self, client: Placet, *, agent: str | None = None) -> None:
        """Choose the client, and the agent of plans and calls that name none."""
        self._client = client
        self._agent = agent

    def should_require_approval(
        self,
        plan_or_call: Mapping[str, Any],
        agent_trust_score: float | None = None,
        task_risk_level: RiskLevel | None = None,
    ) -> bool:
        """See `AsyncAdaptiveApprovalService.should_require_approval`."""
        asked = _asked_of(plan_or_call, self._agent)
        given = _checked(agent_trust_score, task_risk_level)
        return _requires_approval(
            [self._client.trust.assess(asked.agent, part) for part in asked.parts], given
        )

    def calculate_agent_trust_score(self, agent_id: str) -> float:
        """See `AsyncAdaptiveApprovalService.calculate_agent_trust_score`."""
        return float(self._client.trust.classes(agent_id)["lower_bound"])

    def calculate_task_risk_level(
        self, task_description: str, context: Mapping[str, Any] | None = None
    ) -> RiskLevel:
        """See `AsyncAdaptiveApprovalService.calculate_task_risk_level`."""
        task = _task_of(context or {}, self._agent)
        return _highest(
            self._client.trust.assess(task.agent, part, tools=task.tools, task_description=task_description)
            for part in task.parts
        )


class _Asked(NamedTuple):
    """Calls to assess: of whom, in parts of at most `CALLS_MAX`, and the tools beside them."""

    agent: str
    parts: Sequence[Sequence[Mapping[str, Any]]]
    tools: Sequence[str] = ()


class _Given(NamedTuple):
    """The caller's own numbers."""

    score: float | None
    level: RiskLevel | None


def _asked_of(plan_or_call: Mapping[str, Any], agent: str | None) -> _Asked:
    if not isinstance(plan_or_call, Mapping):
        raise ValueError(f"a plan or call is an object, not {type(plan_or_call).__name__}")
    steps = plan_or_call.get("steps")
    calls = [_call(plan_or_call, "the call")] if steps is None else _calls(steps, "steps")
    if not calls:
        raise ValueError("steps: a plan has at least one step")
    return _Asked(_agent_of(plan_or_call, agent), _parts(calls))


def _task_of(context: Mapping[str, Any], agent: str | None) -> _Asked:
    tools = context.get("tools", ())
    if isinstance(tools, str) or not all(isinstance(name, str) for name in tools):
        raise ValueError("tools: a list of names of tools")
    calls = [call for name in ("steps", "calls") for call in _calls(context.get(name, ()), name)]
    return _Asked(_agent_of(context, agent), _parts(calls) or [()], tuple(tools))


def _agent_of(given: Mapping[str, Any], agent: str | None) -> str:
    named = given.get("agent") or given.get("agent_id") or agent or NOBODY
    if not isinstance(named, str):
        raise ValueError("agent: the name of an agent")
    return named


def _calls(steps: Any, name: str) -> list[Mapping[str, Any]]:
    if isinstance(steps, str | Mapping) or not isinstance(steps, Sequence):
        raise ValueError(f"{name}: a list of steps {{function, parameters}}")
    return [_call(step, f"{name}[{index}]") for index, step in enumerate(steps)]


def _call(step: Any, place: str) -> Mapping[str, Any]:
    found = step if isinstance(step, Mapping) else {}
    tool = found.get("tool") or found.get("function")
    arguments = found.get("arguments", found.get("parameters", {}))
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        raise ValueError(
            f"{place}: needs the tool's name as `tool` or `function`, and `arguments` or `parameters`"
        )
    annotations = found.get("annotations", {})
    return {"tool": tool, "arguments": arguments, "annotations": annotations}


def _parts(calls: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    return [calls[first : first + CALLS_MAX] for first in range(0, len(calls), CALLS_MAX)]


def _checked(score: float | None, level: RiskLevel | None) -> _Given:
    is_score = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    if score is not None and not is_score:
        raise ValueError(f"agent_trust_score: a number from 0 to 1, not {score!r}")
    if level is not None and level not in LEVELS:
        raise ValueError(f"task_risk_level: one of {', '.join(LEVELS)}, not {level!r}")
    return _Given(score, level)


def _requires_approval(found: Sequence[Assessment], given: _Given) -> bool:
    is_riskier = given.level is not None and _rank(given.level) > max(_rank(one.risk.level) for one in found)
    return any(_requires(call, given, is_riskier) for one in found for call in one.calls)


def _requires(call: AssessedCall, given: _Given, is_riskier: bool) -> bool:
    if call.requires_approval or call.effect == "allow":
        return call.requires_approval
    weighed = call.adaptive
    if is_riskier or weighed is None or weighed.floor is None:
        return True
    return given.score is not None and given.score < max(weighed.required, weighed.floor)


def _highest(found: Iterable[Assessment]) -> RiskLevel:
    return LEVELS[max(_rank(one.risk.level) for one in found)]


def _rank(level: str) -> int:
    """The place of a level among the known ones; a level of a later version is the highest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1

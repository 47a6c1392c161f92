"""Calls assessed before anyone proposes them: the verdict that they would get, and the risk of a task of several.

An assessment decides nothing: a call is judged when it is proposed, by what is in force and known by then. Of a run
that has not begun nobody knows what untrusted tools will return, so nothing counts as tainted here, and decisions
that are remembered are not looked for: they are reserved, and used up, by calls.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from schemas.sensitive import marked_values, public_misfits
from services.domain.arguments import parsed
from services.domain.context import Tool
from services.domain.definitions import Definitions
from services.domain.execution.adaptive import SEALED
from services.domain.input_schema import misfits
from services.domain.policy import Verdict
from services.domain.policy.risk import Risk, of_task, with_history
from services.domain.state import Call, Execution
from services.domain.trust.book import KnownTrust
from services.domain.trust.reading import Contrary


class AskedCall(Struct, frozen=True):
    """A call that may be proposed; arguments and the agent's claims about the tool are canonical JSON."""

    tool: str
    arguments: str
    annotations: str


class Assessed(Struct, frozen=True):
    """The verdict that a call would get, and its risk with what the history of its values adds.

    `misfits` are the reasons why the proposal would be refused before: the arguments do not fit the tool's
    inputSchema. `is_published` is false of a tool that the project does not know.
    """

    verdict: Verdict
    risk: Risk
    misfits: tuple[str, ...]
    is_published: bool = True

    @property
    def requires_approval(self) -> bool:
        """False only if the call would be released without people, but for the sample of an adaptive block.

        A sample of all calls leaves none to be released.
        """
        adaptive = self.verdict.adaptive
        by_trust = adaptive is not None and adaptive.is_eligible and adaptive.sample_rate < 1
        return bool(self.misfits) or not (self.verdict.effect == "allow" or by_trust)


TrustOf = Callable[[str, str], KnownTrust | None]
ContraryOf = Callable[[str, str], Contrary | None]


def assess(
    definitions: Definitions,
    run: Execution,
    asked: AskedCall,
    now_ms: int,
    trust: TrustOf,
    contrary: ContraryOf,
) -> Assessed:
    """The assessment of one call.

    Args:
        definitions: those in force.
        run: the run that would propose it.
        asked: the call.
        now_ms: the log's time.
        trust: tool and class → what is known of the agent; None while trust is not complete.
        contrary: tool and class → what keeps trust from releasing such calls.
    """
    tool = definitions.tool(run.tenant, asked.tool, run.project)
    verdict = definitions.judge(
        run,
        _call(run, asked),
        now_ms,
        contrary=lambda trust_class: contrary(asked.tool, trust_class),
        trust=lambda trust_class: trust(asked.tool, trust_class),
    )
    risk = with_history(verdict.risk, verdict.history.parts, is_known=tool is not None)
    arguments = parsed(asked.arguments)
    if tool is not None and marked_values(parsed(tool.input_schema), arguments):
        verdict = _sealed(verdict)
    return Assessed(verdict, risk, _misfits(tool, arguments), is_published=tool is not None)


def _misfits(tool: Tool | None, arguments: Any) -> tuple[str, ...]:
    if tool is None or tool.validate(arguments) is None:
        return ()
    return public_misfits(tool.input_schema, arguments, misfits)


def _sealed(verdict: Verdict) -> Verdict:
    """The verdict on a call with values that are sealed before it is judged: trust does not release it."""
    if verdict.adaptive is None or not verdict.adaptive.is_eligible:
        return verdict
    return replace(verdict, adaptive=replace(verdict.adaptive, is_eligible=False, why=SEALED))


def risk_of_task(
    definitions: Definitions,
    run: Execution,
    calls: Iterable[Assessed],
    tools: Iterable[str],
    description: str,
) -> Risk:
    """The risk of a task: of its calls, and of the tools that it may use; its description can only raise it."""
    of_tools = (definitions.risk_of_tool(run.tenant, name, run.project) for name in tools)
    return of_task([*(one.risk for one in calls), *of_tools], description)


def _call(run: Execution, asked: AskedCall) -> Call:
    return Call(
        call_id="",
        revision=1,
        agent=run.agent,
        tool=asked.tool,
        tool_version="",
        arguments=asked.arguments,
        digest="",
        context="{}",
        claims=asked.annotations,
        reason="",
        requesters=(),
        proposal_digest="",
    )

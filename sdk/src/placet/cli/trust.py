"""`placet trust explain`, `assess` and `report`: the trust in agents, what it comes from, and what it effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Annotated, Any

import typer

from placet.cli import safe
from placet.cli.choices import a_time, agent_names, tool_names
from placet.cli.inputs import read_object
from placet.cli.lines import print_rows
from placet.cli.near_names import naming_near_agent, near_agent, near_tool
from placet.cli.plugins import new_group
from placet.cli.session import JsonFlag, column_time, connect, console, print_json, print_line, zoned
from placet.cli.times import is_ahead
from placet.cli.trust_report import report
from placet.cli.viewing import both_risks
from placet.errors import NotFound
from placet.sync import Placet
from placet.trust import AssessedCall, Assessment

# A decision counts so long; `schemas.trust_score` of the server has the number.
WINDOW_DAYS = 180
UNCOUNTED = {
    "withdrawn_account": "withdrawn account",
    "own_proposal": "own proposal",
    "before_it_began_anew": "before it was begun anew",
    "too_old": "too old",
}

app = new_group("trust", help="Trust in agents: what it is, what it comes from, and what it saves.")


@app.callback()
def trust() -> None:
    """Trust in agents: what it is, what it comes from, and what it saves."""


@app.command()
def explain(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(help="The agent's name.", autocompletion=agent_names)],
    tool: Annotated[
        str | None, typer.Argument(help="A tool: also lists the facts.", autocompletion=tool_names)
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="As it was at this time, such as 2026-01-05T12:00:00Z.", callback=a_time),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how far an agent's calls are trusted, by classes of calls; with a tool, the facts behind each."""
    _check_agent(agent)
    with connect(context) as placet, naming_near_agent(placet, agent):
        found = placet.trust.classes(agent, tool=tool, at=at)
        if tool is not None and not found["classes"]:
            _check_used(placet, agent, tool)
    if at is not None and is_ahead(at):
        note = f"{at} is in the future: as trust will be then, if nobody decides anything until then."
        console(stderr=True).print(safe.text(note))
    if not found.get("complete", True):
        note = "Trust is missing now: the trust role is down or counts anew, and people are asked about every call."
        console(stderr=True).print(safe.text(note))
    if as_json:
        print_json(found)
        return
    of = f"{tool} by {agent}" if tool else agent
    nothing = f"No decision of people on calls of {of} counts {_when(at)}."
    if tool is None:
        _print_classes(found, nothing)
        return
    for one in found["classes"]:
        _print_facts(one)
    if not found["classes"]:
        print_line(safe.text(nothing, lines=True))


def _check_agent(agent: str) -> None:
    if "/" in agent:
        said = "an agent's name has no slash: give the agent, and after it the tool"
        raise typer.BadParameter(said, param_hint="AGENT")


def _check_used(placet: Placet, agent: str, tool: str) -> None:
    """Refuse a tool that the agent never used, such as a misspelt one."""
    agents = placet.fetch("/agents")["items"]
    used = sorted(
        row["tool"] for one in agents if one["agent"] == agent for row in one["tools"] if row["tool"]
    )
    if tool not in used:
        tools = f"it used {', '.join(used)}" if used else "it used none"
        raise NotFound(
            "not_found", 404, f"{safe.escaped(agent)} never used {safe.escaped(tool)}: {safe.escaped(tools)}"
        )


def _when(at: str | None) -> str:
    """When a decision would have to count, and why none does."""
    if at is None:
        return f"now: there is none, or each is older than {WINDOW_DAYS} days"
    if is_ahead(at):
        return f"at {at}: each is older than {WINDOW_DAYS} days by then"
    return f"at {at}: there was none yet, or each was older than {WINDOW_DAYS} days"


@app.command()
def assess(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(help="The agent's name.", autocompletion=agent_names)],
    tool: Annotated[str, typer.Argument(help="The tool that it would call.", autocompletion=tool_names)],
    arguments: Annotated[
        str,
        typer.Option("--arguments", help="The arguments as JSON. @FILE reads a file, - the input."),
    ] = "{}",
    as_json: JsonFlag = False,
) -> None:
    """Show what the policies would make of a call, before anyone proposes it; nothing is decided by it."""
    _check_agent(agent)
    given = read_object(arguments)
    with connect(context) as placet:
        found = placet.trust.assess(agent, [{"tool": tool, "arguments": given}])
        if as_json:
            print_json(found.raw)
            return
        (call,) = found.calls
        unknown = list(_unknown(placet, found, call))
    for line in (*unknown, *_told(call)):
        print_line(safe.text(line, lines=True))


def _unknown(placet: Placet, found: Assessment, call: AssessedCall) -> Iterator[str]:
    """What the project does not know: the names may be misspelt."""
    if not found.is_known:
        near = near_agent(placet, found.agent) or "check the name"
        yield f"no agent {found.agent} has done anything in this project: nothing of it is trusted; {near}"
    if not call.is_published:
        near = near_tool(placet, call.tool) or "check the name (`placet tools`)"
        yield f"no tool {call.tool} is published for this project: {near}"


def _told(call: AssessedCall) -> Iterator[str]:
    needs = "people would be asked" if call.requires_approval else "it would be released without people"
    if call.misfit is not None:
        yield from _refused(call.misfits or (call.misfit,))
    else:
        yield "it would be denied" if call.effect == "deny" else needs
    yield f"policy: {call.effect}, {call.detail}"
    yield f"risk: {_risks(call)}"
    if (weighed := call.adaptive) is not None:
        yield f"adaptive: {weighed.why}"
        if weighed.is_eligible and weighed.sample_rate >= 1:
            yield "the sample rate is 1: trust is weighed, and people are asked about every such call all the same"
        elif not call.requires_approval and weighed.sample_rate:
            yield f"of such calls, {weighed.sample_rate:.0%} are asked all the same, as a sample"
    if call.history["novel"]:
        yield f"new to this agent and tool: {', '.join(call.history['novel'])}"


def _risks(call: AssessedCall) -> str:
    """The risk by the tool, and with what new values add; of an earlier gateway the latter alone."""
    of_tool = call.risk_of_tool or call.risk
    return both_risks(of_tool, None if of_tool == call.risk else call.risk, digits=2)


def _refused(misfits: Sequence[str]) -> Iterator[str]:
    if len(misfits) == 1:
        yield f"it would be refused: the arguments do not fit the tool: {misfits[0]}"
        return
    yield "it would be refused: the arguments do not fit the tool:"
    yield from (f"  {misfit}" for misfit in misfits)


app.command()(report)


def at_least(bound: float) -> str:
    """A lower bound with four digits, never more than it is: it is compared with what the risk requires."""
    return str(Decimal(str(bound)).quantize(Decimal("0.0001"), ROUND_DOWN))


def _print_classes(found: Mapping[str, Any], nothing: str) -> None:
    print_rows(
        ("tool", "trust is at least", "risk requires", "raising", "lowering", "facts", "class of calls"),
        [
            (
                one["tool"],
                at_least(one["lower_bound"]),
                _required(one),
                _number(one["raising"]),
                _number(one["lowering"]),
                one["facts"],
                one["trust_class"],
            )
            for one in found["classes"]
        ],
        nothing,
    )


def _print_facts(one: Mapping[str, Any]) -> None:
    required = _required(one)
    head = (
        f"{one['tool']}, calls of the class {one['trust_class']}: trust is at least {at_least(one['lower_bound'])} "
        f"(raising {_number(one['raising'])}, lowering {_number(one['lowering'])})"
        f"{required and f', the risk requires {required}'}"
    )
    print_line(safe.text(head, lines=True))
    print_rows(
        (zoned("time"), "fact", "by", "raises", "lowers", "execution", "call", "log"),
        [
            (
                column_time(fact["at"]),
                fact["kind"],
                ", ".join(fact["by"]),
                _raises(fact),
                _number(fact["lowering"]),
                fact["execution_id"],
                fact["call_id"],
                f"{fact['partition']}@{fact['offset']}",
            )
            for fact in one["evidence"]
        ],
        "",
    )


def _required(one: Mapping[str, Any]) -> str:
    """The trust that the risk of a class requires; nothing if the gateway does not know it, or is an earlier one."""
    required = one.get("required")
    return "" if required is None else f"{required:.4f}"


def _raises(fact: Mapping[str, Any]) -> str:
    """What a fact adds, and why nothing if it could."""
    why = fact.get("uncounted")
    return f"{_number(fact['raising'])} ({UNCOUNTED.get(why, why)})" if why else _number(fact["raising"])


def _number(value: float) -> str:
    """A sum of weights, without digits that say nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".")

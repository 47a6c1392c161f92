"""`placet executions`, `state`, `pause`, `resume`, `cancel`: list, show and control executions."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.choices import STATES, a_time_or_version, agent_names, completing, execution_ids, one_of
from placet.cli.lines import begun, print_with_texts
from placet.cli.one_execution import print_execution
from placet.cli.session import (
    JsonFlag,
    confirm,
    connect,
    console,
    every,
    find_execution,
    in_project,
    print_json,
    zoned,
)
from placet.models import Execution
from placet.parsing import parse_time

ExecutionArgument = Annotated[
    str,
    typer.Argument(help="An execution's id, or the unique beginning of one.", autocompletion=execution_ids),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for the agent and the record.")]


def executions(
    context: typer.Context,
    state: Annotated[
        str | None,
        typer.Option(
            help="running, paused, waiting_approval, completed …",
            callback=one_of(STATES),
            autocompletion=completing(STATES),
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.", autocompletion=agent_names)] = None,
    as_json: JsonFlag = False,
) -> None:
    """List executions."""
    with connect(context) as placet:
        found = every(lambda cursor: placet.executions.list(state=state, agent=agent, cursor=cursor))
    if as_json:
        print_json([one.raw for one in found])
        return
    print_with_texts(
        ("execution", "agent", "state", zoned("started")),
        [(one.execution_id, one.agent, one.state, one.started_at) for one in found],
        "request",
        [safe.text(begun(_request(one))) for one in found],
        f"No executions{in_project(context)}.",
    )


def _request(execution: Execution) -> str:
    """The request that a run was started for, as text."""
    said = execution.request
    return said if isinstance(said, str) else "" if said is None else safe.pretty_json(said)


def state(
    context: typer.Context,
    execution: ExecutionArgument,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="A time (RFC 3339, 24h ago), a version, or an offset of the log as @123.",
            callback=a_time_or_version,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the current or an earlier state of an execution."""
    with connect(context) as placet:
        found = find_execution(placet, execution, at)
    if at is not None and (note := _not_yet(at, found)):
        console(stderr=True).print(safe.text(note))
    if as_json:
        print_json(found.raw)
    else:
        print_execution(found)


def _not_yet(at: str, shown: Execution) -> str:
    """The note for a version or time in the future, for which the newest state is shown."""
    if at.isdecimal():
        newest = shown.version
        return (
            f"It has no version {at} yet: this is {newest}."
            if newest is not None and int(at) > newest
            else ""
        )
    if "@" in at:
        return ""
    is_ahead = parse_time(at) > datetime.now(timezone.utc)
    return f"{at} is in the future: this is the current state." if is_ahead else ""


def pause(
    context: typer.Context, execution: ExecutionArgument, reason: ReasonOption = "", as_json: JsonFlag = False
) -> None:
    """Pause an execution: no call of it runs, and no new one is judged, until it is resumed."""
    with connect(context) as placet:
        found = find_execution(placet, execution)
        _print("paused", placet.executions.pause(found.execution_id, reason), as_json)


def resume(
    context: typer.Context,
    execution: ExecutionArgument,
    feedback: Annotated[str, typer.Option("--feedback", help="What the agent should know.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Resume a paused execution."""
    with connect(context) as placet:
        found = find_execution(placet, execution)
        _print("resumed", placet.executions.resume(found.execution_id, feedback), as_json)


def cancel(
    context: typer.Context,
    execution: ExecutionArgument,
    reason: ReasonOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """End an execution without a result; its open calls and holds are cancelled."""
    with connect(context) as placet:
        found = find_execution(placet, execution)
        confirm(f"Cancel {safe.escaped(found.execution_id)} of {safe.escaped(found.agent)}, for good?", yes)
        _print("cancelled", placet.executions.cancel(found.execution_id, reason), as_json)


def _print(done: str, execution: Execution, as_json: bool) -> None:
    if as_json:
        print_json(execution.raw)
    else:
        console().print(safe.text(f"{done}: {execution.execution_id} is {execution.state}"))

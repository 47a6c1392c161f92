"""`placet executions` and `placet state`: runs, and one of them now or at any moment."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.session import JsonFlag, by_prefix, connect, console, every, print_json, print_table
from placet.errors import NotFound
from placet.models import Execution
from placet.sync import Placet


def executions(
    context: typer.Context,
    state: Annotated[str | None, typer.Option(help="running, paused, waiting_approval, completed …")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List executions."""
    with connect(context) as placet:
        found = every(lambda cursor: placet.executions.list(state=state, agent=agent, cursor=cursor))
    if as_json:
        print_json([one.raw for one in found])
        return
    print_table(
        ("execution", "agent", "state", "started", "request"),
        [(one.execution_id, one.agent, one.state, one.started_at, one.request) for one in found],
        "No executions.",
    )


def state(
    context: typer.Context,
    execution: Annotated[str, typer.Argument(help="An execution's id, or the unique beginning of one.")],
    at: Annotated[str | None, typer.Option("--at", help="A time (RFC 3339) or a version.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show an execution as it is, or as it was."""
    with connect(context) as placet:
        found = find_execution(placet, execution, at)
    if as_json:
        print_json(found.raw)
    else:
        console().print(safe.text(safe.pretty_json(dict(found.raw)), lines=True))


def find_execution(placet: Placet, id_or_prefix: str, at: str | None = None) -> Execution:
    """An execution by its id, or by the unique beginning of one."""
    try:
        return placet.executions.get(id_or_prefix, at=at)
    except NotFound:
        known = every(lambda cursor: placet.executions.list(cursor=cursor))
        found = by_prefix(known, id_or_prefix, lambda one: (one.execution_id,), "execution")
        if found.execution_id == id_or_prefix:
            # It exists, so that what was not found is the moment asked for.
            raise
        return placet.executions.get(found.execution_id, at=at)

"""`placet inbox` and `placet show`: what waits, and one of it in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.table import Table

from placet.cli import safe
from placet.cli.session import (
    JsonFlag,
    connect,
    console,
    every,
    find_hold,
    print_json,
    print_table,
)
from placet.models import Hold
from placet.sync import Placet

SHORT = 8
HOLD_EVENTS = ("tool_call_pending_review", "hitl_requested", "hold_changed", "hold_resolved")


def inbox(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay and show what comes.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only what I may decide.")] = False,
    kind: Annotated[str | None, typer.Option(help="clarification, decision, env_var, permission.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List what waits for a person."""
    with connect(context) as placet:
        assignee = "me" if mine else None
        holds = every(
            lambda cursor: placet.holds.list(kind=kind, agent=agent, assignee=assignee, cursor=cursor)
        )
        if as_json:
            print_json([hold.raw for hold in holds])
        else:
            print_inbox(holds)
        if follow:
            _follow(placet, as_json)


def print_inbox(holds: Sequence[Hold]) -> None:
    """The table of open holds, oldest deadline first."""
    short = shortener([hold.hold_id for hold in holds])
    print_table(
        ("id", "agent", "tool", "risk", "waits until", "question"),
        [
            (short(hold.hold_id), hold.agent, hold.tool or hold.kind, _risk(hold), _until(hold), _asks(hold))
            for hold in holds
        ],
        "Nothing waits.",
    )


def shortener(ids: Sequence[str]) -> Callable[[str], str]:
    """The shortest beginnings, of eight characters or more, that tell the ids apart."""
    length = SHORT
    while len({one[:length] for one in ids}) < len(set(ids)):
        length += 1
    return lambda one: one[:length]


def _follow(placet: Placet, as_json: bool) -> None:
    for event in placet.events(("holds",)):
        if as_json:
            print_json({"type": event.type, "cursor": event.cursor, **event.body})
        elif event.type in HOLD_EVENTS:
            body = event.body
            hold_id = str(body.get("hold_id", ""))[:SHORT]
            what = body.get("tool") or body.get("question") or body.get("change") or body.get("status") or ""
            at = datetime.now().astimezone().strftime("%H:%M:%S")
            console().print(safe.text(f"{at}  {event.type:<26} {hold_id}  {what}"))
        elif event.type == "resync_required":
            print_inbox(every(lambda cursor: placet.holds.list(cursor=cursor)))


def show(
    context: typer.Context,
    id: Annotated[  # noqa: A002 - the interface's word
        str, typer.Argument(metavar="ID", help="A hold, call or request by its beginning; EXECUTION/CALL.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Show a hold, or a call, in full."""
    with connect(context) as placet:
        execution_id, slash, call_id = id.partition("/")
        shown = placet.call(execution_id, call_id) if slash else find_hold(placet, id)
    if as_json:
        print_json(shown.raw)
    elif isinstance(shown, Hold):
        print_hold(shown)
    else:
        console().print(safe.text(safe.pretty_json(dict(shown.raw)), lines=True))


def print_hold(hold: Hold) -> None:
    """Everything that a decision should rest on; arguments are never cut."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(hold):
        if value not in (None, "", []):
            facts.add_row(safe.text(name, style="bold"), safe.text(value, lines=True))
    screen = console()
    screen.print(facts)
    if hold.arguments is not None:
        shown = safe.text(safe.pretty_json(dict(hold.arguments)), lines=True)
        screen.print(Panel(shown, title="arguments", title_align="left"))
        for warning in safe.warnings(dict(hold.arguments)):
            screen.print(safe.text(f"! {warning}", style="bold red"))


def _facts(hold: Hold) -> Sequence[tuple[str, Any]]:
    return (
        ("hold", hold.hold_id),
        ("status", hold.status),
        ("execution", hold.execution_id),
        ("call", hold.call_id),
        ("agent", hold.agent),
        ("tool", hold.tool),
        ("kind", hold.kind),
        ("question", hold.question),
        ("options", ", ".join(map(str, hold.options))),
        ("risk", _risk(hold)),
        ("rules", ", ".join(hold.verdict.rules) if hold.verdict else ""),
        ("quorum", f"{len(hold.votes)} of {hold.quorum}" if hold.quorum > 1 else ""),
        ("waits until", _until(hold)),
        ("digest", hold.digest),
    )


def _risk(hold: Hold) -> str:
    risk = hold.risk or (hold.verdict.risk if hold.verdict else None)
    return "" if risk is None else f"{risk.level} {risk.score:.2f}".strip()


def _until(hold: Hold) -> str:
    if hold.deadline_at is None:
        return ""
    left_s = int((hold.deadline_at - datetime.now(timezone.utc)).total_seconds())
    local = hold.deadline_at.astimezone().strftime("%H:%M:%S")
    return f"{local} ({left_s // 60} min {left_s % 60} s)" if left_s > 0 else f"{local} (over)"


def _asks(hold: Hold) -> str:
    said = hold.question or safe.pretty_json(dict(hold.arguments or {}))
    return " ".join(said.split())[:100]

"""`placet inbox` and `placet show`: the open holds, and one of them in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli import safe
from placet.cli.answering import asks_of
from placet.cli.choices import KINDS, completing, hold_ids, one_of
from placet.cli.describing import purpose
from placet.cli.lines import begun, print_rows, print_with_texts
from placet.cli.log_places import Place, call_of, hold_of, named_at, place_in
from placet.cli.one_execution import print_execution
from placet.cli.past_values import in_full, in_short, tools_of_sources
from placet.cli.planted import planted_call, planted_told
from placet.cli.session import (
    JsonFlag,
    clock,
    connect,
    console,
    every,
    find_call,
    find_hold,
    in_project,
    local_time,
    print_json,
    split_call,
    zoned,
)
from placet.cli.viewing import (
    claimed,
    class_of,
    decided,
    facts_grid,
    fetch_view,
    print_value,
    print_view,
    risk_of,
    risk_told,
    until,
    weighed,
)
from placet.models import Event, Execution, Hold, HoldGroup, ToolCall
from placet.parsing import parse

if TYPE_CHECKING:
    from rich.text import Text

    from placet.sync import Placet

SHORT = 8
HOLD_EVENTS = ("tool_call_pending_review", "hitl_requested", "hold_changed", "hold_resolved")


def inbox(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep running and show changes.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only holds that I can decide.")] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            help="permission, clarification, decision or env_var.",
            callback=one_of(KINDS),
            autocompletion=completing(KINDS),
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    grouped: Annotated[bool, typer.Option("--grouped", help="Show similar holds as one line.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the holds that wait for a person."""
    if grouped and (follow or mine or kind):
        raise typer.BadParameter(
            "groups cover all waiting holds: give only --agent with it", param_hint="--grouped"
        )
    with connect(context) as placet:
        if grouped:
            _print_groups(placet.holds.groups(agent=agent), as_json, in_project(context))
            return
        decidable = "me" if mine else None
        holds = every(
            lambda cursor: placet.holds.list(kind=kind, agent=agent, decidable=decidable, cursor=cursor)
        )
        if as_json:
            print_json([hold.raw for hold in holds])
        else:
            print_inbox(holds, in_project(context))
        if follow:
            _follow(placet, as_json, in_project(context))


def print_inbox(holds: Sequence[Hold], where: str = "") -> None:
    """The table of open holds, oldest deadline first; `where` ends the sentence that there are none."""
    short = shortener([hold.hold_id for hold in holds])
    rows = [
        (
            short(hold.hold_id),
            hold.agent,
            _what(hold),
            risk_of(hold) or asks_of(hold).get("risk"),
            until(hold),
        )
        for hold in holds
    ]
    questions = [_asks(hold) for hold in holds]
    columns = ("id", "agent", "tool", "risk", zoned("waits until"))
    print_with_texts(columns, rows, "question", questions, f"Nothing waits{where}.")


def _print_groups(groups: Sequence[HoldGroup], as_json: bool, where: str) -> None:
    if as_json:
        print_json([group.raw for group in groups])
        return
    print_rows(
        ("holds", "agent", "tool", "risk", zoned("oldest"), "first", "values"),
        [
            (
                f"{group.count} ×",
                group.agent,
                group.tool or group.kind,
                group.risk_level,
                clock(group.oldest_at, datetime.now(timezone.utc)) if group.oldest_at else "",
                group.holds[0].hold_id[:SHORT] if group.holds else "",
                in_short(group.history),
            )
            for group in groups
        ],
        f"Nothing waits{where}.",
    )


def shortener(ids: Sequence[str]) -> Callable[[str], str]:
    """The shortest unique prefixes of the ids, of eight characters or more."""
    length = SHORT
    while len({one[:length] for one in ids}) < len(set(ids)):
        length += 1
    return lambda one: one[:length]


def _follow(placet: Placet, as_json: bool, where: str) -> None:
    for event in placet.events(("holds",)):
        if as_json:
            print_json({"type": event.type, "cursor": event.cursor, **event.body})
        elif event.type in HOLD_EVENTS:
            hold_id = str(event.body.get("hold_id", ""))[:SHORT]
            at = datetime.now().astimezone().strftime("%H:%M:%S")
            console().print(safe.text(f"{at}  {event.type:<26} {hold_id}  {_told(event)}"))
        elif event.type == "resync_required":
            print_inbox(every(lambda cursor: placet.holds.list(cursor=cursor)), where)


def show(
    context: typer.Context,
    id: Annotated[  # noqa: A002 - the interface's word
        str,
        typer.Argument(
            metavar="ID",
            help="The id of a hold, call or request, or its beginning; EXECUTION/CALL; a place in the log, 2@16.",
            autocompletion=hold_ids,
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Show a hold, or a call, in full."""
    place = place_in(id)
    call = split_call(id) if place is None else None
    with connect(context) as placet:
        shown: Hold | ToolCall | Execution
        title = ""
        if place is not None:
            title, shown = _found_at(placet, place)
        else:
            shown = find_hold(placet, id) if call is None else find_call(placet, *call)
        view = fetch_view(placet, shown) if isinstance(shown, Hold) and not as_json else None
        planted = planted_call(placet, shown) if isinstance(shown, Hold) and not as_json else ""
        tools = {} if as_json or isinstance(shown, Execution) else tools_of_sources(placet, shown)
    if as_json:
        print_json(shown.raw)
        return
    if title:
        console().print(safe.text(title))
    if isinstance(shown, Hold) and view is not None:
        print_view(shown, view, tools=tools, planted=planted)
    elif isinstance(shown, ToolCall):
        _print_call(shown, tools)
    elif isinstance(shown, Execution):
        print_execution(shown)


def _found_at(placet: Placet, place: Place) -> tuple[str, Hold | ToolCall | Execution]:
    """What the event at a place is about, with a line that says what the event is."""
    named = named_at(placet, place)
    found = call_of(placet, named) or hold_of(placet, named) or placet.executions.get(named.execution_id)
    return f"{place} in the log: {named.event_type}, {local_time(named.at)}", found


def _print_call(call: ToolCall, tools: Mapping[str, str]) -> None:
    """A call for a person: what it is, its state, and the arguments that it ran or would run with."""
    raw = call.raw
    verdict = call.verdict
    # Without one of its own, a call's feedback for the agent is its error: no word of the person who decided.
    feedback = call.feedback if call.decision is None else call.decision.feedback
    facts = (
        ("call", f"{call.execution_id}/{call.call_id}"),
        ("agent", call.agent),
        ("tool", call.tool),
        ("status", call.status),
        ("verdict", f"{verdict.effect} ({', '.join(verdict.rules)})" if verdict else ""),
        ("risk", risk_told(verdict)),
        ("trust", weighed(verdict)),
        ("class of calls", class_of(verdict)),
        ("values", in_full(verdict.history if verdict else None, tools)),
        ("hold", call.hold_id),
        ("decided", decided(raw.get("decision"))),
        ("feedback", feedback),
        ("ran for", f"{raw['duration_ms']} ms" if raw.get("duration_ms") is not None else ""),
        ("planted", planted_told(raw.get("probe"))),
        ("error", call.error if call.error != feedback else ""),
        ("impact", f"reported as harmful by {call.impact_reports}" if call.impact_reports else ""),
        ("digest", call.digest),
    )
    console().print(facts_grid(facts))
    for edit in call.edits:
        # Too large to be shown: the arguments are those that were made of it.
        print_value(f"edited by {edit.by}", "(a large change)" if edit.patch is None else list(edit.patch))
    if call.output is not None:
        print_value("output", call.output)
    print_value("arguments", dict(call.approved_arguments or call.arguments))


def _asks(hold: Hold) -> Text:
    said = hold.question or safe.pretty_json(dict(hold.arguments or {}))
    # The gateway's own question about an unknown outcome ends with the commands that answer it.
    shown = safe.text(" ".join(said.split()) if hold.raw.get("cause") == "outcome_unknown" else begun(said))
    if about := purpose(hold):
        shown.append("\n").append(safe.text(begun(about), style="dim"))
    # A question that was asked on its own is itself what its agent was asked for.
    if hold.request and hold.request != hold.question:
        shown.append("\n").append(safe.text("asked: " + begun(hold.request), style="dim"))
    if values := in_short(hold.verdict.history if hold.verdict else None):
        # Its risk is that of the tool: what new values add to it is not in the column beside it.
        shown.append("\n").append(safe.text(begun(values), style="bold"))
    if working := claimed(hold):
        shown.append("\n").append(safe.text(f"claimed {working}", style="dim"))
    return shown


def _what(hold: Hold) -> str:
    """The tool of a call; of a question its kind, and what a permission is for."""
    tool = asks_of(hold).get("tool")
    return hold.tool or (f"{hold.kind}: {tool}" if tool else hold.kind)


def _told(event: Event) -> str:
    """What an event of the channel `holds` says, on one line."""
    hold = parse(Hold, {"hold_id": "", **event.body})
    what = hold.tool or begun(hold.question)
    if event.type == "hold_resolved":
        return f"{what}  {decided(event.body.get('decision')) or hold.status}"
    change = event.body.get("change")
    if change == "claimed":
        return f"{what}  claimed {claimed(hold)}"
    return f"{what}  {change}" if change else what

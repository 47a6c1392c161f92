"""`placet claim`, `release`, `delegate`, `extend`, `escalate`: acts on a hold that leave it open."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.choices import IdArgument
from placet.cli.remembering import seconds_of
from placet.cli.session import JsonFlag, connect, console, find_hold, print_json
from placet.cli.viewing import until
from placet.models import Hold

CLAIM_MAX = "1h"
EXTENSION_MAX = "7d"


def claim(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    lasts: Annotated[str, typer.Option("--for", help=f"How long: 90s, 30m, at most {CLAIM_MAX}.")] = "5m",
    as_json: JsonFlag = False,
) -> None:
    """Show others for a while that you are working on a hold; they can still decide it."""
    seconds = seconds_of(lasts, at_most=CLAIM_MAX)
    with connect(context) as placet:
        changed = placet.holds.claim(find_hold(placet, id).hold_id, seconds)
    _print("claimed", changed, as_json)


def release(context: typer.Context, id: IdArgument, as_json: JsonFlag = False) -> None:  # noqa: A002
    """Release a hold that you claimed; an operator can release another's claim."""
    with connect(context) as placet:
        changed = placet.holds.release(find_hold(placet, id).hold_id)
    _print("released", changed, as_json)


def delegate(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    to: Annotated[
        str, typer.Argument(metavar="SUBJECT", help="A principal, or the exact sub of a person's tokens.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Delegate a hold to another person, who then decides on your behalf."""
    with connect(context) as placet:
        changed = placet.holds.delegate(find_hold(placet, id).hold_id, to)
    _print(f"delegated to {to}", changed, as_json)
    if changed.raw.get("assignee_known") is False:
        said = f"! {to} is not a published principal or an account of one: check the name (placet principals)"
        console(stderr=True).print(safe.text(said, style="yellow"))


def extend(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    by: Annotated[str, typer.Argument(metavar="DURATION", help=f"90s, 30m, 24h; at most {EXTENSION_MAX}.")],
    as_json: JsonFlag = False,
) -> None:
    """Extend a hold's current deadline. By at most 7 days at once; it is then at most 366 days from now."""
    seconds = seconds_of(by, "DURATION", EXTENSION_MAX)
    with connect(context) as placet:
        changed = placet.holds.extend(find_hold(placet, id).hold_id, seconds)
    _print("extended", changed, as_json)


def escalate(context: typer.Context, id: IdArgument, as_json: JsonFlag = False) -> None:  # noqa: A002
    """Ask the roles of the rule's escalation now."""
    with connect(context) as placet:
        changed = placet.holds.escalate(find_hold(placet, id).hold_id)
    _print("escalated", changed, as_json)


def _print(done: str, hold: Hold, as_json: bool) -> None:
    if as_json:
        print_json(hold.raw)
        return
    waits = f", waits until {until(hold)}" if hold.deadline_at else ""
    console().print(safe.text(f"{done}: {hold.tool or hold.kind} {hold.hold_id}{waits}"))

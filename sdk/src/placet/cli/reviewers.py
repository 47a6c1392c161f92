"""`placet reviewers`: how people decide."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from placet.cli.choices import a_time
from placet.cli.lines import print_rows
from placet.cli.session import JsonFlag, column_time, connect, print_json, zoned


def reviewers(
    context: typer.Context,
    since: Annotated[
        str | None, typer.Option(help="Only from this time on; by default the last 30 days.", callback=a_time)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how people decide: how many, how fast, and how often they approve what they have hardly looked at.

    approved, edited, rejected, answered: the person's decisions of each kind, also votes that others had to join.
    waited: from the opening of a hold to the decision, on average. looked: how long its view had been shown to the
    person by then, on average of those that were measured. quick: the share of the measured approvals that took less
    than 3 s. probes missed: planted calls that the person let pass, of those answered to, and the interval that has
    the real share in 95 of 100 cases. last: the newest decision. A cell is empty where nothing was measured.
    """
    with connect(context) as placet:
        found = placet.fetch("/reviewers", since=since)["items"]
    if as_json:
        print_json(found)
        return
    print_rows(
        (
            "reviewer",
            "approved",
            "edited",
            "rejected",
            "answered",
            "waited",
            "looked",
            "quick",
            "probes missed",
            zoned("last"),
        ),
        [
            (
                one["reviewer"],
                one["approved"],
                one["edited"],
                one["rejected"],
                one["answered"],
                _seconds(one["average_wait_ms"]),
                _seconds(one["average_dwell_ms"]),
                ""
                if one["quick_share"] is None
                else f"{one['quick_share']:.0%} of {one['measured_approvals']}",
                _missed(one.get("probes")),
                column_time(one["last_decided_at"]),
            )
            for one in found
        ],
        "Nobody has decided anything in this time.",
    )


def _missed(probes: Any) -> str:
    """How many of the planted calls a person approved, and the interval of that share."""
    if probes is None:
        return ""
    return f"{probes['missed']} of {probes['answered']} ({probes['lower']:.0%} to {probes['upper']:.0%})"


def _seconds(milliseconds: Any) -> str:
    """A duration to two digits; empty if it was not measured."""
    return (
        ""
        if milliseconds is None
        else f"{milliseconds / 1000:.2g} s"
        if milliseconds < 100_000
        else (f"{milliseconds / 60_000:.0f} min")
    )

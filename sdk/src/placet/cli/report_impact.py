"""`placet report-impact`: a person says afterwards that a call which ran did harm."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.choices import call_ids, execution_ids
from placet.cli.session import JsonFlag, connect, console, print_json


def report_impact(
    context: typer.Context,
    execution: Annotated[str, typer.Argument(help="The execution's id.", autocompletion=execution_ids)],
    call: Annotated[str, typer.Argument(help="The call's id.", autocompletion=call_ids)],
    reason: Annotated[str, typer.Option("--reason", help="What harm it did, for the record.")],
    as_json: JsonFlag = False,
) -> None:
    """Report that a call which ran did harm; it lowers the trust in its agent. A report is final."""
    if not reason.strip():
        raise typer.BadParameter("say what harm it did: only people can know it", param_hint="--reason")
    with connect(context) as placet:
        before = placet.call(execution, call).impact_reports
        reported = placet.report_impact(execution, call, reason=reason)
    if as_json:
        print_json(reported.raw)
        return
    # A person's second report is answered like the first one, and changes nothing.
    is_new = reported.impact_reports > before
    said = "reported" if is_new else "reported before, and nothing was added, nor is this reason recorded"
    of = f"{reported.tool} {execution}/{call} ({reported.status}), by {reported.impact_reports} so far"
    console().print(safe.text(f"{said}: {of}", lines=True))

"""`placet report-impact`: a person says afterwards that a call which ran did harm."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.one_call import CallArgument, ExecutionOfCall, ids_of, on_call
from placet.cli.session import JsonFlag, connect, console, print_json


def report_impact(
    context: typer.Context,
    execution: ExecutionOfCall,
    reason: Annotated[str, typer.Option("--reason", help="What harm it did, for the record.")],
    call: CallArgument = None,
    as_json: JsonFlag = False,
) -> None:
    """Report that a call which ran did harm; it lowers the trust in its agent. A report is final."""
    if not reason.strip():
        raise typer.BadParameter("say what harm it did: only people can know it", param_hint="--reason")
    ids = ids_of(execution, call)
    with connect(context) as placet:
        found = on_call(placet, ids, placet.call)
        named = (found.execution_id, found.call_id)
        before, reported = found.impact_reports, placet.report_impact(*named, reason=reason)
    if as_json:
        print_json(reported.raw)
        return
    # A person's second report is answered like the first one, and changes nothing.
    is_new = reported.impact_reports > before
    said = "reported" if is_new else "reported before, and nothing was added, nor is this reason recorded"
    of = f"{reported.tool} {'/'.join(named)} ({reported.status}), by {reported.impact_reports} so far"
    console().print(safe.text(f"{said}: {of}", lines=True))

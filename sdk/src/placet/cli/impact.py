"""`placet audit impact`: what rested on a grant, a rule or a person's word."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli.choices import rule_ids
from placet.cli.session import JsonFlag, connect, every, print_json, print_table


def impact(
    context: typer.Context,
    grant: Annotated[str | None, typer.Option(help="A grant's id.")] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="policy/rule, policy@version/rule, or a standing rule's id.",
            metavar="RULE",
            autocompletion=rule_ids,
        ),
    ] = None,
    reviewer: Annotated[
        str | None, typer.Option(help="A subject, or a principal with all of its accounts.", metavar="NAME")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List every call that was let run because of one of them, oldest first."""
    if sum(name is not None for name in (grant, rule, reviewer)) != 1:
        raise typer.BadParameter("name exactly one of --grant, --rule and --reviewer")
    with connect(context) as placet:
        calls = every(lambda cursor: placet.impact(grant=grant, rule=rule, reviewer=reviewer, cursor=cursor))
    if as_json:
        print_json([call.raw for call in calls])
        return
    print_table(
        ("execution", "call", "agent", "tool", "status", "decided by", "digest"),
        [
            (
                call.execution_id,
                call.call_id[:12],
                call.agent,
                call.tool,
                call.status,
                call.decision.by if call.decision is not None else "policy",
                call.digest[:12],
            )
            for call in calls
        ],
        "Nothing that ran rested on it.",
    )

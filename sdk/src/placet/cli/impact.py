"""`placet audit impact`: the calls that ran because of a grant, a rule or a person."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli.choices import rule_ids
from placet.cli.lines import print_rows
from placet.cli.session import JsonFlag, connect, every, print_json
from placet.models import ToolCall


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
    """List every call that ran because of a grant, a rule or a person, oldest first."""
    if sum(name is not None for name in (grant, rule, reviewer)) != 1:
        raise typer.BadParameter("name exactly one of --grant, --rule and --reviewer")
    with connect(context) as placet:
        calls = every(lambda cursor: placet.impact(grant=grant, rule=rule, reviewer=reviewer, cursor=cursor))
    if as_json:
        print_json([call.raw for call in calls])
        return
    print_rows(
        ("execution", "call", "agent", "tool", "status", "released by", "digest"),
        [
            (
                call.execution_id,
                call.call_id[:12],
                call.agent,
                call.tool,
                call.status,
                _let_go_by(call),
                call.digest[:12],
            )
            for call in calls
        ],
        "No call that ran was based on it.",
    )


def _let_go_by(call: ToolCall) -> str:
    """What released a call: a person, a remembered approval, or the policy."""
    if call.grant is not None and call.grant.rule_id:
        return f"rule {call.grant.rule_id}"
    released_by = call.grant.raw.get("released_by") if call.grant is not None else None
    if call.decision is not None and released_by != "policy":
        return call.decision.by
    return "policy"

"""`placet rules`: list, activate, suspend and revoke standing rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli import safe
from placet.cli.choices import RULE_STATUSES, completing, one_of, rule_ids
from placet.cli.lines import print_with_texts
from placet.cli.plugins import new_group
from placet.cli.session import JsonFlag, by_prefix, connect, console, every, is_whole, print_json, zoned
from placet.errors import NotAuthorised
from placet.ids import check_id
from placet.models import StandingRule

if TYPE_CHECKING:
    from placet.sync import Placet

app = new_group(
    "rules",
    help="Standing rules: approvals that are remembered for other runs.",
    invoke_without_command=True,
)
RuleId = Annotated[
    str, typer.Argument(help="A rule's id, or the unique beginning of one.", autocompletion=rule_ids)
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for the record.")]


@app.callback()
def rules(
    context: typer.Context,
    status: Annotated[
        str | None,
        typer.Option(
            help="proposed, active, suspended, revoked or refused.",
            callback=one_of(RULE_STATUSES),
            autocompletion=completing(RULE_STATUSES),
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the project's standing rules, the newest first."""
    if context.invoked_subcommand is not None:
        return
    with connect(context) as placet:
        found = every(lambda cursor: placet.standing_rules.list(status=status, cursor=cursor))
    if as_json:
        print_json([dict(rule.raw) for rule in found])
        return
    print_with_texts(
        ("rule", "status", "agent", "tool", "uses", zoned("until"), "by"),
        [
            (
                rule.rule_id,
                rule.status,
                rule.agent,
                rule.tool,
                "" if rule.uses is None else f"{rule.used or 0}/{rule.uses}",
                rule.expires_at,
                rule.made_by,
            )
            for rule in found
        ],
        "arguments",
        # Not shortened: they are what the rule allows.
        [safe.text(json.dumps(rule.arguments, ensure_ascii=False)) for rule in found],
        "There are no standing rules: a person decides every held call.",
    )


@app.command()
def activate(
    context: typer.Context, rule: RuleId, reason: ReasonOption = "", as_json: JsonFlag = False
) -> None:
    """Activate a proposed or suspended rule; the policy can require another person than its maker."""
    with connect(context) as placet:
        changed = placet.standing_rules.activate(_whole(placet, rule), reason)
    _print(changed, as_json)


@app.command()
def suspend(
    context: typer.Context, rule: RuleId, reason: ReasonOption = "", as_json: JsonFlag = False
) -> None:
    """Suspend a rule until a person activates it."""
    with connect(context) as placet:
        changed = placet.standing_rules.suspend(_whole(placet, rule), reason)
    _print(changed, as_json)


@app.command()
def revoke(
    context: typer.Context, rule: RuleId, reason: ReasonOption = "", as_json: JsonFlag = False
) -> None:
    """Revoke a rule for good."""
    with connect(context) as placet:
        changed = placet.standing_rules.revoke(_whole(placet, rule), reason)
    _print(changed, as_json)


def _whole(placet: Placet, prefix: str) -> str:
    """A rule's id by its beginning; a whole id unchanged, since some who can change a rule cannot list rules."""
    if is_whole(check_id(prefix, "rule id")):
        return prefix
    try:
        known = every(lambda cursor: placet.standing_rules.list(cursor=cursor))
    except NotAuthorised as error:
        detail = f"you may not list the standing rules ({error.detail}): give the rule's whole id"
        raise NotAuthorised(error.code, error.status, detail) from error
    return by_prefix(known, prefix, lambda rule: (rule.rule_id,), "standing rule").rule_id


def _print(rule: StandingRule, as_json: bool) -> None:
    if as_json:
        print_json(rule.raw)
    else:
        console().print(safe.text(f"{rule.status}: {rule.tool} for {rule.agent} {rule.rule_id}", lines=True))

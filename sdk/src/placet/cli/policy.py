"""Publishing, reading and retiring policies; the server adds check, test and diff, which need its engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli import backtested, policy_warnings, safe
from placet.cli.lines import print_rows
from placet.cli.plugins import new_group
from placet.cli.policy_name import names_in
from placet.cli.session import (
    JsonFlag,
    column_time,
    confirm,
    connect,
    console,
    every,
    local_time,
    print_json,
    published_line,
    read_text,
    zoned,
)

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")

AllowNamed = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROJECT/EXECUTION/CALL",
        help="With --backtest: a rejected call that may pass; may be repeated.",
    ),
]
AcceptUnjudged = Annotated[
    bool,
    typer.Option(
        "--accept-unjudged", help="With --backtest: publish also if something cannot be read or judged."
    ),
]
HistoryDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --backtest: the directory of the stack that is published to. "
        "By default $PLACET_DATA_DIR or ./.placet.",
    ),
]
HistoryServers = Annotated[
    str | None,
    typer.Option(
        metavar="HOSTS",
        help="With --backtest: the Kafka servers of the stack that is published to. By default the stack's.",
    ),
]

app = new_group("policy", help="Check, test, compare, publish and retire policies.", no_args_is_help=True)


@app.callback()
def policy() -> None:
    """Check, test, compare, publish and retire policies."""


@app.command()
def publish(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)],
    verbose: Annotated[bool, typer.Option("--verbose", help="Show each warning.")] = False,
    backtest: Annotated[
        bool,
        typer.Option(
            "--backtest",
            help="First replay history; publish only if no call that people rejected would pass.",
        ),
    ] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --backtest: the verdicts from this time on.")
    ] = None,
    allow_named: AllowNamed = None,
    accept_unjudged: AcceptUnjudged = False,
    data_dir: HistoryDir = None,
    bootstrap_servers: HistoryServers = None,
    as_json: JsonFlag = False,
) -> None:
    """Publish a policy document (YAML or JSON) as its next version; with --backtest after a replay of history.

    The history is that of --data-dir or --bootstrap-servers, and the policy is published to the server of the
    session: name the same installation for both, since this is not compared.
    """
    asked = backtested.Asked(since, tuple(allow_named or ()), data_dir, bootstrap_servers, accept_unjudged)
    document = read_text(file, "FILE")
    name = _name_in(document, file)
    if backtest:
        backtested.check(context, file, asked, as_json=as_json)
        if read_text(file, "FILE") != document:
            raise typer.BadParameter(f"{file} has changed during the backtest", param_hint="FILE")
    elif asked != backtested.Asked():
        raise typer.BadParameter("they belong to --backtest", param_hint="the options of a backtest")
    with connect(context) as placet:
        published = placet.policies.publish(name, document)
    if as_json:
        print_json(published.raw)
        return
    console().print(safe.text(published_line(name, published)))
    for line in policy_warnings.lines(published.warnings, verbose=verbose):
        console().print(safe.text(f"! {line}", style="yellow"))
    if not backtest:
        backtested.hint()


def _name_in(document: str, file: Path) -> str:
    """The name under which a document is published.

    Raises:
        typer.BadParameter: it has none, several, or an invalid one.
    """
    names = names_in(document)
    if not names:
        raise typer.BadParameter(f"{file} has no line `policy: NAME`", param_hint="FILE")
    if len(names) > 1:
        said = f"{file} says `policy: …` {len(names)} times: a document has one name"
        raise typer.BadParameter(said, param_hint="FILE")
    if _NAME.fullmatch(names[0]) is None:
        shown = safe.escaped(names[0])[:80]
        said = f"{file}: `policy: {shown}` is not a name of a policy: a name is 1 to 128 of A-Za-z0-9._:-"
        raise typer.BadParameter(said, param_hint="FILE")
    return names[0]


@app.command()
def versions(context: typer.Context, name: str, as_json: JsonFlag = False) -> None:
    """List the published versions of a policy."""
    with connect(context) as placet:
        found = every(lambda cursor: placet.policies.versions(name, cursor=cursor))
    if as_json:
        print_json([dict(one) for one in found])
        return
    print_rows(
        ("version", zoned("published"), "by"),
        [
            (one.get("version"), column_time(one.get("published_at")), one.get("published_by"))
            for one in found
        ],
        f"No policy {name} is published.",
    )


@app.command("list")
def list_policies(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also retired policies.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the policies in force: owner, scope and number of rules."""
    with connect(context) as placet:
        status = "all" if everything else None
        found = every(lambda cursor: placet.policies.list(status, cursor=cursor))
    if as_json:
        print_json([dict(one) for one in found])
        return
    print_rows(
        ("policy", "version", "project", "for", "rules", zoned("published"), "by", "retired"),
        [_row(one) for one in found],
        "No policy is in force: every call is held.",
    )


@app.command()
def show(
    context: typer.Context,
    name: str,
    version: Annotated[int | None, typer.Option(min=1, help="The version. Default: the newest.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a policy's document as it was published, and whether it is in force."""
    with connect(context) as placet:
        found = placet.policies.get(name, version)
    if as_json:
        print_json(dict(found))
        return
    console().print(safe.text(_heading(found)))
    console().print(
        safe.text(json.dumps(found.get("document"), indent=2, ensure_ascii=False), lines=True), soft_wrap=True
    )


@app.command()
def retire(
    context: typer.Context,
    name: str,
    reason: Annotated[str, typer.Option(help="The reason, for the log.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Retire a policy; its calls are judged by the next policy that matches, or held."""
    with connect(context) as placet:
        found = placet.policies.get(name)
        console(stderr=True).print(safe.text(_heading(found)))
        confirm(f"Retire {safe.escaped(name)}?", yes)
        # Exactly the version that was shown: one that is published meanwhile stays.
        retired = placet.policies.retire(name, version=found["version"], reason=reason)
    if as_json:
        print_json(dict(retired))
        return
    console().print(safe.text(f"{name} version {retired.get('version')} is no longer in force"))
    if retired.get("pending"):
        console(stderr=True).print(safe.text("! some partitions still use it: check again", style="yellow"))


def _row(policy: Mapping[str, Any]) -> tuple[Any, ...]:
    document = policy.get("document") or {}
    scope = {name: pattern for name, pattern in document.get("scope", {}).items() if pattern != "*"}
    whom = ", ".join(f"{name} {pattern}" for name, pattern in scope.items())
    ended = _at_by(policy, "retired") if policy.get("retired_at") else ""
    by = (local_time(policy.get("published_at")), policy.get("published_by"))
    rules = len(document.get("rules", ()))
    return (
        policy.get("name"),
        policy.get("version"),
        policy.get("project"),
        whom or "everybody",
        rules,
        *by,
        ended,
    )


def _heading(policy: Mapping[str, Any]) -> str:
    who = f"published {_at_by(policy, 'published')}"
    project = "the whole tenant" if policy.get("project") == "*" else f"the project {policy.get('project')}"
    said = f"{policy.get('name')} version {policy.get('version')} for {project}, {who}"
    if not policy.get("retired_at"):
        return said
    why = f": {policy['retired_reason']}" if policy.get("retired_reason") else ""
    return f"{said}; retired {_at_by(policy, 'retired')}{why}"


def _at_by(policy: Mapping[str, Any], deed: str) -> str:
    return f"{local_time(policy.get(f'{deed}_at'))} by {policy.get(f'{deed}_by')}"

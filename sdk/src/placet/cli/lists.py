"""`placet tools`, `components` and `audit`: published tools, running processes, audit entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from placet.cli import safe
from placet.cli.choices import a_time
from placet.cli.lines import begun, print_rows, print_with_texts
from placet.cli.plugins import new_group
from placet.cli.session import JsonFlag, connect, every, in_project, print_json, zoned
from placet.models import AuditRow

# The code of a request that had been carried out already: nothing was refused to anybody.
REPEATED = "duplicate"
# `placet show EXECUTION/CALL` takes as much of a call's id, and `placet approve --digest` of a digest.
SHORT_ID = 12
# What happened, with its code and result, stands before the ids where a row takes two lines.
NARROW_ORDER = (0, 1, 2, 7, 6, 3, 4, 5)

tools_app = new_group(
    "tools", help="List published tools; start one from its config.json.", invoke_without_command=True
)
audit_app = new_group("audit", help="Who did what, when.", invoke_without_command=True)


@tools_app.callback()
def tools(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List published tools; start one from its config.json."""
    if context.invoked_subcommand is not None:
        return
    with connect(context) as placet:
        found = every(lambda cursor: placet.tools.list(cursor=cursor))
    if as_json:
        print_json([one.raw for one in found])
        return
    print_with_texts(
        ("tool", "version", "project", "idempotent", "annotations"),
        [
            (
                one.name,
                one.version,
                one.raw.get("project"),
                "yes" if one.idempotent else "",
                _annotations(one.annotations),
            )
            for one in found
        ],
        "description",
        [safe.text(begun(one.description)) for one in found],
        "No tools are published.",
    )


def _annotations(annotations: Mapping[str, Any]) -> str:
    """A tool's hints: the true ones by name, the false ones with `not`."""
    return ", ".join(_annotation(name, value) for name, value in annotations.items())


def _annotation(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def components(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the processes of the installation and their state."""
    with connect(context) as placet:
        found = placet.components()
    if as_json:
        print_json([one.raw for one in found])
        return
    print_rows(
        ("component", "state", "address"),
        [(one.name, one.state, one.raw.get("address")) for one in found],
        "No components are known.",
    )


@audit_app.callback()
def audit(
    context: typer.Context,
    subject: Annotated[str | None, typer.Option(help="Only this subject's acts.")] = None,
    since: Annotated[
        str | None, typer.Option(help="From this time (RFC 3339, 24h, 7d) on.", callback=a_time)
    ] = None,
    no_repeats: Annotated[
        bool,
        typer.Option(
            "--no-repeats",
            help=f"Leave out refusals with the code {REPEATED}: requests that came again, which changed nothing.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List who did what, when."""
    if context.invoked_subcommand is not None:
        return
    with connect(context) as placet:
        rows = every(lambda cursor: placet.audit(subject=subject, since=since, cursor=cursor))
    if no_repeats:
        rows = [row for row in rows if _code_of(row) != REPEATED]
    if as_json:
        print_json([row.raw for row in rows])
        return
    print_rows(
        (zoned("at"), "subject", "action", "execution", "call", "digest", "result", "code"),
        [_cells(row) for row in rows],
        f"No actions were found{in_project(context)}.",
        NARROW_ORDER,
    )


def _cells(row: AuditRow) -> tuple[object, ...]:
    result = row.result.get("status") if isinstance(row.result, dict) else row.result
    ids = (row.execution_id, row.call_id[:SHORT_ID], row.digest[:SHORT_ID])
    return (row.at, row.subject, row.action, *ids, result, _code_of(row))


def _code_of(row: AuditRow) -> str:
    """The code of a refusal; empty for every other act."""
    # What is after an edit are an agent's arguments, which can have any name.
    is_refusal = row.action.endswith("_refused") and isinstance(row.after, Mapping)
    code = row.after.get("code") if is_refusal else None
    return code if isinstance(code, str) else ""

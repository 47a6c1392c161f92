"""`placet vault keys`, `destroy-key` and `erase`; the server adds `rotate-master`, which needs its files."""

from __future__ import annotations

from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.lines import print_rows
from placet.cli.plugins import new_group
from placet.cli.session import (
    JsonFlag,
    column_time,
    confirm,
    connect,
    console,
    print_json,
    split_call,
    zoned,
)
from placet.ids import check_id

ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is recorded.")]
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

app = new_group(
    "vault",
    help="Erase sensitive values, and manage the keys that seal them.",
    no_args_is_help=True,
)


@app.callback()
def vault() -> None:
    """Erase sensitive values, and manage the keys that seal them."""


@app.command()
def keys(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the tenant's data keys; the last one seals new values."""
    with connect(context) as placet:
        found = placet.vault.keys().items
    if as_json:
        print_json([dict(one) for one in found])
        return
    rows = [
        (str(one["name"]), column_time(one["made_at"]), column_time(one["destroyed_at"])) for one in found
    ]
    print_rows(("key", zoned("made"), "destroyed"), rows, "nothing was sealed yet")


@app.command("destroy-key")
def destroy_key(
    context: typer.Context,
    name: str,
    reason: ReasonOption = "",
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Destroy a data key, which erases everything sealed under it, in every copy of the vault."""
    check_id(name, "key")
    confirm(f"Erase everything that was sealed under {safe.escaped(name)}, for good?", yes)
    with connect(context) as placet:
        found = placet.vault.destroy_key(name, reason=reason)
    _say(dict(found), f"{name} is destroyed", as_json)


@app.command()
def erase(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="EXECUTION/CALL or REQUEST")],  # noqa: A002
    execution: Annotated[
        str,
        typer.Option("--execution", help="The request's execution, if several have a request of this id."),
    ] = "",
    reason: ReasonOption = "",
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Erase the sensitive values of a call or of a request; their commitments stay in the log."""
    call = split_call(id)
    if call is not None and execution:
        raise typer.BadParameter(
            "it is for a REQUEST: EXECUTION/CALL already names one", param_hint="--execution"
        )
    if call is None:
        check_id(id, "request id")
    confirm(f"Erase the sensitive values of {safe.escaped(id)}, for good?", yes)
    with connect(context) as placet:
        if call is None:
            found = placet.vault.erase_request(id, execution_id=execution or None, reason=reason)
        else:
            found = placet.vault.erase_call(*call, reason=reason)
    _say(dict(found), f"erased {found['erased']} values of {id}", as_json)


def _say(found: dict[str, object], words: str, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        console().print(safe.text(words))

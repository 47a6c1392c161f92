"""Commands on one call, which is named as `placet show` names it: EXECUTION/CALL, or both ids apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from placet.cli.choices import call_ids, execution_ids
from placet.cli.session import find_call, split_call
from placet.errors import NotFound

if TYPE_CHECKING:
    from placet.sync import Placet

T = TypeVar("T")
HINT = "EXECUTION"
ExecutionOfCall = Annotated[
    str,
    typer.Argument(metavar=HINT, help="The execution's id, or EXECUTION/CALL.", autocompletion=execution_ids),
]
CallArgument = Annotated[
    str | None,
    typer.Argument(metavar="CALL", help="The call's id, if it is not named before.", autocompletion=call_ids),
]


def ids_of(execution: str, call: str | None) -> tuple[str, str]:
    """The two ids of a call, or their beginnings.

    Raises:
        typer.BadParameter: one of them is missing.
    """
    if call is not None:
        return execution, call
    if (found := split_call(execution, HINT)) is None:
        raise typer.BadParameter("name the call, too: EXECUTION/CALL", param_hint="CALL")
    return found


def on_call(placet: Placet, ids: tuple[str, str], act: Callable[[str, str], T]) -> T:
    """What `act` gives for a call; if there is none by these ids, for the one whose ids begin so.

    Raises:
        NotFound: there is none.
        Ambiguous: several begin so.
    """
    try:
        return act(*ids)
    except NotFound:
        found = find_call(placet, *ids)
        if (found.execution_id, found.call_id) == ids:
            raise
        return act(found.execution_id, found.call_id)

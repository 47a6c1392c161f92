"""Commands on one call, which is named as for `placet show`: EXECUTION/CALL, both ids apart, or a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from placet.cli.choices import call_ids, execution_ids
from placet.cli.log_places import Place, call_at, place_in
from placet.cli.session import find_call, split_call
from placet.errors import NotFound

if TYPE_CHECKING:
    from placet.sync import Placet

T = TypeVar("T")
HINT = "EXECUTION"
ExecutionOfCall = Annotated[
    str,
    typer.Argument(
        metavar=HINT,
        help="The execution's id, EXECUTION/CALL, or a place in the log, PARTITION@OFFSET.",
        autocompletion=execution_ids,
    ),
]
CallArgument = Annotated[
    str | None,
    typer.Argument(metavar="CALL", help="The call's id, if it is not named before.", autocompletion=call_ids),
]


def ids_of(execution: str, call: str | None) -> tuple[str, str] | Place:
    """The two ids of a call, or their beginnings; or the place of an event about it.

    Raises:
        typer.BadParameter: one of the ids is missing, or the place is none.
    """
    if (place := place_in(execution, HINT)) is not None:
        if call is not None:
            raise typer.BadParameter(f"{place} already names a call: leave this out", param_hint="CALL")
        return place
    if call is not None:
        return execution, call
    if (found := split_call(execution, HINT)) is None:
        raise typer.BadParameter("name the call, too: EXECUTION/CALL", param_hint="CALL")
    return found


def on_call(placet: Placet, named: tuple[str, str] | Place, act: Callable[[str, str], T]) -> T:
    """What `act` gives for a call; if there is none by these ids, for the one whose ids begin so.

    Raises:
        NotFound: there is none.
        Ambiguous: several begin so.
    """
    if isinstance(named, Place):
        found = call_at(placet, named)
        return act(found.execution_id, found.call_id)
    try:
        return act(*named)
    except NotFound:
        found = find_call(placet, *named)
        if (found.execution_id, found.call_id) == named:
            raise
        return act(found.execution_id, found.call_id)

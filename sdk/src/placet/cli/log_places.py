"""A place in the log, `PARTITION@OFFSET`: the name of an event, and by it of the call that the event is about."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import typer

from placet.cli import safe
from placet.errors import NotFound
from placet.ids import InvalidId

if TYPE_CHECKING:
    from placet.models import Hold, Object, ToolCall
    from placet.sync import Placet

# As many digits as the gateway takes.
_PLACE = re.compile(r"([0-9]{1,10})@([0-9]{1,16})")
NAMED_SO = (
    "a place in the log is PARTITION@OFFSET, two whole numbers, such as 2@16 "
    "(placet trust explain AGENT TOOL lists places)"
)


class Place(NamedTuple):
    """A place in the log."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}@{self.offset}"


class Named(NamedTuple):
    """What the event at a place is about, by its ids; empty if it is about no such thing.

    `subject_id` is the id of a call, a hold or a request: a refused command does not say of which.
    """

    event_type: str
    at: str
    execution_id: str
    call_id: str
    hold_id: str
    request_id: str
    subject_id: str


def place_in(text: str, hint: str = "ID") -> Place | None:
    """The place that an argument names; None for an id, which has no `@`.

    Raises:
        typer.BadParameter: it has an `@`, and is no place.
    """
    if "@" not in text:
        return None
    if (found := _PLACE.fullmatch(text)) is None:
        raise typer.BadParameter(f"{safe.escaped(text)[:80]}: {NAMED_SO}", param_hint=hint)
    return Place(int(found[1]), int(found[2]))


def named_at(placet: Placet, place: Place) -> Named:
    """What the event at a place is about.

    Raises:
        NotFound: the project has no event there.
        Refused: `invalid`, a number is too large.
    """
    event: Object = placet.fetch(f"/events/{place.partition}/{place.offset}")
    data = event.get("data") or {}
    call_id, hold_id, request_id, subject_id = (
        str(data.get(name) or "") for name in ("call_id", "hold_id", "request_id", "subject_id")
    )
    # A use of a standing rule is an event of the rule, and names the execution that used it.
    execution_id = str(data.get("execution_id") or event["execution_id"])
    return Named(str(event["type"]), str(event["at"]), execution_id, call_id, hold_id, request_id, subject_id)


def call_at(placet: Placet, place: Place) -> ToolCall:
    """The call that the event at a place is about, also by its hold.

    Raises:
        NotFound: there is no event, or it is about no call.
    """
    named = named_at(placet, place)
    if (found := call_of(placet, named)) is None:
        raise about_none(place, named, "call")
    return found


def hold_at(placet: Placet, place: Place) -> Hold:
    """The hold that the event at a place is about, or the last one of its call.

    Raises:
        NotFound: there is no event, or it is about no hold.
    """
    named = named_at(placet, place)
    if (found := hold_of(placet, named)) is None:
        raise about_none(place, named, "hold")
    return found


def call_of(placet: Placet, named: Named) -> ToolCall | None:
    """The call that an event is about, also by its hold; None if it is about none."""
    if named.call_id:
        return placet.call(named.execution_id, named.call_id)
    if named.hold_id:
        hold = placet.holds.get(named.hold_id)
        return placet.call(hold.execution_id, hold.call_id) if hold.call_id else None
    if named.subject_id:
        with suppress(NotFound, InvalidId):
            return placet.call(named.execution_id, named.subject_id)
    return None


def hold_of(placet: Placet, named: Named) -> Hold | None:
    """The hold that an event is about, or the last one of its call; None if it is about none."""
    hold_id = named.hold_id
    if not hold_id and named.request_id:
        hold_id = placet.requests.get(named.request_id, execution_id=named.execution_id).hold_id
    if not hold_id and named.subject_id:
        with suppress(NotFound, InvalidId):
            return placet.holds.get(named.subject_id)
    if not hold_id and (call := call_of(placet, named)) is not None:
        hold_id = call.hold_id
    return placet.holds.get(hold_id) if hold_id else None


def about_none(place: Place, named: Named, what: str) -> NotFound:
    """The refusal of a place whose event is about no call or hold."""
    detail = f"the event at {place}, {named.event_type} of {named.execution_id}, is about no {what}"
    return NotFound("not_found", 404, f"{detail}: placet show {place} shows what it is about")

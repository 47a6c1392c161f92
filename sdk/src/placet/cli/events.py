"""`placet events`: past events, and with --follow new ones; a line for each, and at a terminal its fields below."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.choices import OF_NO_EXECUTION, event_types, event_types_completed, execution_ids
from placet.cli.rows import rows_of
from placet.cli.session import JsonFlag, connect, console, every, find_execution, print_json
from placet.cli.telling import MARGIN, ROW_MIN
from placet.cli.times import FORMS, typed_time
from placet.errors import NotAuthorised, NotFound, Refused
from placet.models import Object
from placet.parsing import parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from placet.sync import Placet

# As many digits as an offset can have.
_OFFSETS = re.compile(r"\d{1,19}=\d{1,19}(,\d{1,19}=\d{1,19})*", re.ASCII)
_DAWN = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Start:
    """The start: a time, offsets by partition, or the live stream's cursor."""

    at: datetime = _DAWN
    offsets: dict[int, int] = field(default_factory=dict)
    cursor: str | None = None

    def reached_by(self, row: Object) -> bool:
        """Returns True if an event is not before the start."""
        partition = row.get("partition")
        if self.offsets and isinstance(partition, int):
            return int(row.get("offset", -1)) >= self.offsets.get(partition, 0)
        return moment(row) >= self.at


def read_start(text: str | None) -> Start:
    """The parsed `--from`: `PARTITION=OFFSET,…`, an RFC 3339 time, or a cursor."""
    if text is None:
        return Start()
    if _OFFSETS.fullmatch(text):
        return Start(offsets=_offsets(text))
    try:
        return Start(at=parse_time(typed_time(text)))
    except (ValueError, OverflowError):
        if re.match(r"\d{4}-\d\d-\d\d", text):
            raise typer.BadParameter(f"{text} is not {FORMS}", param_hint="--from") from None
        return Start(cursor=text)


def _offsets(text: str) -> dict[int, int]:
    """The offset of each partition in `PARTITION=OFFSET,…`.

    Raises:
        typer.BadParameter: one partition is named twice.
    """
    found: dict[int, int] = {}
    for pair in text.split(","):
        partition, offset = map(int, pair.split("="))
        if partition in found:
            raise typer.BadParameter(f"partition {partition} is named twice", param_hint="--from")
        found[partition] = offset
    return found


def check_partitions(placet: Placet, offsets: Mapping[int, int]) -> None:
    """Refuse a partition that does not exist: all events of the others would be shown, as without the option.

    With a token that may not read the project their number is unknown, and nothing is refused.

    Raises:
        typer.BadParameter: there are fewer partitions.
    """
    try:
        counts = [part.raw.get("partitions") for part in placet.components()]
    except NotAuthorised:
        return
    for count in counts:
        if isinstance(count, int) and max(offsets) >= count:
            there = "only partition 0" if count == 1 else f"{count} partitions, 0 to {count - 1}"
            raise typer.BadParameter(
                f"there is no partition {max(offsets)}: the log has {there}", param_hint="--from"
            )


def check_type(placet: Placet, kind: str) -> None:
    """Refuse an event type that does not exist: nothing would be shown, as if nothing had happened.

    If a proxy forwards only `/v1`, the names are unknown and none is refused.

    Raises:
        typer.BadParameter: the gateway has no such type.
    """
    try:
        known = event_types(placet)
    except NotFound:
        return
    if kind not in known:
        of = "an event of the definitions or of the log, which `placet events` does not show; choose"
        said = of if kind in OF_NO_EXECUTION else "not"
        raise typer.BadParameter(f"{kind!r} is {said} one of {', '.join(known)}", param_hint="--type")


def events(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep running and show new events.")] = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="OFFSETS|TIME", help="0=120,3=7, a time (RFC 3339), 24h ago, or a cursor."
        ),
    ] = None,
    execution: Annotated[
        str | None, typer.Option(help="Only events of this execution.", autocompletion=execution_ids)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="Only events of this type, such as DecisionRecorded.",
            autocompletion=event_types_completed,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show past events. With --follow show new ones, from now or from --from on."""
    begin = read_start(start)
    with connect(context) as placet:
        if begin.offsets:
            check_partitions(placet, begin.offsets)
        if kind is not None:
            check_type(placet, kind)
        only = None if execution is None else find_execution(placet, execution).execution_id
        shown: set[str] = set()
        cursor = begin.cursor
        if cursor is None and (start is not None or not follow):
            # The stream starts from before the past was read, so that no event is missed in between.
            cursor = placet.executions.list(limit=1).cursor
            for row in past(placet, only, begin):
                shown.add(str(row.get("event_id")))
                _print(row, kind, as_json)
        if follow or begin.cursor is not None:
            for row in _coming_from(placet, only, cursor, start if begin.cursor is not None else None):
                if str(row.get("event_id")) not in shown:
                    _print(row, kind, as_json)


def past(placet: Placet, execution_id: str | None, start: Start) -> list[Object]:
    """The events of one execution or of all, from a time on, in the order of time."""
    if execution_id is not None:
        ids = [execution_id]
    else:
        known = every(lambda cursor: placet.executions.list(cursor=cursor))
        ids = [one.execution_id for one in known if moment(one.raw, "updated_at", start.at) >= start.at]
    rows = [row for one in ids for row in _of_execution(placet, one) if start.reached_by(row)]
    return sorted(rows, key=lambda row: (moment(row), row.get("partition", 0), row.get("offset", 0)))


def coming(placet: Placet, execution_id: str | None, cursor: str | None) -> Iterator[Object]:
    """The events from a cursor on, as they come."""
    with closing(placet.events(cursor=cursor)) as stream:
        for event in stream:
            if event.type == "resync_required":
                console(stderr=True).print(safe.text("some events were missed: read them with --from"))
            elif event.type == "event" and execution_id in (None, execution_of(event.body)):
                yield event.body


def _coming_from(
    placet: Placet, execution_id: str | None, cursor: str | None, said: str | None
) -> Iterator[Object]:
    """As `coming`; `said` is the cursor given with --from."""
    try:
        yield from coming(placet, execution_id, cursor)
    except Refused as refused:
        if said is None or refused.code != "invalid":
            raise
        detail = "neither offsets (0=120,3=7), a time (RFC 3339), nor a cursor of this installation's events"
        raise typer.BadParameter(f"{safe.escaped(said)[:80]} is {detail}", param_hint="--from") from refused


def execution_of(row: Object) -> str:
    """The execution that an event belongs to."""
    return str(row.get("execution_id", ""))


def type_of(row: Object) -> str:
    """An event's type: `type` in a list, `event_type` on the stream, where `type` names the message."""
    return str(row.get("event_type") or row.get("type") or "")


def moment(row: Object, name: str = "at", default: datetime = _DAWN) -> datetime:
    """The time of an event."""
    said = row.get(name)
    return parse_time(said) if isinstance(said, str) else default


def _of_execution(placet: Placet, execution_id: str) -> list[Object]:
    return every(lambda cursor: placet.executions.events(execution_id, cursor=cursor))


def _print(row: Object, kind: str | None, as_json: bool) -> None:
    if kind is not None and type_of(row) != kind:
        return
    if as_json:
        print_json(dict(row))
        return
    body = row.get("data")
    told = {name: value for name, value in dict(body or {}).items() if value not in (None, "", [])}
    screen = console()
    if screen.is_terminal:
        _print_fields(screen, row, told)
        return
    head = f"{row.get('at', ''):<27} {type_of(row):<22} {execution_of(row)}"
    screen.print(safe.text(f"{head} {json.dumps(told, ensure_ascii=False)}"), soft_wrap=True)


def _print_fields(screen: Console, row: Object, told: Mapping[str, Any]) -> None:
    """An event at a terminal: its time, type and subject, and its fields below."""
    by = told.get("by")
    subject = by if isinstance(by, str) else ""
    head = "  ".join(filter(None, (str(row.get("at", "")), type_of(row), subject)))
    fields = {"execution": execution_of(row), **told}
    if subject:
        del fields["by"]
    deepest = screen.width // 2
    lines = [
        line for name, value in fields.items() for line in _field_lines(name, _read(value), MARGIN, deepest)
    ]
    for margin, text in [("", head), *lines]:
        _print_broken(screen, margin, text)


def _print_broken(screen: Console, margin: str, text: str) -> None:
    """Print a line, broken between words and only there if they fit; its further rows are further in."""
    width = max(screen.width - len(margin) - len(MARGIN), ROW_MIN)
    first, *rest = rows_of(safe.escaped(text), width, at_words=True)
    for row in (first, *(MARGIN + row for row in rest)):
        screen.print(margin + row, soft_wrap=True)


def _field_lines(name: str, value: Any, margin: str, deepest: int) -> list[tuple[str, str]]:
    """The lines of a field, each with its margin: what an object or a list contains is below it and further in.

    From a margin of `deepest` columns on it is JSON on one line.
    """
    within = _items_of(value) if len(margin) < deepest else ()
    head = name if name == "-" else f"{name}:"
    if not within:
        said = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
        return [(margin, f"{head} {said}")]
    inner = [line for one in within for line in _field_lines(*one, margin + MARGIN, deepest)]
    return [(margin, head), *inner]


def _items_of(value: Any) -> Sequence[tuple[str, Any]]:
    """What an object or a list contains, each item with its name; nothing for other values."""
    if isinstance(value, Mapping):
        return list(value.items())
    return [("-", one) for one in value] if isinstance(value, list) else ()


def _read(value: Any) -> Any:
    """The object or list that a text of the log contains as JSON; everything else as it is."""
    if not (isinstance(value, str) and value[:1] in ("{", "[")):
        return value
    try:
        return parse_strict(value)
    except MalformedJson:
        return value

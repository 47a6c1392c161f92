"""Shared by all commands: the gateway, printing as table or JSON, and ids by their beginning."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.log_places import hold_at, named_at, place_in
from placet.cli.prompting import agrees
from placet.errors import NotFound, PlacetError
from placet.ids import InvalidId, check_id
from placet.parsing import parse_time

# What a command needs is imported once it runs: its help and its completion must come at once.
if TYPE_CHECKING:
    from rich.text import Text

    from placet.cli.screens import Screen
    from placet.models import Execution, Hold, Page, Published, ToolCall
    from placet.sync import Placet

T = TypeVar("T")
# A person is waiting: report soon that the gateway does not answer.
PATIENCE_S = 5.0
# Longer than a gateway waits for the decider or, for its turn at the views, up to 13 s.
ANSWER_PATIENCE_S = 20.0
LISTED_MAX = 5
OTHER_IDS = " (of an execution: placet state EXECUTION; of a call: placet show EXECUTION/CALL)"
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class Ambiguous(PlacetError):
    """The beginning of an id fits more than one."""


@dataclass(frozen=True)
class Settings:
    """The options before the command."""

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    project: str | None = None


def connect(
    context: typer.Context, within_s: float = PATIENCE_S, answer_s: float = ANSWER_PATIENCE_S
) -> Placet:
    """A client by the options, the environment, or `.placet/` here.

    Args:
        context: of the command.
        within_s: after this long without a connection it gives up.
        answer_s: after this long without an answer to a sent request it gives up.
    """
    # httpx also imports its own command, which takes longer than httpx and is not used here.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    from placet.sync import Placet
    from placet.transport.port import Patience

    settings = context.find_object(Settings) or Settings()
    patience = Patience(request_s=within_s, open_s=within_s, answer_s=answer_s)
    return Placet(
        settings.url, token=settings.token, transport="auto", patience=patience, project=settings.project
    )


def console(*, stderr: bool = False) -> Screen:
    """A console; see `Screen` for its width where the output is no terminal."""
    from placet.cli.screens import Screen

    return Screen(stderr=stderr)


def print_line(text: Text) -> None:
    """Print a sentence or a heading; on one line, for programs, if nothing says how wide the output is."""
    screen = console()
    screen.print(text, soft_wrap=screen.is_unbounded)


def print_json(value: Any) -> None:
    """Print a JSON value and flush; ASCII only, so that it cannot control a terminal."""
    print(json.dumps(value, default=dict), flush=True)


def print_pretty(value: Any) -> None:
    """Print a JSON value for a person; not wrapped, since a line break inside a text is not JSON."""
    console().print(safe.text(safe.pretty_json(value), lines=True), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Print a table as wide as it is, or say that there is nothing; `lines.print_rows` fits one to a narrow terminal.

    Args:
        columns: their heads.
        rows: cells; a text of rich's stays as it is, a time is shown as `local_time` shows it.
        empty: the text if there are no rows.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    count = 0
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else safe.text(told(cell)) for cell in row))
        count += 1
    if count:
        console().print(table)
    else:
        console(stderr=True).print(empty)


def told(cell: Any) -> Any:
    """A cell as it is shown: a time for people, in the zone that its column's head names; nothing for None."""
    if isinstance(cell, datetime):
        return column_time(cell)
    return "" if cell is None else cell


def local_time(at: datetime | str | None) -> str:
    """A moment for people, to the second, as the terminal's clock showed it then; "" for none."""
    return _to_the_second(at, None)


def column_time(at: datetime | str | None) -> str:
    """A moment in a column whose head names the zone (`zoned`); "" for none."""
    return _to_the_second(at, _zone())


def _to_the_second(at: datetime | str | None, zone: tzinfo | None) -> str:
    if not at:
        return ""
    moment = parse_time(at) if isinstance(at, str) else at
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def zoned(head: str) -> str:
    """The head of a column of times, with the time zone of all of them: an offset, such as `UTC+02:00`."""
    return f"{head} ({_zone()})"


def _zone() -> tzinfo:
    # The offset of now for all times, since one head stands for times before and after a change of the clocks.
    return timezone(datetime.now().astimezone().utcoffset() or timedelta())


def clock(at: datetime, now: datetime) -> str:
    """A moment for people as the time of day, with the date if it is not today."""
    local, today = at.astimezone(_zone()), now.astimezone(_zone())
    return local.strftime("%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M:%S")


def in_project(context: typer.Context) -> str:
    """` in project NAME` for a list without items, if an option or the environment names the project."""
    from placet.transport.bearer import named_project

    settings = context.find_object(Settings) or Settings()
    name = named_project(settings.project)
    return f" in project {safe.escaped(name)}" if name else ""


def published_line(name: str, published: Published) -> str:
    """The result of publishing a definition."""
    said = "says the same already: nothing was published" if published.unchanged else "is published"
    return f"{name} version {published.version} {said}"


def every(page_at: Callable[[str | None], Page[T]]) -> list[T]:
    """All items of a list, page after page."""
    found: list[T] = []
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        found.extend(page.items)
        # A page may be empty and not the last: the caller may be allowed to see only later ones.
        if page.next_cursor in (None, cursor):
            return found
        cursor = page.next_cursor


def by_prefix(
    items: Iterable[T],
    prefix: str,
    ids: Callable[[T], Sequence[str]],
    what: str,
    otherwise: str = "",
    several: str = "",
) -> T:
    """The one item with an id that begins with `prefix`; a complete id always wins.

    Args:
        items: to choose from.
        prefix: what was given.
        ids: the ids by which an item can be named.
        what: the noun for one item.
        otherwise: the end of the message if none matches.
        several: the plural, if it is not `what` with an `s`.

    Raises:
        NotFound: no item matches.
        Ambiguous: several match.
        InvalidId: no id can begin with it.
    """
    check_id(prefix, f"the id of a {what}")
    fits = [item for item in items if any(one.startswith(prefix) for one in ids(item))]
    exact = [item for item in fits if prefix in ids(item)]
    chosen = exact or fits
    if not chosen:
        raise NotFound("not_found", 404, f"no {what} begins with {safe.escaped(prefix)}{otherwise}")
    if len(chosen) > 1:
        # Of several with one name, the first id of each, which no other has.
        listed = ", ".join(
            ids(item)[0] if exact else next(one for one in ids(item) if one.startswith(prefix))
            for item in chosen[:LISTED_MAX]
        )
        more = " …" if len(chosen) > LISTED_MAX else ""
        fit = f"{len(chosen)} {several or f'{what}s'} ({listed}{more})"
        then = "give one of these" if exact else "give more characters"
        raise Ambiguous(f"{safe.escaped(prefix)} matches {fit}: {then}")
    return chosen[0]


def find_hold(placet: Placet, id_or_prefix: str) -> Hold:
    """A hold by the beginning of its id; an open hold also by that of its call's or request's id.

    The hold of a closed question is found by the question's whole id as well; any hold by a place of the log
    that has an event about it or its call.
    """
    if (place := place_in(id_or_prefix)) is not None:
        return hold_at(placet, place)
    # A whole id first: the lists of ended holds may be a moment behind.
    with suppress(NotFound):
        return placet.holds.get(id_or_prefix)
    holds = every(lambda cursor: placet.holds.list(status="open", cursor=cursor))
    with suppress(NotFound):
        return placet.holds.get(by_prefix(holds, id_or_prefix, hold_ids, "open hold").hold_id)
    with suppress(NotFound):
        return placet.holds.get(placet.requests.get(id_or_prefix).hold_id)
    ended = placet.holds.list(status=None, prefix=id_or_prefix).items
    found = by_prefix(ended, id_or_prefix, lambda hold: (hold.hold_id,), "hold", OTHER_IDS)
    return placet.holds.get(found.hold_id)


def split_call(text: str, hint: str = "ID") -> tuple[str, str] | None:
    """The two ids in `EXECUTION/CALL`; None of a text without a slash.

    Raises:
        typer.BadParameter: one of them is neither an id nor the beginning of one.
    """
    execution_id, slash, call_id = text.partition("/")
    if not slash:
        return None
    try:
        return check_id(execution_id, "execution id"), check_id(call_id, "call id")
    except InvalidId as error:
        said = (
            f"a call is named by EXECUTION/CALL, two ids with one slash between: {safe.escaped(str(error))}"
        )
        raise typer.BadParameter(said, param_hint=hint) from error


def find_call(placet: Placet, execution_id: str, call_id: str) -> ToolCall:
    """A call by the ids of its execution and itself, or by their beginnings."""
    execution = find_execution(placet, execution_id)
    calls = every(lambda cursor: placet.executions.calls(execution.execution_id, cursor=cursor))
    what, several = "call of this execution", "calls of this execution"
    found = by_prefix(calls, call_id, lambda call: (call.call_id,), what, several=several)
    return placet.call(found.execution_id, found.call_id)


def find_execution(placet: Placet, id_or_prefix: str, at: str | None = None) -> Execution:
    """An execution by its id, by the unique beginning of one, or by a place of the log that has an event of it."""
    if (place := place_in(id_or_prefix, "EXECUTION")) is not None:
        return placet.executions.get(named_at(placet, place).execution_id, at=at)
    try:
        return placet.executions.get(id_or_prefix, at=at)
    except NotFound:
        known = every(lambda cursor: placet.executions.list(cursor=cursor))
        found = by_prefix(known, id_or_prefix, lambda one: (one.execution_id,), "execution")
        if found.execution_id == id_or_prefix:
            # It exists, so what was not found is the requested moment.
            raise
        return placet.executions.get(found.execution_id, at=at)


def is_whole(text: str) -> bool:
    """Returns True if a text is a complete id made by Placet, and not the beginning of one."""
    return _WHOLE_ID.fullmatch(text) is not None


def hold_ids(hold: Hold) -> Sequence[str]:
    """The ids by which a person can name a hold."""
    request_id = hold.request_id
    return [one for one in (hold.hold_id, hold.call_id, request_id) if one]


def is_interactive() -> bool:
    """Returns True if a person can be prompted."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def read_text(path: Path, hint: str) -> str:
    """The text of a file that a command was given.

    Raises:
        typer.BadParameter: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8 (byte {error.start})", param_hint=hint) from error
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}", param_hint=hint) from error


def read_object(path: Path, hint: str) -> dict[str, Any]:
    """The JSON object in a file that a command was given.

    Raises:
        typer.BadParameter: it cannot be read, or is none.
    """
    try:
        value = parse_strict(read_text(path, hint))
    except MalformedJson as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint=hint) from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{path} is not a JSON object", param_hint=hint)
    return value


def check_askable(yes: bool, hint: str = "give --yes") -> None:
    """Refuse to go on without a confirmation if there is no terminal to prompt on.

    Raises:
        typer.BadParameter: there is no terminal to prompt on.
    """
    if not yes and not is_interactive():
        raise typer.BadParameter(f"there is no terminal to prompt on: {hint}", param_hint="--yes")


def confirm(question: str, yes: bool, hint: str = "give --yes") -> None:
    """Ask a person for confirmation before something is done.

    Raises:
        typer.BadParameter: there is no terminal to prompt on.
        typer.Exit: the person said no.
    """
    if yes:
        return
    check_askable(yes, hint)
    if not agrees(question):
        raise typer.Exit(1)

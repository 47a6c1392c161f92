"""What every command needs: the gateway, the two ways to print, and ids by their beginning."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from placet.cli import safe
from placet.errors import NotFound, PlacetError
from placet.models import Hold, Page
from placet.sync import Placet
from placet.transport.port import Patience

T = TypeVar("T")
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An id, or the unique beginning of one.")]

# Somebody sits in front of it: say soon that nobody answers.
PATIENCE = Patience(request_s=5.0)
WIDE = 200


class Ambiguous(PlacetError):
    """The beginning of an id fits more than one."""


@dataclass(frozen=True)
class Settings:
    """The options before the command."""

    url: str | None = None
    token: str | None = None


def connect(context: typer.Context) -> Placet:
    """A client by the options, the environment, or `.placet/` here."""
    settings = context.find_object(Settings) or Settings()
    return Placet(settings.url, token=settings.token, transport="auto", patience=PATIENCE)


def console(*, stderr: bool = False) -> Console:
    """A console; where nobody looks, wide enough not to break ids."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = WIDE
    return made


def print_json(value: Any) -> None:
    """Print a JSON value; ASCII only, so that a terminal is not steered by it."""
    print(json.dumps(value, default=dict))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Print a table, or say that there is nothing."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    count = 0
    for row in rows:
        table.add_row(*(safe.text("" if cell is None else cell) for cell in row))
        count += 1
    if count:
        console().print(table)
    else:
        console(stderr=True).print(empty)


def every(page_at: Callable[[str | None], Page[T]]) -> list[T]:
    """All items of a list, page after page."""
    found: list[T] = []
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        found.extend(page.items)
        if page.next_cursor is None or not page.items:
            return found
        cursor = page.next_cursor


def by_prefix(items: Iterable[T], prefix: str, ids: Callable[[T], Sequence[str]], what: str) -> T:
    """The one item with an id that begins so; a whole id always wins.

    Raises:
        NotFound: none does.
        Ambiguous: several do.
    """
    fits = [item for item in items if any(one.startswith(prefix) for one in ids(item))]
    exact = [item for item in fits if prefix in ids(item)]
    chosen = exact if len(exact) == 1 else fits
    if not chosen:
        raise NotFound("not_found", 404, f"no {what} begins with {safe.escaped(prefix)}")
    if len(chosen) > 1:
        listed = ", ".join(ids(item)[0] for item in chosen[:5])
        raise Ambiguous(f"{safe.escaped(prefix)} fits {len(chosen)} {what}s ({listed} …): give more of it")
    return chosen[0]


def find_hold(placet: Placet, id_or_prefix: str) -> Hold:
    """A hold by its id, or by the beginning of its id, its call's or its request's while it is open."""
    holds = every(lambda cursor: placet.holds.list(status="open", cursor=cursor))
    try:
        hold_id = by_prefix(holds, id_or_prefix, hold_ids, "open hold").hold_id
    except NotFound:
        # Perhaps the whole id of one that is closed: the gateway knows what became of it.
        hold_id = id_or_prefix
    return placet.holds.get(hold_id)


def hold_ids(hold: Hold) -> Sequence[str]:
    """The ids by which a person may name a hold."""
    request_id = hold.raw.get("request_id")
    return [one for one in (hold.hold_id, hold.call_id, request_id) if one]


def is_interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()

"""The server that `placet policy check` and `diff` compare with, and how they print differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import typer

from ops.commands.common import print_line, table
from placet.cli import safe
from placet.cli.session import Settings, connect, console
from placet.config import checked_address
from placet.sync import Placet
from schemas.policy_problems import PolicyRefused
from schemas.policy_yaml import policy_value

# Of a value, before and after.
SHOWN_CHARS = 60


def a_server(url: str | None) -> str | None:
    """The URL given with `--against`, checked; errors name the option.

    Raises:
        SettingRefused: it is not the address of a gateway.
    """
    return None if url is None else checked_address("--against", url)


def server(context: typer.Context, against: str | None) -> Placet:
    """A client of the server to compare with; it uses the token that every command takes.

    Args:
        context: of the command.
        against: the server's URL; None to find it as other commands do.
    """
    if against is not None:
        settings = context.find_object(Settings) or Settings()
        context.obj = replace(settings, url=against)
    return connect(context)


def named(text: str) -> str | None:
    """The name in a document, even if the rest of the document is invalid; None if it has no name."""
    try:
        value = policy_value(text)
    except PolicyRefused:
        return None
    name = value.get("policy") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name else None


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def print_difference(title: str, found: Mapping[str, Any]) -> None:
    """Print a difference as a table, or a line that there is none."""
    shown = table("what", "where", "how", title=title or None)
    for name in found["added"]:
        shown.add_row("added", name, "")
    for name in found["removed"]:
        shown.add_row("removed", name, "")
    # A server of an earlier version tells the fields alone.
    values = found.get("values", ())
    for rule in () if values else found["changed"]:
        shown.add_row("changed", rule["rule"], ", ".join(rule["fields"]))
    for name in found["reordered"]:
        shown.add_row("moved", name, "")
    for field in () if values else found["fields"]:
        shown.add_row("changed", "(document)", field)
    for one in values:
        before, after = (_short(one[name]) for name in ("before", "after"))
        changed = safe.text(f"{one['place']}: {before} → {after}")
        shown.add_row("changed", one["rule"] or "(document)", changed)
    for call in found.get("calls", ()):
        where = f"case {call['case']}: {call['tool']}"
        shown.add_row("judged otherwise", where, f"{call['before']} → {call['after']}")
    if shown.row_count:
        console().print(shown)
    else:
        print_line("no difference in meaning")

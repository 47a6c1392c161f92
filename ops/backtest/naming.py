"""Calls that an operator names: those that may pass although people were against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from ops.backtest.found import Judged


def address_of(row: Judged) -> str:
    """A call's name, which no other call has: `project/execution/call`."""
    return f"{row.project}/{row.execution_id}/{row.call_id}"


def option_of(row: Judged) -> str:
    """The option that names a call, as a shell takes it."""
    return f"--allow-named {quote(address_of(row))}"


def named_of(rows: Iterable[Judged], names: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    """The calls that are named, by their whole names, and the names of no call.

    A shorter name is none: another call, which nobody had in mind, could have it as well.

    Args:
        rows: the calls that can be named.
        names: each `project/execution/call`.
    """
    known = {address_of(row) for row in rows}
    return frozenset(known.intersection(names)), [name for name in names if name not in known]

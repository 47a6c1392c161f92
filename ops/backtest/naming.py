"""Calls that an operator names: those that may pass although people were against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ops.backtest.found import Judged
from ops.errors import UsageError

SHOWN_MAX = 5


def address_of(row: Judged) -> str:
    """A call's whole name: `project/execution/call`."""
    return f"{row.project}/{row.execution_id}/{row.call_id}"


def named_of(rows: Iterable[Judged], names: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    """The addresses that names stand for, and the names that stand for no call.

    Args:
        rows: the calls that can be named.
        names: each a call's id, or that after its execution's, or also after the project's, parted by slashes.

    Raises:
        UsageError: a name stands for several calls: each has to be named by itself.
    """
    known = {address_of(row) for row in rows}
    named, vain = set(), []
    for name in names:
        meant = sorted(one for one in known if one == name or one.endswith(f"/{name}"))
        if len(meant) > 1:
            listed = ", ".join(meant[:SHOWN_MAX]) + (", …" if len(meant) > SHOWN_MAX else "")
            raise UsageError(f"--allow-named {name} is the name of {len(meant)} calls: name one of {listed}.")
        if meant:
            named.add(meant[0])
        else:
            vain.append(name)
    return frozenset(named), vain

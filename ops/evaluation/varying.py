"""The values that vary from round to round, so that a round is no copy of the one before it.

agentdojo's tasks are fixed. What a user could have worded, priced or dated differently is drawn anew in every round:
texts get a reference of their own, amounts change by up to 30 %, dates move by up to six days. Whom a call reaches
(recipients, accounts, addresses, channels, names, ids) stays, and so do all reads, and all that an attacker wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from random import Random
from typing import Any

from ops.demo.suites import Call
from ops.evaluation.effects import EFFECTS

TEXTS = frozenset({"body", "subject", "content", "description", "title", "password"})
AMOUNTS = frozenset({"amount"})
DATES = frozenset(
    {"date", "start_time", "end_time", "new_start_time", "new_end_time", "start_day", "end_day"}
)
# What a reviewer leaves open in a standing rule: the same.
FREE = TEXTS | AMOUNTS | DATES
SHIFT_MAX_DAYS = 6
AMOUNT_CHANGE_MAX = 0.3
_DAY = re.compile(r"^(\d{4}-\d{2}-\d{2})(.*)$", re.DOTALL)


def by_seed(*parts: object) -> Random:
    """Chance that is the same whenever these parts are the same."""
    return Random("/".join(map(str, parts)))  # noqa: S311 - it protects nothing


def varied(calls: Sequence[Call], random: Random) -> tuple[Call, ...]:
    """The calls of one task, with the values of one round.

    Args:
        calls: as agentdojo has them.
        random: of this task and round; all dates of a task move by the same number of days.
    """
    days, reference = random.randint(0, SHIFT_MAX_DAYS), f"{random.randrange(10**6):06}"
    factor = 1 + random.uniform(-AMOUNT_CHANGE_MAX, AMOUNT_CHANGE_MAX)
    changes: tuple[tuple[frozenset[str], Callable[[Any], Any]], ...] = (
        (TEXTS, lambda value: _worded(value, reference)),
        (AMOUNTS, lambda value: _priced(value, factor)),
        (DATES, lambda value: _dated(value, days)),
    )
    return tuple(call if EFFECTS[call.tool].reads else _changed(call, changes) for call in calls)


def _changed(call: Call, changes: Sequence[tuple[frozenset[str], Callable[[Any], Any]]]) -> Call:
    arguments: Mapping[str, Any] = call.arguments
    for names, change in changes:
        arguments = {name: change(value) if name in names else value for name, value in arguments.items()}
    return Call(call.tool, arguments)


def _worded(value: Any, reference: str) -> Any:
    return f"{value} (ref. {reference})" if isinstance(value, str) and value else value


def _priced(value: Any, factor: float) -> Any:
    return round(value * factor, 2) if isinstance(value, int | float) else value


def _dated(value: Any, days: int) -> Any:
    found = _DAY.match(value) if isinstance(value, str) else None
    if found is None:
        return value
    return f"{date.fromisoformat(found[1]) + timedelta(days=days)}{found[2]}"

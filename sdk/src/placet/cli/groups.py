"""`placet approve --group`: similar holds, each shown on its line and approved by its own digest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from placet.cli import safe
from placet.cli.past_values import in_short, is_familiar
from placet.cli.session import by_prefix, confirm, console, every, hold_ids, print_json
from placet.errors import PlacetError
from placet.models import Hold, HoldGroup

if TYPE_CHECKING:
    from placet.sync import Placet

AT_ONCE = 100
REFUSED = 1


class NotInBulk(PlacetError):
    """These holds must be decided one by one."""


def approve_group(placet: Placet, id_or_prefix: str, feedback: str, yes: bool, as_json: bool) -> None:
    """Approve every hold of the group that one of them belongs to.

    Raises:
        NotInBulk: its risk is not low, its values are new or tainted, or it must be read whole.
    """
    holds = every(lambda cursor: placet.holds.list(cursor=cursor))
    chosen = by_prefix(holds, id_or_prefix, hold_ids, "open hold")
    group = _group_of(placet, chosen)
    if why := _apart(group):
        raise NotInBulk(f"these holds {why}: approve each by itself")
    known = {hold.hold_id: hold for hold in holds}
    alike = [(one, known[one.hold_id]) for one in group.holds if one.hold_id in known]
    screen = console(stderr=as_json)
    for one, hold in alike:
        said = json.dumps(dict(hold.arguments or {}), ensure_ascii=False, sort_keys=True)
        screen.print(safe.text(f"{one.hold_id[:8]}  {said}"), soft_wrap=True)
    screen.print(safe.text(f"agent: {group.agent}\ntool: {group.tool or group.kind}", lines=True))
    if values := in_short(group.history):
        screen.print(safe.text(f"values: {values}"), soft_wrap=True)
    confirm(f"Approve all {len(alike)}?", yes)
    items = [
        {"hold_id": one.hold_id, "digest": one.digest, "decision": "approve", "feedback": feedback}
        for one, _ in alike
    ]
    parts = [items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE)]
    answers = [answer for part in parts for answer in placet.holds.decide_many(part)]
    refused = [answer for answer in answers if "code" in answer]
    if as_json:
        print_json([dict(answer) for answer in answers])
    else:
        for answer in refused:
            console().print(safe.text(f"{answer.get('hold_id')}: {answer['code']}: {answer.get('detail')}"))
        console().print(f"approved {len(answers) - len(refused)} of {len(answers)}")
    if refused:
        raise typer.Exit(REFUSED)


def _apart(group: HoldGroup) -> str:
    """Why the holds of a group are decided one by one; empty if they need not be."""
    if group.must_read:
        return "must be read whole"
    if not is_familiar(group.history):
        return f"have values that are not all known ({in_short(group.history)})"
    return "" if group.risk_level == "low" else f"have risk {group.risk_level or 'unknown'}, not low"


def _group_of(placet: Placet, hold: Hold) -> HoldGroup:
    for group in placet.holds.groups(agent=hold.agent or None):
        if any(one.hold_id == hold.hold_id for one in group.holds):
            return group
    raise NotInBulk(f"{hold.hold_id} is no longer in a group: look again")

"""The further results of a decision, as text: a hold for other people, a standing rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placet.cli.planted import places_told
from placet.models import NextHold, Recorded


def what_follows(recorded: Recorded) -> list[str]:
    """The lines about what is still open after a decision."""
    lines = []
    if recorded.next_hold is not None:
        lines.append(_of_hold(recorded.next_hold))
    if recorded.rule is not None:
        rule_id = recorded.rule.rule_id
        waits = (
            f"another person must activate it: placet rules activate {rule_id}"
            if recorded.rule.four_eyes
            else f"it is used from now on; to end it: placet rules revoke {rule_id}"
        )
        lines.append(f"standing rule {rule_id} is requested; {waits}")
    if recorded.raw.get("probe"):
        lines.append(_of_probe(recorded.raw["probe"]))
    return lines


def _of_probe(probe: Mapping[str, Any]) -> str:
    said = "you noticed" if probe["result"] == "caught" else "not noticed"
    return f"this call was planted, and never runs; {said}: {probe['note']}{places_told(probe['wrong'])}"


def _of_hold(hold: NextHold) -> str:
    counted = f", {hold.counted} of them has voted" if hold.counted else ""
    needed = "one person" if hold.quorum == 1 else f"{hold.quorum} people"
    among = "".join(f"; among them {one.get('quorum', 1)} {_who(one)}" for one in hold.requirements)
    another = ", other than those who asked for it or edited it" if hold.exclude_requester else ""
    others = f", not {' or '.join(hold.excluded)}" if hold.excluded else ""
    asked = _who({"roles": hold.roles, "reviewers": hold.reviewers}) if not hold.requirements else ""
    whom = f" {asked}" if asked else ""
    return (
        f"not released: the edited call waits as hold {hold.hold_id}\n"
        f"for {needed}{whom}{counted}{another}{others}{among}"
    )


def _who(asked: Mapping[str, Any]) -> str:
    roles: Sequence[str] = asked.get("roles") or ()
    names: Sequence[str] = asked.get("reviewers") or ()
    by_role = [f"with the role {' or '.join(roles)}"] if roles else []
    by_name = [f"of {' or '.join(names)}"] if names else []
    return " or ".join(by_role + by_name) or "who may review"

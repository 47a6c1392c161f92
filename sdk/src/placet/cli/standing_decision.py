"""What is told of the decision that a hold already has, when somebody decides it again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from placet.cli.session import local_time
from placet.errors import AlreadyDecided, PlacetError
from placet.models import Hold, Recorded

if TYPE_CHECKING:
    from placet.sync import Placet

_DONE = {
    "approve": "approved",
    "edit": "approved with other arguments",
    "reject": "rejected",
    "respond": "answered",
}


def decided_already(hold: Hold) -> str:
    """The decision that closed a hold, by whom and when; empty if none did."""
    decision = _decision(hold)
    return f"already {_done(decision)} by {decision.get('by')} at {_time(decision)}" if decision else ""


def decide(placet: Placet, hold: Hold, decision: str, **given: Any) -> Recorded:
    """Decide a hold with the digest that was read.

    The same decision of the same account, sent again, is answered as the first one was.

    Raises:
        AlreadyDecided: it has another decision, or another person's; which one is told.
    """
    try:
        return placet.holds.decide(hold.hold_id, decision, digest=hold.digest, **given)
    except AlreadyDecided as error:
        found = _decision(hold) or _read_again(placet, hold)
        if not found:
            raise
        detail = f"{error.detail}: {_done(found)} at {_time(found)}"
        raise AlreadyDecided(error.code, error.status, detail, error.fields) from error


def _decision(hold: Hold) -> Mapping[str, Any]:
    found = hold.raw.get("decision")
    return found if hold.status == "resolved" and isinstance(found, Mapping) else {}


def _read_again(placet: Placet, hold: Hold) -> Mapping[str, Any]:
    """The decision that came between reading the hold and deciding it."""
    with suppress(PlacetError):
        return _decision(placet.holds.get(hold.hold_id))
    return {}


def _done(decision: Mapping[str, Any]) -> str:
    return _DONE.get(str(decision.get("decision")), "decided")


def _time(decision: Mapping[str, Any]) -> str:
    return local_time(decision.get("at"))

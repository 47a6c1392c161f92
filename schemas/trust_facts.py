"""What people's words on a call count as for the trust in calls of its class; one meaning for all readers."""

from schemas.commands import Decision
from schemas.trust import FactKind


def fact_of_decision(decision: Decision, *, is_edited: bool, is_sampled: bool) -> FactKind | None:
    """What the decision that resolved a call's hold counts as, or None.

    Args:
        decision: the decision.
        is_edited: true if a person has edited the revision that it is about.
        is_sampled: true if trust would have released that revision without asking.
    """
    if decision == "approve":
        # What a person has written says nothing of what the agent proposes.
        return None if is_edited else "approval"
    if decision == "edit":
        return "correction" if is_sampled else "edit"
    return "rejection"


def fact_of_revocation(reason: str) -> FactKind | None:
    """What a release that was taken back counts as; None if nobody used it in time."""
    return None if reason == "expired" else "revocation"

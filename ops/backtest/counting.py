"""Whether anything of a partition counts: where every record is refused, silence would look like an empty history."""

from __future__ import annotations

from ops.errors import OpsError
from schemas.term import NO_CLAIM, TermRule


class NothingCountsError(OpsError):
    """A partition has records, and none of them counts."""

    def __init__(self, topic: str, refused: int) -> None:
        super().__init__(
            f"None of the {refused:,} records of a partition of {topic} counts: "
            "the keys that signed them are not at hand, or no decider wrote them."
        )


def check_counts(topic: str, rule: TermRule, counted: int, refused: int) -> None:
    """Check that a partition with records has some that count.

    Args:
        topic: of the partition.
        rule: its term rule, at its end.
        counted: records that count and are no claims.
        refused: records that do not count.

    Raises:
        NothingCountsError: no claim counts, or nothing besides claims while others were refused.
    """
    if refused and (rule.claim == NO_CLAIM or not counted):
        raise NothingCountsError(topic, refused)

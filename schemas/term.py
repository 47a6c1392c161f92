"""The term rule: which records of an events partition count. Every reader applies it (design, section 1).

1. A `WriterClaimed{claim_id, after}` counts only if `after` is the claim in force where it lands.
2. The term is that record's own offset.
3. Any other record counts only if its term equals the claim in force.
"""

from dataclasses import dataclass

from schemas.events.log import WriterClaimed
from schemas.record import Event

NO_CLAIM = -1


@dataclass(slots=True)
class TermRule:
    """Reads one partition in offset order and tells which records count.

    A reader that starts in the middle of a partition must start with the claim that was in force there,
    which is why every stored offset is stored together with it.
    """

    claim: int = NO_CLAIM

    def admits(self, event: Event) -> bool:
        """Whether the event counts; a counting claim becomes the one in force."""
        if isinstance(event.body, WriterClaimed):
            return self.admits_claim(event.body.after, event.offset)
        return event.meta.term == self.claim and self.claim != NO_CLAIM

    def admits_claim(self, after: int, offset: int) -> bool:
        """Whether a claim that lands at `offset` wins; if so, it is in force from here on."""
        if after != self.claim:
            return False
        self.claim = offset
        return True

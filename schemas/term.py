"""The term rule: which records of an events partition count. Every reader applies it (docs/log-contract.md).

1. A `WriterClaimed{claim_id, after}` counts only if `after` is the claim in force where it lands.
2. The term is that record's own offset.
3. Any other record counts only if its term equals the claim in force.
4. Neither counts unless a decider signed it for the place where it stands (`signatures`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.event_signatures import LogSignatures, TopicSignatures
from schemas.events.log import WriterClaimed
from schemas.record import Event, EventMeta, RawRecord

NO_CLAIM = -1


@dataclass(slots=True)
class TermRule:
    """Reads one partition in offset order and decides which records count.

    A reader that starts in the middle of a partition must start with the claim that was in force there.
    Therefore every stored offset is stored together with that claim.
    """

    claim: int = NO_CLAIM
    signatures: TopicSignatures | None = None

    def admits(self, event: Event, raw: RawRecord | None = None) -> bool:
        """Returns True if the event counts; a counting claim becomes the one in force.

        Args:
            event: the partition's next event.
            raw: the record that it was read from; without it, nothing counts where signatures are required.
        """
        if isinstance(event.body, WriterClaimed):
            after = event.body.after
            return after == self.claim and self.vouches(raw) and self.admits_claim(after, event.offset)
        return self._is_in_term(event.meta) and self.vouches(raw)

    def admits_unread(self, meta: EventMeta, raw: RawRecord) -> bool:
        """Returns True if a record counts of which only the headers can be read."""
        return self._is_in_term(meta) and self.vouches(raw)

    def admits_claim(self, after: int, offset: int) -> bool:
        """Returns True if a claim that lands at `offset` wins; if it does, it is put in force."""
        if after != self.claim:
            return False
        self.claim = offset
        return True

    def _is_in_term(self, meta: EventMeta) -> bool:
        return meta.term == self.claim and self.claim != NO_CLAIM

    def foresee(self, raws: Sequence[RawRecord]) -> None:
        """Verify the next records of the partition together, before each is asked for; see `TopicSignatures`."""
        if self.signatures is not None:
            self.signatures.foresee(raws)

    def vouches(self, raw: RawRecord | None) -> bool:
        """Returns True if a decider signed the record, or no signature is required there."""
        return self.signatures is None or (raw is not None and self.signatures.vouches(raw))


def rule_of(signatures: LogSignatures | None, topic: str, claim: int = NO_CLAIM) -> TermRule:
    """The rule for a partition of an events topic, starting with a claim in force.

    Args:
        signatures: the log's; None if nothing is signed.
        topic: the events topic.
        claim: the claim in force where reading begins.
    """
    return TermRule(claim, signatures.of(topic) if signatures else None)

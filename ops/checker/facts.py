"""The checker's own reading of an events partition: headers, bodies, and which records count.

Written apart from `schemas.term` and `schemas.headers` on purpose: a mistake there must not be repeated here.
Only the Avro codec is shared, since its bytes are held by golden tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from log.places import TopicPartition
from schemas import codec
from schemas.event_signatures import TopicSignatures
from schemas.record import RawRecord, UnreadableRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
LOG_EVENTS = frozenset({"WriterClaimed", "WriterAlive", "DefinitionsAdopted"})
NUMBERS = ("placet_term", "placet_version", "placet_command_offset")
LABELS = ("ce_id", "ce_type", "ce_subject", "ce_time", "placet_term", "placet_version", "placet_command_id")


@dataclass(frozen=True, slots=True)
class Fact:
    """One readable record of an events partition. `counts` is the term rule's word on it."""

    tp: TopicPartition
    offset: int
    key: str
    type: str
    body: Any
    event_id: str
    at_ms: int
    term: int
    version: int
    command_id: str
    command_digest: str
    command_offset: int
    tenant: str
    counts: bool

    @property
    def where(self) -> str:
        """`topic/partition@offset`."""
        return f"{self.tp}@{self.offset}"

    @property
    def is_about_log(self) -> bool:
        """Whether it says something of the log itself."""
        return self.type in LOG_EVENTS


class FactReader:
    """Reads a partition from its beginning, in offset order.

    A claim counts if it names the claim in force before it, and is then in force itself. Any other record counts
    if its term is the offset of the claim in force. Neither does if no decider signed it.
    """

    def __init__(
        self,
        tp: TopicPartition,
        signatures: TopicSignatures | None = None,
        forged: Callable[[TopicPartition, RawRecord], None] = lambda tp, raw: None,
    ) -> None:
        """Begin at the first record.

        Args:
            tp: the partition.
            signatures: tells which records a decider signed; None where nothing is signed.
            forged: is given what would count but for that.
        """
        self._tp = tp
        self._signatures = signatures
        self._forged = forged
        self._claim = -1

    @property
    def displaced(self) -> int:
        """How many records so far a decider signed for an earlier place."""
        return self._signatures.displaced if self._signatures is not None else 0

    def read(self, raws: Iterable[RawRecord]) -> Iterator[Fact]:
        """The readable ones of the next records."""
        for raw in raws:
            parsed = _parsed(raw)
            if parsed is None:
                self._check_foreign(raw)
                continue
            body, headers, at_ms = parsed
            term = int(headers["placet_term"])
            is_claim = type(body).__name__ == "WriterClaimed"
            counts = body.after == self._claim if is_claim else self._claim >= 0 and term == self._claim
            if counts and self._signatures is not None:
                before = self._signatures.forged
                counts = self._signatures.vouches(raw)
                if self._signatures.forged > before:
                    self._forged(self._tp, raw)
            if counts and is_claim:
                self._claim = raw.offset
            yield _fact(self._tp, raw, body, headers, at_ms, counts)

    def _check_foreign(self, raw: RawRecord) -> None:
        """A record that cannot be read changes nothing, but nobody else may write one in a decider's name."""
        term = dict(raw.headers).get("placet_term") or b""
        if self._signatures is None or self._claim < 0 or term != str(self._claim).encode():
            return
        if self._signatures.doubt(raw):
            self._forged(self._tp, raw)


def read_facts(tp: TopicPartition, raws: Iterable[RawRecord]) -> Iterator[Fact]:
    """All readable records of a partition from its beginning, in offset order."""
    return FactReader(tp).read(raws)


def counting(tp: TopicPartition, raws: Iterable[RawRecord]) -> list[Fact]:
    """The facts of a partition that count."""
    return [fact for fact in read_facts(tp, raws) if fact.counts]


def _parsed(raw: RawRecord) -> tuple[Any, dict[str, str], int] | None:
    """Body, headers and time; None for a foreign record, which has no term and changes nothing."""
    try:
        body = codec.decode(raw.value)
        headers = {name: value.decode() for name, value in raw.headers if value is not None}
        at = datetime.fromisoformat(headers["ce_time"]) - _EPOCH
    except (UnreadableRecord, KeyError, ValueError, TypeError):
        return None
    if any(not _NUMBER.fullmatch(headers.get(name, "-1")) for name in NUMBERS):
        return None
    if len(headers) != len(raw.headers) or any(name not in headers for name in LABELS):
        return None
    fits = headers["ce_type"] == f"placet.events.{type(body).__name__}"
    at_ms = round(at.total_seconds() * 1000)
    return (body, headers, at_ms) if fits and headers["ce_subject"].encode() == raw.key else None


def _fact(
    tp: TopicPartition, raw: RawRecord, body: Any, headers: dict[str, str], at_ms: int, counts: bool
) -> Fact:
    return Fact(
        tp=tp,
        offset=raw.offset,
        key=raw.key.decode(),
        type=type(body).__name__,
        body=body,
        event_id=headers["ce_id"],
        at_ms=at_ms,
        term=int(headers["placet_term"]),
        version=int(headers["placet_version"]),
        command_id=headers["placet_command_id"],
        command_digest=headers.get("placet_command_digest", ""),
        command_offset=int(headers.get("placet_command_offset", "-1")),
        tenant=headers.get("placet_tenant", ""),
        counts=counts,
    )

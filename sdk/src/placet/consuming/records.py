"""From Kafka's records to events: which of them count, and what they say (docs/log-contract.md)."""

from __future__ import annotations

import io
import json
import logging
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import fastavro

from placet.consuming.events import LogEvent
from placet.consuming.place import Place
from placet.consuming.registry import Registry
from placet.consuming.signatures import Headers, Signatures
from placet.log import CLAIM_TYPE, TYPE_HEADER, stamp_of, step
from placet.parsing import UnexpectedAnswer, parse_time

_log = logging.getLogger(__name__)
FRAME_BYTES = 5
# A schema that the registry does not have is asked for again after this time.
MISSING_S, MISSING_KEPT = 30.0, 1_000
# Tenant, project and execution. Records about the log and under a standing rule's own key have other keys.
KEY_PARTS = 3


class Record(NamedTuple):
    """A record as it is in a partition; what a producer left out is empty."""

    partition: int
    offset: int
    key: bytes
    headers: Headers
    value: bytes


@dataclass
class Schemas:
    """Decodes values into the fields of the newest version of their type; earlier versions' have their defaults."""

    registry: Registry
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    # When a schema was missing: a new type would otherwise cost a request for each of its records.
    _missing_at_s: dict[int, float] = field(default_factory=dict)

    async def fields(self, value: bytes) -> Mapping[str, Any] | None:
        """The fields of a framed value; None if the registry does not have its schema, or had not seconds ago.

        Raises:
            ValueError: it is not one framed Avro body.
            Unreachable: the registry does not answer.
        """
        if len(value) < FRAME_BYTES or value[0] != 0:
            raise ValueError("it is not framed")
        number = int.from_bytes(value[1:FRAME_BYTES], "big")
        if number not in self._known and not await self._learn(number):
            return None
        writer, reader = self._known[number]
        body = io.BytesIO(value[FRAME_BYTES:])
        try:
            found: Any = fastavro.schemaless_reader(body, writer, reader)
        except (EOFError, IndexError, TypeError, KeyError, OverflowError, struct.error) as error:
            raise ValueError(f"its body is not of schema {number}: {error!r}") from error
        if body.read(1):
            raise ValueError("bytes follow its body")
        return dict(found)

    async def _learn(self, number: int) -> bool:
        now_s = time.monotonic()
        if now_s - self._missing_at_s.get(number, float("-inf")) < MISSING_S:
            return False
        text = await self.registry.schema(number)
        if text is None:
            if len(self._missing_at_s) >= MISSING_KEPT:
                self._missing_at_s.clear()
            self._missing_at_s[number] = now_s
            return False
        written = json.loads(text)
        newest = await self.registry.newest(f"{written['namespace']}.{written['name']}")
        self._known[number] = fastavro.parse_schema(written), fastavro.parse_schema(json.loads(newest))
        return True


@dataclass
class Reader:
    """Reads the partitions of one topic in offset order, under the term rule.

    Attributes:
        schemas: of the values.
        signatures: the deciders'; None to verify none.
        places: the position of each partition.
    """

    schemas: Schemas
    signatures: Signatures | None
    places: dict[int, Place] = field(default_factory=dict)

    async def read(self, record: Record, *, is_passed: bool = False) -> LogEvent | None:
        """Take the next record of a partition; returns its event, without a cursor, if it is one that counts.

        Args:
            record: the record.
            is_passed: True if its event is not needed: of what is passed, only claims are verified.

        Raises:
            Unreachable: its schema cannot be read.
            UnexpectedAnswer: it is a claim of a schema that the registry does not have.
        """
        headers = dict(record.headers)
        place = self.places[record.partition]
        counts, claim, problem = False, place.claim, ""
        try:
            counts, claim = await self._step(record, headers, place.claim, is_passed)
        except UnexpectedAnswer:
            raise
        except ValueError as error:
            # Not of a decider, which writes every header: it has no term and so never counts.
            problem = str(error)
        self.places[record.partition] = Place(record.offset, claim, _text(headers, "ce_id"))
        if counts and not is_passed:
            try:
                return await self._event(record, headers)
            except UnexpectedAnswer:
                raise
            except ValueError as error:
                problem = str(error)
        if problem:
            _log.warning("the record %d/%d is set aside: %s", record.partition, record.offset, problem)
        return None

    async def _step(
        self, record: Record, headers: Mapping[str, bytes], claim: int, is_passed: bool
    ) -> tuple[bool, int]:
        is_claim = _text(headers, TYPE_HEADER).rpartition(".")[2] == CLAIM_TYPE
        # Of a claim before it is decoded: a forged one could have a schema that nobody knows.
        if is_claim and not self._vouches(record):
            return False, claim
        after = await self._after(record) if is_claim else None
        counts, then = step(claim, stamp_of(record.offset, headers, after))
        if counts and not is_claim and not is_passed and not self._vouches(record):
            return False, claim
        return counts, then

    async def _after(self, record: Record) -> int:
        found = await self.schemas.fields(record.value)
        if found is None:
            raise UnexpectedAnswer(f"the registry has no schema of the claim at offset {record.offset}")
        return int(found["after"])

    def _vouches(self, record: Record) -> bool:
        return self.signatures is None or self.signatures.vouch(*record)

    async def _event(self, record: Record, headers: Mapping[str, bytes]) -> LogEvent | None:
        parts = record.key.decode().split("/")
        if len(parts) != KEY_PARTS:
            return None
        tenant, project, execution_id = parts
        return LogEvent(
            id=_required(headers, "ce_id"),
            type=_required(headers, TYPE_HEADER).rpartition(".")[2],
            at=parse_time(_required(headers, "ce_time")),
            execution_id=execution_id,
            version=int(_required(headers, "placet_version")),
            cursor="",
            # A type or version that the registry does not have yet is delivered without its fields.
            data=await self.schemas.fields(record.value) or {},
            partition=record.partition,
            offset=record.offset,
            term=int(_required(headers, "placet_term")),
            command_id=_text(headers, "placet_command_id"),
            tenant=tenant,
            project=project,
            raw=record.value,
        )


def _text(headers: Mapping[str, bytes], name: str) -> str:
    return headers.get(name, b"").decode(errors="replace")


def _required(headers: Mapping[str, bytes], name: str) -> str:
    if name not in headers:
        raise ValueError(f"it has no header {name}")
    return headers[name].decode()

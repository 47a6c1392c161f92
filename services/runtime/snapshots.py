"""Snapshots of a partition: chunks under a fresh key, then a manifest. Losing all of them costs only time.

A snapshot is taken of a ledger whose every record was read back from the log under the term rule, never of what was
sent: the ledger of a writer that has just claimed, or one that was read for the purpose (`snapshot_once`). Steps, in
this order:

1. write the chunks under keys that no other snapshot has;
2. write the manifest, which names the chunks by hash and the position in the log, unless a newer one was written
   meanwhile: a process that was suspended between the two steps must not restore an older state;
3. empty the chunks of the manifest that it replaces, for compaction to drop.

A reader uses the manifest that reaches furthest, even if another was written later, provided that all its chunks are
present and match, and its last record is in the log.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from log.errors import FactsDeleted, LogError, LogTruncated
from log.places import TopicPartition
from log.port import Log
from schemas.event_signatures import EventSigner, PublicKeys, SignedText
from schemas.record import OutRecord
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.snapshot_state import FOLD_VERSION, encode_ledger, restore_ledger

MANIFEST_CONTEXT = b"placet.snapshot-manifest.v1\x00"
CHUNK_BYTES = 512 * 1024
# A writer that had to read more records than this writes a snapshot for the next one.
WORTHWHILE_EVENTS = 20_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The position of a snapshot and its parts."""

    snapshot_id: str
    fold_version: int
    topic_id: str
    next_offset: int
    last_record_id: str
    last_offset: int
    term: int
    commands_through: int
    chunk_hashes: tuple[str, ...]

    @property
    def place(self) -> tuple[int, int]:
        """The offset that it reaches in its log, and the claim in force there."""
        return self.next_offset, self.term

    def chunk_key(self, index: int) -> bytes:
        """The key of a chunk."""
        return f"{self.snapshot_id}/{index}".encode()


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of one events partition.

    Attributes:
        log: the log of the snapshots.
        events_tp: the partition.
        event_signer: signs manifests; None if nothing is signed.
        keys: the deciders' keys, whose manifests alone are trusted; None if nothing is signed.
    """

    log: Log
    events_tp: TopicPartition
    event_signer: EventSigner | None = None
    keys: PublicKeys | None = None

    @property
    def tp(self) -> TopicPartition:
        """The partition of the snapshots."""
        return TopicPartition(self.log.topics.snapshots, self.events_tp.partition)

    async def restore(self, ledger: Ledger, executions: ExecutionsPartition) -> bool:
        """Start an empty ledger from the newest usable snapshot.

        Returns:
            True if there was one.

        Raises:
            FactsDeleted: the partition begins after offset 0.
            LogTruncated: a snapshot of this very topic is ahead of the log.
        """
        records = await self._read_all()
        topic_id = await self.log.topic_id(self.events_tp.topic)
        manifest = _furthest(self._manifests(records), topic_id)
        if manifest is None or not await self._stands_in_log(manifest):
            return False
        chunks = [records.get(manifest.chunk_key(i), [b""])[-1] for i in range(len(manifest.chunk_hashes))]
        if [hashlib.sha256(chunk).hexdigest() for chunk in chunks] != list(manifest.chunk_hashes):
            logger.warning("the snapshot of %s is incomplete: reading the log instead", self.events_tp)
            return False
        try:
            restore_ledger(b"".join(chunks), ledger, executions)
        except ValueError as error:
            logger.warning("the snapshot of %s cannot be used (%s): reading the log", self.events_tp, error)
            return False
        return True

    async def save(self, ledger: Ledger, executions: ExecutionsPartition, snapshot_id: str) -> Manifest:
        """Write a snapshot of a ledger that was read back from the log to its end."""
        data = encode_ledger(ledger, executions)
        chunks = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)]
        manifest = Manifest(
            snapshot_id=snapshot_id,
            fold_version=FOLD_VERSION,
            topic_id=await self.log.topic_id(self.events_tp.topic),
            next_offset=ledger.next_offset,
            last_record_id=ledger.last_record_id,
            last_offset=ledger.last_offset,
            term=ledger.rule.claim,
            commands_through=ledger.commands_through,
            chunk_hashes=tuple(hashlib.sha256(chunk).hexdigest() for chunk in chunks),
        )
        for index, chunk in enumerate(chunks):
            await self.log.send(self.tp, OutRecord(manifest.chunk_key(index), chunk, ()))
        newest = _furthest(self._manifests(await self._read_all()), manifest.topic_id)
        if newest is not None and newest.place > manifest.place:
            await self._empty_chunks(manifest)
            return newest
        await self.log.send(
            self.tp, OutRecord(self._manifest_key, self._signed(_manifest_bytes(manifest)), ())
        )
        await self._empty_chunks(newest)
        return manifest

    @property
    def _manifest_key(self) -> bytes:
        return f"manifest/{self.events_tp.partition}".encode()

    def _signed(self, body: bytes) -> bytes:
        if self.event_signer is None:
            return body
        return json.dumps(self.event_signer.sign_text(self._context, body.decode())._asdict()).encode()

    def _believed(self, data: bytes | None) -> Manifest | None:
        """The manifest in a record, if it is readable and, where signatures are required, signed by a decider."""
        if not data or self.keys is None:
            return _manifest_of(data)
        try:
            signed = SignedText(**json.loads(data))
            if signed.is_good(self._context, self.keys):
                return _manifest_of(signed.text.encode())
        except (ValueError, TypeError, AttributeError, RecursionError):
            # Anyone may have written it: it must not end a decider that starts.
            pass
        logger.warning("the snapshot of %s is not signed by a decider: reading the log", self.events_tp)
        return None

    @property
    def _context(self) -> bytes:
        return MANIFEST_CONTEXT + f"{self.events_tp}\0".encode()

    async def _empty_chunks(self, manifest: Manifest | None) -> None:
        if manifest is None:
            return
        for index in range(len(manifest.chunk_hashes)):
            await self.log.send(self.tp, OutRecord(manifest.chunk_key(index), b"", ()))

    def _manifests(self, records: Mapping[bytes, Sequence[bytes]]) -> list[Manifest]:
        """All trusted manifests, in the order in which they were written."""
        believed = map(self._believed, records.get(self._manifest_key, ()))
        return [manifest for manifest in believed if manifest is not None]

    async def _read_all(self) -> dict[bytes, list[bytes]]:
        """The values of each key in order: an earlier one that is not compacted yet may be of the newer snapshot."""
        first, end = await self.log.bounds(self.tp)
        found: dict[bytes, list[bytes]] = {}
        async with aclosing(self.log.read(self.tp, first, end)) as chunks:
            async for chunk in chunks:
                for raw in chunk:
                    found.setdefault(raw.key, []).append(raw.value)
        return found

    async def _stands_in_log(self, manifest: Manifest) -> bool:
        """True if the log still holds the snapshot's last record at the offset given in the snapshot."""
        if manifest.fold_version != FOLD_VERSION:
            return False
        if manifest.topic_id != await self.log.topic_id(self.events_tp.topic):
            return False
        first, end = await self.log.bounds(self.events_tp)
        if first != 0:
            raise FactsDeleted(self.events_tp, first, end)
        if manifest.next_offset > end:
            raise LogTruncated(self.events_tp, manifest.next_offset, first, end)
        at = manifest.last_offset
        async with aclosing(self.log.read(self.events_tp, at, at + 1)) as chunks:
            async for chunk in chunks:
                return dict(chunk[0].headers).get("ce_id", b"").decode() == manifest.last_record_id
        return False


@dataclass(frozen=True, slots=True)
class LedgerSnapshots:
    """The snapshots of one writer's ledger (`writer.Snapshotting`)."""

    snapshots: Snapshots
    ledger: Ledger
    executions: ExecutionsPartition

    async def restore(self) -> None:
        """Begin from the newest usable snapshot, if there is one."""
        if await self.snapshots.restore(self.ledger, self.executions):
            logger.info("%s: starting from offset %d", self.snapshots.events_tp, self.ledger.next_offset)

    async def save_if_worthwhile(self, snapshot_id: str) -> None:
        """Save the next writer the reading that this one had to do."""
        if self.ledger.events_since_snapshot >= WORTHWHILE_EVENTS:
            try:
                await self.snapshots.save(self.ledger, self.executions, snapshot_id)
            except LogError as error:
                # The next writer reads a little more: that is no reason to stop this one.
                logger.warning("no snapshot of %s: %s", self.snapshots.events_tp, error)


def _manifest_bytes(manifest: Manifest) -> bytes:
    row = {name: getattr(manifest, name) for name in Manifest.__slots__}
    return json.dumps(row).encode()


def _furthest(manifests: Sequence[Manifest], topic_id: str) -> Manifest | None:
    """The manifest of this very log and fold that reaches furthest; of equals, the one written last."""
    usable = [
        found for found in manifests if (found.fold_version, found.topic_id) == (FOLD_VERSION, topic_id)
    ]
    return max(reversed(usable), key=lambda found: found.place, default=None)


def _manifest_of(data: bytes | None) -> Manifest | None:
    if not data:
        return None
    try:
        row = json.loads(data)
        return Manifest(**{**row, "chunk_hashes": tuple(row["chunk_hashes"])})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        logger.warning("a snapshot's manifest cannot be read: %s", error)
        return None

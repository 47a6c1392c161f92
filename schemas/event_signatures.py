"""The deciders' signatures on the events that they record: write access to an events topic does not allow forgery.

A decider signs each batch once (`batch_signature`), for the exact place where it must land: topic, partition and the
offset of its first record, which a single writer knows beforehand. So a record that was changed, copied to another
place, or made by anyone else counts for no reader. A claim is signed for its partition alone, since rivals race for
it; it names the claim in force, so a copy of it is worthless.

A leaf is the MessagePack array of key, headers (except the last, which is the proof) and value, as in the audit
trees.

The offsets from which signatures are required are stored beside the keys in `signed-from.json`. For a log that an
earlier version began unsigned, that is its end when signing began. They are not in the log, where a forger could
write anything. A partition whose log ran with `log_signatures` off for a while has several offsets: signatures are
required from the first on, not from the second on, again from the third on. So a record forged where they are
required never counts: not while signatures are off, and not later.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.key_files import (
    DECIDER_KEY,
    DECIDERS,
    SigningKey,
    load_published,
)
from host.public_keys import PublicKeyFile
from schemas.batch_signature import BatchProof, parse_proof, proofs_again, sign_batch
from schemas.ed25519 import Verified, verifies
from schemas.record import Headers, OutRecord, RawRecord
from schemas.signed_from import (
    SIGNED_FROM,
    SignedFromUnreadable,
    Since,
    is_installed,
    is_on,
    owes,
    read_signed_from,
)

HEADER = "placet_signature"
REQUIRED, OFF = "required", "off"
CONTEXT = b"placet.event-batch.v1\x00"
CLAIM_TYPE = ("ce_type", b"placet.events.WriterClaimed")
TERM, TERM_MAX_DIGITS = "placet_term", 18
# A claim is signed for any offset of its partition.
ANYWHERE = -1
# Of more records together, the audit paths would cost more than another signature.
TOGETHER_MAX = 16
# Claims of rivals can land between a decider's claim and its first batch, which then lands that many offsets later.
# A reader that does not know the intended place tries up to this many.
DISPLACED_MAX = 3
# The header at its longest: a key id, two numbers, four hashes and the signature.
SIGNATURE_MAX_BYTES = 320
VERIFIED_MAX = 256

# A kid names one key for ever.
PublicKeys = Callable[[str], Ed25519PublicKey | None]

_ENCODE = msgspec.msgpack.Encoder().encode

logger = logging.getLogger(__name__)


class SignedText(NamedTuple):
    """A text with its signer's key id; the signature is in hex."""

    text: str
    kid: str
    signature: str

    def is_good(self, context: bytes, keys: PublicKeys) -> bool:
        """Returns True if one of these keys signed it for this purpose."""
        key = keys(self.kid)
        try:
            return key is not None and verifies(
                key, bytes.fromhex(self.signature), context + self.text.encode()
            )
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class EventSigner:
    """Signs a decider's batches and texts with its key."""

    key: SigningKey

    def sign(self, topic: str, partition: int, base: int, records: Sequence[OutRecord]) -> list[OutRecord]:
        """The records with their proofs, which are valid for this place only.

        Args:
            topic: the events topic.
            partition: its partition.
            base: the offset of the first record; `ANYWHERE` for a claim.
            records: a batch, in its order.
        """
        signed = []
        for start in range(0, len(records), TOGETHER_MAX):
            together = records[start : start + TOGETHER_MAX]
            leaves = [_leaf(record.key, record.headers, record.value) for record in together]
            context = _context(topic, partition, base if base == ANYWHERE else base + start)
            proofs = sign_batch(self.key.kid, self.key.private_key, leaves, context)
            signed += [
                record._replace(headers=(*record.headers, (HEADER, proof)))
                for record, proof in zip(together, proofs, strict=True)
            ]
        return signed

    def sign_text(self, context: bytes, text: str) -> SignedText:
        """Sign a text that is not an event, for one purpose."""
        signature = self.key.private_key.sign(context + text.encode())
        return SignedText(text, self.key.kid, signature.hex())


@dataclass(slots=True)
class TopicSignatures:
    """Verifies which records of one events topic a decider signed.

    Attributes:
        topic: its name.
        keys: the deciders' public keys.
        since: per partition, the offset from which records must be signed; 0 for a partition that is not named.
        reads_all: false for a reader that verifies only some records. It does not know where the last batch ended, so
            it cannot always tell a displaced record from a forged one, and does not call it that.
        forged: the number of refused records, not counting a decider's own displaced ones.
        displaced: the number of the latter. A writer signs its next batch for the place after its last batch, or
            after its claim. If a backlog of a deposed writer lands there first, the batch lands after that backlog,
            however long it is. Only a few places are tried, so that a forger gains nothing.
    """

    topic: str
    keys: PublicKeys
    since: Sequence[Since] = ()
    reads_all: bool = True
    forged: int = 0
    displaced: int = 0
    # Per partition: the last record that counted, and the displacement of the records after it.
    _last: dict[int, int] = field(default_factory=dict)
    _shifts: dict[int, int] = field(default_factory=dict)
    # The records that `foresee` verified, by their `id`, with the key's: kept here, so that no other object has it.
    _foreseen: dict[int, tuple[RawRecord, str]] = field(default_factory=dict)
    _verified: Verified = field(default_factory=lambda: Verified(VERIFIED_MAX))

    def foresee(self, raws: Sequence[RawRecord]) -> None:
        """Verify whole batches among the next records together: their paths are made once, and not read from each.

        What `vouches` answers stays the same: a batch that is not all there, or of which a single proof is not what a
        signer would write, is left to it.

        Args:
            raws: records in the order of the log, before any of them is given to `vouches`.
        """
        self._foreseen, at = {}, 0
        while at < len(raws):
            proof, count = _proof_of(raws[at]), 1
            # A forger can write any size: only of a batch that is signed all its records are behind it.
            if proof is not None and 0 < proof.size <= TOGETHER_MAX and not proof.leaf_index:
                together = raws[at : at + proof.size]
                if self._are_signed(proof, together):
                    count = len(together)
                    self._foreseen.update({id(raw): (raw, proof.kid) for raw in together})
            at += count

    def vouches(self, raw: RawRecord) -> bool:
        """Returns True if a decider signed the record for its place or need not have; other records are logged."""
        if self._is_foreseen(raw) or not self._is_owed(raw) or self._is_signed(raw):
            self._last[raw.partition] = raw.offset
            self._shifts.pop(raw.partition, None)
            return True
        for shift in self._likely_shifts(raw):
            if self._is_signed(raw, shift):
                self._tell_displaced(raw, shift)
                return False
        self.forged += 1
        self._tell_forged(raw)
        return False

    def doubt(self, raw: RawRecord) -> str:
        """Why a record does not count for a reader with these keys, in a few words; empty if it counts."""
        if not self._is_owed(raw) or self._is_signed(raw):
            return ""
        proof = _proof_of(raw)
        if proof is None:
            return "is not signed"
        if self.keys(proof.kid) is None:
            return f"is signed by the key {proof.kid}, which {DECIDERS} does not list"
        return "is not signed for this place"

    def _is_owed(self, raw: RawRecord) -> bool:
        return raw.partition >= len(self.since) or owes(self.since[raw.partition], raw.offset)

    def _likely_shifts(self, raw: RawRecord) -> Iterable[int]:
        """By how many offsets a record may be behind the place that it was signed for; the likely ones first."""
        proof = _proof_of(raw)
        if proof is None:
            return ()
        last = self._last.get(raw.partition)
        behind = _claim_of(raw) if last is None else last
        likely = [self._shifts.get(raw.partition, 0), *range(1, DISPLACED_MAX + 1)]
        if behind is None:
            return dict.fromkeys(shift for shift in likely if shift > 0)
        # A record is never displaced from a place where a record of its writer counted: it would be a copy.
        longest = raw.offset - proof.leaf_index - behind - 1
        return dict.fromkeys(shift for shift in (*likely, longest) if 0 < shift <= longest)

    def _tell_forged(self, raw: RawRecord) -> None:
        said = "%s/%d@%d is not signed by a decider for this place: it does not count"
        where = self.topic, raw.partition, raw.offset
        if self.reads_all:
            logger.critical(f"{said}; another program writes to this topic", *where)
        else:
            logger.warning(said, *where)

    def _tell_displaced(self, raw: RawRecord, shift: int) -> None:
        self.displaced += 1
        # One warning for all records that landed together.
        if self._shifts.get(raw.partition) == shift:
            return
        self._shifts[raw.partition] = shift
        logger.warning(
            "%s/%d@%d was signed for the place %d before, where another record landed: it does not count, nor do "
            "the records that landed with it, and a decider decides again",
            self.topic,
            raw.partition,
            raw.offset,
            shift,
        )

    def _is_foreseen(self, raw: RawRecord) -> bool:
        """Returns True if a record's batch was verified, and its key is still listed."""
        found = self._foreseen.get(id(raw))
        return found is not None and self.keys(found[1]) is not None

    def _are_signed(self, proof: BatchProof, together: Sequence[RawRecord]) -> bool:
        """Returns True if these are all the records of a batch, each with the proof that its signer wrote."""
        first = together[0]
        places = [(first.partition, first.offset + index) for index in range(len(together))]
        if len(together) != proof.size or [(raw.partition, raw.offset) for raw in together] != places:
            return False
        if any(CLAIM_TYPE in raw.headers for raw in together):
            return False
        # Before anything is hashed: no record has a place in two batches, so that each is hashed once at most.
        begin = b"%b.%d." % (proof.kid.encode(), proof.size)
        if not all(_begins(raw, b"%b%d." % (begin, index)) for index, raw in enumerate(together)):
            return False
        leaves = [_leaf(raw.key, raw.headers[:-1], raw.value) for raw in together]
        context = _context(self.topic, first.partition, first.offset)
        signed, proofs = proofs_again(proof, leaves, context)
        if [raw.headers[-1:] for raw in together] != [((HEADER, text),) for text in proofs]:
            return False
        key = self.keys(proof.kid)
        return key is not None and self._verified.fits(proof.kid, key, proof.signature, signed)

    def _is_signed(self, raw: RawRecord, shift: int = 0) -> bool:
        proof = _proof_of(raw)
        if proof is None:
            return False
        labels = raw.headers[:-1]
        is_claim = CLAIM_TYPE in labels
        if is_claim and shift:
            return False
        base = ANYWHERE if is_claim else raw.offset - proof.leaf_index - shift
        leaf = _leaf(raw.key, labels, raw.value)
        signed = proof.signed_bytes(leaf, _context(self.topic, raw.partition, base))
        # Looked up each time: a key that was withdrawn is no longer trusted.
        key = self.keys(proof.kid)
        return (
            signed is not None
            and key is not None
            and self._verified.fits(proof.kid, key, proof.signature, signed)
        )


@dataclass(frozen=True, slots=True)
class LogSignatures:
    """The offsets from which each events topic of a log is signed, and the keys. It can be sent to other processes.

    Attributes:
        keys: the deciders' public keys.
        since: topic → per partition, the offset from which records must be signed.
    """

    keys: PublicKeyFile
    since: Mapping[str, tuple[Since, ...]]

    def of(self, topic: str, *, reads_all: bool = True) -> TopicSignatures:
        """The signatures of one topic; for an unknown topic every record must be signed."""
        return TopicSignatures(topic, self.keys, self.since.get(topic, ()), reads_all)


def load_signatures(settings: Mapping[str, str]) -> LogSignatures | None:
    """How a role verifies records, by its settings `keys_dir` and `log_signatures`.

    Returns:
        None if `log_signatures` is `off` and always was: the operator decided that unsigned records count. At offsets
        for which signatures were required, records must be signed whatever was set later.

    Raises:
        SignedFromUnreadable: the setting has an unknown value, or the file beside the keys is missing or damaged.
    """
    if not signs(settings) and not _was_signed(settings):
        return None
    keys_dir = Path(settings["keys_dir"])
    path = keys_dir / SIGNED_FROM
    since = read_signed_from(path)
    _check_switched(path, since, on=signs(settings))
    return LogSignatures(PublicKeyFile(keys_dir / DECIDERS), since)


def _check_switched(path: Path, since: Mapping[str, Sequence[Since]], *, on: bool) -> None:
    """Refuse a setting that contradicts the file: new records would count unsigned, or not count at all."""
    if all(is_on(entry) == on for entries in since.values() for entry in entries):
        return
    raise SignedFromUnreadable(
        f"{path} does not say that signing was switched {REQUIRED if on else OFF}: stop every decider, then run "
        "`placet up` or `python -m ops.install`, which records it (docs/identity.md)."
    )


def _was_signed(settings: Mapping[str, str]) -> bool:
    # An installation that never signs needs no directory of keys.
    return "keys_dir" in settings and is_installed(Path(settings["keys_dir"]) / SIGNED_FROM)


def signs(settings: Mapping[str, str]) -> bool:
    """Returns True if a decider signs what it records, by its setting `log_signatures`.

    Raises:
        SignedFromUnreadable: the setting has an unknown value.
    """
    wanted = settings.get("log_signatures") or REQUIRED
    if wanted not in (REQUIRED, OFF):
        raise SignedFromUnreadable(f"log_signatures must be {REQUIRED} or {OFF}, not {wanted[:40]!r}.")
    return wanted == REQUIRED


def event_signer_of(settings: Mapping[str, str]) -> EventSigner:
    """The signer of a decider, with its key in `keys_dir`.

    Raises:
        KeysUnreadable: the key is damaged.
    """
    return EventSigner(load_published(Path(settings["keys_dir"]), DECIDER_KEY, DECIDERS))


def _begins(raw: RawRecord, text: bytes) -> bool:
    """Returns True if the proof in a record's last header begins with a text."""
    return bool(raw.headers) and raw.headers[-1][0] == HEADER and raw.headers[-1][1].startswith(text)


def _proof_of(raw: RawRecord) -> BatchProof | None:
    if not raw.headers or raw.headers[-1][0] != HEADER:
        return None
    try:
        return parse_proof(raw.headers[-1][1])
    except ValueError:
        return None


def _claim_of(raw: RawRecord) -> int | None:
    """The offset of the claim under which a record was written, according to its header."""
    text = dict(raw.headers).get(TERM, b"")
    return int(text) if text.isdigit() and len(text) <= TERM_MAX_DIGITS else None


def _leaf(key: bytes, labels: Headers, value: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + _ENCODE((key, labels, value))).digest()


@lru_cache(maxsize=1024)
def _context(topic: str, partition: int, base: int) -> bytes:
    name = topic.encode()
    place = partition.to_bytes(4, "big") + base.to_bytes(8, "big", signed=True)
    return CONTEXT + len(name).to_bytes(2, "big") + name + place

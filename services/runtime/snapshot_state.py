"""A folded partition as bytes, and back.

Only executions are worth a snapshot: definitions are few. The format is msgpack of the domain's own structs, so its
version changes with them; a snapshot of another version is ignored and the log is read instead.
"""

import zlib
from collections import OrderedDict
from operator import itemgetter
from types import GenericAlias
from typing import Any

import msgspec
from immutables import Map
from msgspec import Struct

from services.domain.trust.reading import Contrary
from services.runtime.answered import NewestAnswered
from services.runtime.contrary_facts import Name as ContraryName
from services.runtime.effects import RuleChange
from services.runtime.executions_partition import Entry, ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.rule_changes import RuleName
from services.runtime.rule_uses_partition import UsesEntry

# Raise it whenever the fold or any of its structs changes: older snapshots are then ignored.
FOLD_VERSION = 31
COMPRESSION = 1


class SavedLedger(Struct, frozen=True, kw_only=True, rename={"rule_changes": "errands"}):
    """The whole ledger."""

    claim: int
    writer: str
    next_offset: int
    last_record_id: str
    last_offset: int
    now_ms: int
    commands_through: int
    adopted_through: int
    attempting: int
    attempted_by: tuple[str, ...]
    idle_claims: int
    live: list[tuple[bytes, Entry]]
    recent: list[tuple[bytes, Entry]]
    forgotten: list[bytes]
    unreadable: list[tuple[bytes, str]]
    orphans: NewestAnswered
    uses: list[tuple[bytes, UsesEntry]]
    rule_changes: list[RuleChange]
    spent: list[RuleName]
    contrary: list[tuple[ContraryName, Contrary]]
    contrary_floor: Contrary | None
    contrary_values: list[tuple[ContraryName, Contrary]]
    contrary_values_floor: Contrary | None
    sampled: list[tuple[bytes, str, ContraryName, Contrary]]


def encode_ledger(ledger: Ledger, executions: ExecutionsPartition) -> bytes:
    """The ledger as compressed bytes."""
    saved = SavedLedger(
        claim=ledger.rule.claim,
        writer=ledger.writer,
        next_offset=ledger.next_offset,
        last_record_id=ledger.last_record_id,
        last_offset=ledger.last_offset,
        now_ms=ledger.now_ms,
        commands_through=ledger.commands_through,
        adopted_through=ledger.adopted_through,
        attempting=ledger.attempting,
        attempted_by=ledger.attempted_by,
        idle_claims=ledger.idle_claims,
        live=list(executions.live.items()),
        recent=list(executions.recent.items()),
        forgotten=sorted(executions.forgotten),
        unreadable=sorted(executions.unreadable.items()),
        orphans=executions.orphans,
        uses=sorted(executions.uses.entries.items(), key=itemgetter(0)),
        rule_changes=list(executions.rule_changes.every.values()),
        spent=sorted(executions.rule_changes.spent),
        contrary=list(executions.contrary.newest.items()),
        contrary_floor=executions.contrary.floor,
        contrary_values=list(executions.contrary.values.items()),
        contrary_values_floor=executions.contrary.values_floor,
        sampled=[(*key, *waiting) for key, waiting in executions.contrary.waiting.items()],
    )
    return zlib.compress(_ENCODER.encode(saved), COMPRESSION)


def restore_ledger(data: bytes, ledger: Ledger, executions: ExecutionsPartition) -> None:
    """Put the saved state into an empty ledger and its executions.

    Raises:
        ValueError: the bytes are not a saved ledger.
    """
    try:
        saved = _DECODER.decode(zlib.decompress(data))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not a saved ledger: {error}") from error
    ledger.rule.claim = saved.claim
    ledger.writer = saved.writer
    ledger.next_offset = saved.next_offset
    ledger.last_record_id = saved.last_record_id
    ledger.last_offset = saved.last_offset
    ledger.now_ms = saved.now_ms
    ledger.commands_through = saved.commands_through
    ledger.adopted_through = saved.adopted_through
    ledger.attempting = saved.attempting
    ledger.attempted_by = saved.attempted_by
    ledger.idle_claims = saved.idle_claims
    executions.live = dict(saved.live)
    executions.recent = OrderedDict(saved.recent)
    executions.forgotten = set(saved.forgotten)
    executions.unreadable = dict(saved.unreadable)
    executions.orphans = saved.orphans
    executions.uses.entries = dict(saved.uses)
    for change in saved.rule_changes:
        executions.rule_changes.add(change)
    executions.rule_changes.spent = set(saved.spent)
    executions.contrary.floor = saved.contrary_floor
    for name, contrary in saved.contrary:
        executions.contrary.note(name, contrary)
    executions.contrary.values_floor = saved.contrary_values_floor
    for name, contrary in saved.contrary_values:
        executions.contrary.note_value(name, contrary)
    for key, call_id, name, contrary in saved.sampled:
        executions.contrary.wait((key, call_id), name, contrary)
    for key, entry in executions.live.items():
        executions.note_reserving(key, entry.state)


def _plain(value: Any) -> Any:
    if isinstance(value, Map):
        # Sorted, so that the same state gives the same bytes in every process.
        return dict(sorted(value.items()))
    raise TypeError(f"{type(value).__name__} cannot be saved")


def _typed(kind: Any, value: Any) -> Any:
    # msgspec passes `Map[str, Call]` as the type, and a plain dict as the value.
    return Map(msgspec.convert(value, GenericAlias(dict, kind.__args__)))


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)
_DECODER = msgspec.msgpack.Decoder(SavedLedger, dec_hook=_typed)

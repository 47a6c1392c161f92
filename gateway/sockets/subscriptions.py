"""Subscribing: which channels a reader may have, what it is shown first, and where it goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gateway.identity.doors import check_reads, check_sees
from gateway.operations import calls, executions
from gateway.operations.plan import Gate
from gateway.problems import Problem, not_found
from gateway.sockets.cursor import CursorRefused
from gateway.sockets.hub import Hub, Receiver
from gateway.sockets.messages import EVENTS, HOLDS
from projections.folds.calls import call_json
from projections.folds.executions import execution_json
from projections.folds.holds import hold_json
from schemas.actor import Actor
from schemas.refusals import Refusal

CHANNELS_MAX = 1_000
SNAPSHOT_MAX = 1_000
_CHANNEL = re.compile(
    r"(?:holds|events|executions:(?P<execution>[A-Za-z0-9._:-]{1,128})"
    r"|calls:(?P<of>[A-Za-z0-9._:-]{1,128})/(?P<call>[A-Za-z0-9._:-]{1,128}))"
)

Snapshot = Callable[[], list[dict[str, Any]]]


async def subscribe(
    hub: Hub, gate: Gate, receiver: Receiver, channels: Sequence[str], cursor: str | None
) -> None:
    """Give a reader channels: first a snapshot of each, or with a cursor what it missed; then what comes.

    What it may read is looked at before anything is given; between the snapshot and the first message after it
    nothing can happen unseen, for both are in one turn of the event loop.

    Raises:
        Problem: a channel that there is not, or that this reader may not have; a cursor that is none of ours.
    """
    wanted = list(dict.fromkeys(channels))
    if not 1 <= len(wanted) <= CHANNELS_MAX or len(receiver.channels) + len(wanted) > CHANNELS_MAX:
        raise Problem(Refusal.INVALID, f"subscribe to 1 to {CHANNELS_MAX} channels")
    shown = [(channel, await _snapshot(gate, receiver.actor, channel)) for channel in wanted]
    live = gate.live
    if cursor is not None:
        try:
            vector = live.position.key.read(cursor)
        except CursorRefused as error:
            raise Problem(Refusal.INVALID, f"cursor: {error}") from error
        if not hub.replay(receiver, set(wanted), vector, live):
            receiver.resync()
            return
        hub.subscribe(receiver, wanted)
        return
    hub.subscribe(receiver, wanted)
    for channel, snapshot in shown:
        items = snapshot()
        frame = {
            "type": "snapshot",
            "cursor": live.position.cursor(),
            "channel": channel,
            "items": items[:SNAPSHOT_MAX],
            "total": len(items),
        }
        receiver.push(orjson.dumps(frame))


async def _snapshot(gate: Gate, actor: Actor, channel: str) -> Snapshot:
    match = _CHANNEL.fullmatch(channel)
    if match is None:
        raise Problem(Refusal.INVALID, f"there is no channel {channel[:200]!r}")
    if channel == HOLDS:
        check_reads(actor)
        return lambda: [hold_json(row) for row in gate.live.cache.open_holds(actor.tenant, actor.project)]
    if channel == EVENTS:
        check_reads(actor)
        return list
    if match["execution"]:
        subject = executions.subject_of(actor, match["execution"])
        to_json = execution_json
    else:
        subject = calls.subject_of(actor, match["of"], match["call"])
        to_json = call_json
    check_sees(actor, await gate.reader.read(subject))

    def now() -> list[dict[str, Any]]:
        row = gate.reader.at_hand(subject)
        if row is None:
            raise not_found(subject.kind)
        return [to_json(row)]

    return now

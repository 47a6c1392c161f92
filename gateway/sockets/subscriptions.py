"""Subscriptions: the channels that a reader may have, what is sent first, and where it continues."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from gateway.deciding import sees_hold
from gateway.identity.authentication import check_reads, check_sees, reads_project
from gateway.live.cursor import ALL_GIVEN, EARLIEST, CursorRefused, Vector
from gateway.operations import calls, executions
from gateway.operations.plan import Gate
from gateway.problems import Problem, not_found
from gateway.pushes.hub import Hub
from gateway.pushes.messages import EVENTS, HOLDS
from gateway.pushes.resyncs import Resync
from gateway.pushes.returning import Returning
from gateway.settings import Limits
from gateway.shares.work import owner_of
from gateway.sockets.outgoing import OutgoingFrames
from gateway.sockets.snapshots import (
    Shown,
    SnapshotsTooLarge,
    View,
    begin_anew,
    is_unfinished,
    snapshot_frames,
    unchanged,
)
from gateway.sockets.sse import LAST_EVENT_ID
from projections.folds.executions import execution_json
from projections.folds.holds import hold_json
from schemas.actor import Actor
from schemas.ids import CLIENT_ID
from schemas.refusals import Refusal

CHANNELS_MAX = 1_000
_CHANNEL = re.compile(
    rf"(?:holds|events|executions:(?P<execution>{CLIENT_ID})"
    rf"|calls:(?P<of>{CLIENT_ID})/(?P<call>{CLIENT_ID}))"
)

Look = Callable[[], Shown]


class Subscriber(Returning, Protocol):
    """A reader that can receive snapshots.

    Attributes:
        cursor_name: what its client calls the cursor that it comes with: a field, a parameter or a header.
    """

    cursor_name: str

    @property
    def limits(self) -> Limits:
        """The limits on what may wait for it."""
        ...

    @property
    def out(self) -> OutgoingFrames:
        """The queue of its messages."""
        ...


async def subscribe(
    hub: Hub,
    gate: Gate,
    receiver: Subscriber,
    channels: Sequence[str],
    cursor: str | None,
    also: Sequence[Look] = (),
    view: View = unchanged,
) -> Coroutine[Any, Any, None] | None:
    """Subscribe a reader to channels: first a snapshot of each, or with a cursor what it missed; then new messages.

    Its permissions are checked before anything is sent. The snapshot is of one moment; it is written in slices, one
    snapshot at a time for each subject, and events that happen meanwhile are sent after it.

    Args:
        hub: sends the new messages.
        gate: has the state.
        receiver: the reader.
        channels: 1 to `CHANNELS_MAX`.
        cursor: of the last message that the reader has; `EARLIEST` to begin with the first one.
        also: what the snapshots show of the same moment after the channels, each under a name of its own. The caller
            has checked that this reader may see it.
        view: what this reader's snapshots show of a channel.

    Returns:
        With a cursor, the rest of the work: it takes as long as the reader takes to catch up.

    Raises:
        Problem: a channel does not exist, or this reader may not have it; the cursor is not valid here; 413, the
            executions and calls among the channels are together too large to be shown.
    """
    wanted = list(dict.fromkeys(channels))
    if not 1 <= len(wanted) <= CHANNELS_MAX or len(receiver.channels) + len(wanted) > CHANNELS_MAX:
        raise Problem(Refusal.INVALID, f"subscribe to 1 to {CHANNELS_MAX} channels")
    looks = [_viewed(view, await _look(gate, receiver.actor, channel)) for channel in wanted]
    vector = None if cursor is None else _place(gate, cursor, receiver.cursor_name)
    if cursor is None or vector is None:
        async with gate.work.turn(owner_of(receiver.actor)):
            await _show(hub, gate, receiver, wanted, [*looks, *also])
        return None
    if is_unfinished(vector):
        shown = dict(zip(wanted, looks, strict=True))
        return await _begin_again(hub, gate, receiver, shown, also, cursor)
    return gate.catch_ups.run(receiver, set(wanted), cursor, vector)


def _viewed(view: View, look: Look) -> Look:
    return lambda: view(look())


def _place(gate: Gate, cursor: str, name: str) -> Vector:
    return gate.live.position.key.start() if cursor == EARLIEST else read_cursor(gate, cursor, name)


def read_cursor(gate: Gate, cursor: str, name: str = LAST_EVENT_ID) -> Vector:
    """Return the position that a cursor names; `name` is what its client calls it.

    Raises:
        Problem: 422 invalid, it is not one of this installation's log.
    """
    try:
        return gate.live.position.key.read(cursor)
    except CursorRefused as error:
        raise Problem(Refusal.INVALID, f"{name}: {error}") from error


async def _begin_again(
    hub: Hub, gate: Gate, receiver: Subscriber, looks: dict[str, Look], also: Sequence[Look], cursor: str
) -> Coroutine[Any, Any, None] | None:
    """Repeat the snapshots that were not complete; the channel of events, which has none, continues from the cursor.

    Until it does, the cursor of every message leads back to that cursor.
    """
    before, receiver.behind = receiver.behind, cursor if EVENTS in looks else receiver.behind
    shown = {channel: look for channel, look in looks.items() if channel != EVENTS}
    try:
        if shown:
            async with gate.work.turn(owner_of(receiver.actor)):
                if not await _show(hub, gate, receiver, list(shown), [*shown.values(), *also]):
                    return None
    finally:
        receiver.behind = before
    if EVENTS not in looks:
        return None
    vector = read_cursor(gate, cursor, receiver.cursor_name)._replace(given=ALL_GIVEN)
    return gate.catch_ups.run(receiver, {EVENTS}, cursor, vector)


async def _show(hub: Hub, gate: Gate, receiver: Subscriber, wanted: list[str], looks: list[Look]) -> bool:
    """Subscribe a reader to the channels from this moment on, and write their state at this moment.

    Returns:
        False if the reader was too slow for it, and was told to subscribe anew.
    """
    actor, out = receiver.actor, receiver.out
    shown = [look() for look in looks]
    before = set(receiver.channels)
    hub.subscribe(receiver, wanted)
    out.hold_back(begin_anew(gate.live.position))
    # The next events must have room behind the snapshots, which all wait at once.
    bytes_max = receiver.limits.queue_bytes // 2
    try:
        frames = await snapshot_frames(
            shown, gate.live.position, bytes_max, gate.work, owner_of(actor), receiver.behind
        )
    except SnapshotsTooLarge as error:
        hub.unsubscribe(receiver, set(wanted) - before)
        out.show(())
        raise Problem(Refusal.TOO_LARGE, str(error)) from error
    if wanted[0] not in receiver.channels:
        return False
    if not out.show(frames):
        receiver.resync(Resync.TOO_SLOW)
        return False
    return True


def _holds(gate: Gate, actor: Actor) -> Look:
    """The open holds that a person may see: all of the project, or those that this person may decide."""
    if actor.agent is not None:
        check_reads(actor)
    live = gate.live
    sees = None if reads_project(actor) else lambda row: sees_hold(live, row, actor)
    return lambda: Shown(HOLDS, live.cache.open_holds(actor.tenant, actor.project), hold_json, sees)


async def _look(gate: Gate, actor: Actor, channel: str) -> Look:
    match = _CHANNEL.fullmatch(channel)
    if match is None:
        raise Problem(Refusal.INVALID, f"there is no channel {channel[:200]!r}")
    if channel == HOLDS:
        return _holds(gate, actor)
    if channel == EVENTS:
        check_reads(actor)
        return lambda: Shown(channel, (), dict)
    if match["execution"]:
        subject = executions.subject_of(actor, match["execution"])
        to_json = execution_json
    else:
        subject = calls.subject_of(actor, match["of"], match["call"])
        to_json = partial(gate.grants.call_json, actor=actor)
    row = await gate.reader.read(subject)
    check_sees(actor, row["agent"])

    def now() -> Shown:
        row = gate.reader.at_hand(subject)
        if row is None:
            raise not_found(subject.kind)
        return Shown(channel, [row], to_json)

    return now

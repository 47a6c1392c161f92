"""Fan-out: each message is serialized once and put into the queue of every socket that wants it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.deciding import sees_hold
from gateway.identity.authentication import acts_for, reads_project
from gateway.identity.grants import is_consumable
from gateway.live.completion import NewRow
from gateway.live.facts import Group
from gateway.live.live import DEFINITIONS_LANE, Live
from gateway.pushes.messages import HOLDS, CallSubject, Push, channels_of, concerns, frame, pushes_of
from gateway.pushes.resyncs import Resync
from gateway.shares.work import Owner, owner_of, processor_s
from projections.tables.calls import CallRow
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.ids import LOG_KEYS, split_rule_uses_key

Project = tuple[str, str]


class Receiver(Protocol):
    """A socket or stream, as the hub uses it."""

    channels: set[str]
    # While it catches up: the cursor of the last message it was sent, which all messages to it carry until then.
    # Without this and without channels a message has no cursor: what its reader missed before is unknown.
    behind: str | None

    @property
    def actor(self) -> Actor:
        """The reader."""
        ...

    def push(self, message: bytes) -> None:
        """Queue a message; never blocks, and never raises if the reader is slow."""
        ...

    def hide(self, hold: HoldRow) -> None:
        """Note that a hold was handed on: a reader who has seen it before no longer sees it."""
        ...

    def resync(self, reason: Resync) -> None:
        """Tell the reader that messages were lost and that it must subscribe anew."""
        ...


# A message to more receivers of one subject is charged to it: to the few of a person it costs next to nothing.
FEW = 16


def no_charge(owner: Owner, seconds: float) -> None:
    """Charge nothing."""


def no_token(row: CallRow) -> str | None:
    """Return no token."""
    return None


@dataclass(slots=True)
class Hub:
    """The receivers by project and channel.

    `token_of` makes the token of a released call. Only messages to receivers who may consume the grant contain it.
    `charge` counts processor time for a subject with many receivers.
    """

    token_of: Callable[[CallRow], str | None] = no_token
    charge: Callable[[Owner, float], None] = no_charge
    _by_project: dict[Project, dict[str, set[Receiver]]] = field(default_factory=dict)
    _proposers: dict[CallSubject, set[Receiver]] = field(default_factory=dict)
    _expected: dict[Receiver, set[CallSubject]] = field(default_factory=dict)
    # Receivers of the channel of holds who may not read their project: they get only the holds of `sees_hold`.
    _asked: set[Receiver] = field(default_factory=set)

    def subscribe(self, receiver: Receiver, channels: Iterable[str]) -> None:
        """Send a receiver the messages of channels of its own project from now on."""
        wanted = self._by_project.setdefault(_project(receiver), {})
        for channel in channels:
            wanted.setdefault(channel, set()).add(receiver)
            receiver.channels.add(channel)
            if channel == HOLDS and not reads_project(receiver.actor):
                self._asked.add(receiver)

    def unsubscribe(self, receiver: Receiver, channels: Iterable[str]) -> None:
        """Stop sending a receiver the messages of channels."""
        wanted = self._by_project.get(_project(receiver), {})
        for channel in list(channels):
            receiver.channels.discard(channel)
            wanted.get(channel, set()).discard(receiver)
            if not wanted.get(channel):
                wanted.pop(channel, None)
        if not wanted:
            self._by_project.pop(_project(receiver), None)

    def expect_decision(self, receiver: Receiver, subject: CallSubject) -> None:
        """Send a receiver the decision on a call, once, without a subscription."""
        self._proposers.setdefault(subject, set()).add(receiver)
        self._expected.setdefault(receiver, set()).add(subject)

    def forget(self, receiver: Receiver) -> None:
        """Remove a receiver that is gone: no more messages are sent to it."""
        self.unsubscribe(receiver, receiver.channels)
        self._asked.discard(receiver)
        for subject in self._expected.pop(receiver, set()):
            receivers = self._proposers[subject]
            receivers.discard(receiver)
            if not receivers:
                del self._proposers[subject]

    def publish(self, group: Group, live: Live) -> None:
        """Send a group's messages to the receivers that want them."""
        wanted = self._wanted(group)
        if wanted is None and not self._has_proposer(group):
            return
        pushes = pushes_of(group)
        for index, push in enumerate(pushes, 1):
            started = processor_s()
            if receivers := self._receivers(push, wanted or {}, live):
                cursor = live.position.cursor_within(group.lane, index, len(pushes))
                self._give(push, receivers, cursor)
                if len(receivers) > FEW:
                    self._charge_many(receivers, processor_s() - started)
        if wanted:
            self._resync_unserved(group, wanted, pushes)

    def resync(self, rows: Sequence[NewRow]) -> None:
        """Tell the receivers that wanted a message about these rows, of which there was none."""
        receivers = set[Receiver]()
        for kind, row in rows:
            wanted = self._by_project.get((row["tenant"], row["project"]), {})
            for channel in channels_of(row, *([HOLDS] if kind == "hold" else [])):
                receivers |= wanted.get(channel, set())
        for receiver in receivers:
            receiver.resync(Resync.GONE)

    def _charge_many(self, receivers: set[Receiver], seconds: float) -> None:
        """Charge each subject that has many of the receivers of a message its part."""
        for owner, count in Counter(owner_of(receiver.actor) for receiver in receivers).items():
            if count > FEW:
                self.charge(owner, seconds * count / len(receivers))

    def _give(self, push: Push, receivers: set[Receiver], cursor: str) -> None:
        """Send one message to all readers, and another with the grant's token to those who may consume it."""
        if apart := {one for one in receivers if one.behind is not None or not one.channels}:
            self._give_apart(push, apart)
            receivers = receivers - apart
        trusted: set[Receiver] = set()
        if (row := push.row) is not None and is_consumable(row):
            trusted = {receiver for receiver in receivers if acts_for(receiver.actor, row["agent"])}
        if row is not None and trusted:
            message = frame(push, cursor, self.token_of(row))
            for receiver in trusted:
                receiver.push(message)
        if others := receivers - trusted:
            message = frame(push, cursor)
            for receiver in others:
                receiver.push(message)

    def _give_apart(self, push: Push, receivers: set[Receiver]) -> None:
        """Send each receiver a message of its own: with a cursor ahead of what it was sent, it would miss the rest.

        A receiver without a subscription may have missed messages before this connection: its message has no cursor.
        """
        for receiver in receivers:
            is_trusted = (
                push.row is not None
                and is_consumable(push.row)
                and acts_for(receiver.actor, push.row["agent"])
            )
            token = self.token_of(push.row) if is_trusted and push.row is not None else None
            receiver.push(frame(push, receiver.behind, token))

    def _wanted(self, group: Group) -> dict[str, set[Receiver]] | None:
        project = project_of(group)
        return None if project is None else self._by_project.get(project)

    def _has_proposer(self, group: Group) -> bool:
        if not self._proposers:
            return False
        calls = (fact.call for fact in group.facts if fact.call is not None)
        return any((group.key, call["call_id"]) in self._proposers for call in calls)

    def _receivers(self, push: Push, wanted: dict[str, set[Receiver]], live: Live) -> set[Receiver]:
        receivers: set[Receiver] = set()
        for channel in push.channels:
            receivers |= wanted.get(channel, set())
        if push.hold is not None and self._asked:
            hold, asked = push.hold, receivers & self._asked
            blind = {receiver for receiver in asked if not sees_hold(live, hold, receiver.actor)}
            receivers -= blind
            # Only a delegation takes a hold from somebody: from the delegate before.
            if push.type == "hold_changed" and hold["delegations"] is not None:
                for receiver in blind:
                    receiver.hide(hold)
        if push.call is not None and push.row is not None:
            for receiver in self._proposers.pop(push.call, set()):
                self._expected[receiver].discard(push.call)
                # A proposer that was refused may have named another agent's call.
                if reads_project(receiver.actor) or acts_for(receiver.actor, push.row["agent"]):
                    receivers.add(receiver)
        return receivers

    def _resync_unserved(self, group: Group, wanted: dict[str, set[Receiver]], pushes: list[Push]) -> None:
        """If a row is not cached, there is no message: the receivers that wanted it are told to subscribe anew."""
        for channel in unserved(group, wanted, pushes):
            for receiver in list(wanted[channel]):
                receiver.resync(Resync.GONE)


def unserved(group: Group, wanted: Collection[str], pushes: Sequence[Push]) -> list[str]:
    """Return the wanted channels that a group concerns but has no message for."""
    served = {channel for push in pushes for channel in push.channels}
    return [channel for channel in concerns(group) if channel in wanted and channel not in served]


def project_of(group: Group) -> Project | None:
    """Return a group's tenant and project; None for records of the log itself and of the uses of rules."""
    if group.lane == DEFINITIONS_LANE or group.key.startswith(LOG_KEYS):
        return None
    if split_rule_uses_key(group.key) is not None:
        return None
    tenant, project, _ = group.key.decode().split("/", 2)
    return tenant, project


def _project(receiver: Receiver) -> Project:
    return receiver.actor.tenant, receiver.actor.project

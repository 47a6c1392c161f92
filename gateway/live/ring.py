"""The recent past in memory: repeats are answered from it, and sockets resume from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.live.cursor import ALL_GIVEN, Vector
from gateway.live.facts import Group

Owner = tuple[bytes, ...]

MAX_GROUPS = 20_000
MAX_BYTES = 96 * 1024 * 1024


@dataclass(slots=True)
class Ring:
    """The last groups of all lanes in the order of arrival, limited in number and bytes.

    `gone_through` is, per lane, the last offset that is no longer (or never was) here, with its mark.
    """

    gone_through: list[int]
    gone_marks: list[int]
    max_groups: int = MAX_GROUPS
    max_bytes: int = MAX_BYTES
    _groups: deque[tuple[Group, int]] = field(default_factory=deque)
    _by_command: dict[tuple[Owner, str], dict[bytes, Group]] = field(default_factory=dict)
    _reuses: dict[tuple[bytes, str, str], Group] = field(default_factory=dict)
    _last_of_key: dict[bytes, Group] = field(default_factory=dict)
    _marks: dict[tuple[int, int], int] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, group: Group) -> None:
        """Add the newest group; the oldest leave when there are too many."""
        size = group.size_bytes()
        self._groups.append((group, size))
        self._bytes += size
        self._marks[group.lane, group.last_offset] = group.mark
        self._last_of_key[group.key] = group
        if group.command_id and group.refuses_reuse:
            self._reuses[group.key, group.command_id, group.digest] = group
        elif group.command_id:
            # The first trace of a command is its answer; no later trace may replace it.
            by_key = self._by_command.setdefault((_owner_of(group.key), group.command_id), {})
            by_key.setdefault(group.key, group)
        while len(self._groups) > self.max_groups or (self._bytes > self.max_bytes and len(self._groups) > 1):
            self._drop_oldest()

    def of_command(self, key: bytes, command_id: str, digest: str) -> Group | None:
        """Return the group that answers a command with this body, if it is recent.

        That is the first trace of its id on its key, which may be of another body, or else the refusal of this one.
        If there is neither, it is the first trace of its id on another key of the same tenant and project: a client
        that derives command ids from content has then used one id for two commands.
        """
        by_key = self._by_command.get((_owner_of(key), command_id))
        if by_key is None:
            return self._reuses.get((key, command_id, digest))
        own = by_key.get(key) or self._reuses.get((key, command_id, digest))
        return own or next(iter(by_key.values()), None)

    def last_offset_of(self, key: bytes, lane: int) -> int:
        """Return an offset after which nothing of this key has happened: a view read that far shows it as it is."""
        group = self._last_of_key.get(key)
        return self.gone_through[lane] if group is None else group.last_offset

    def knows(self, key: bytes) -> bool:
        """Return True if an event of this key is recent."""
        return key in self._last_of_key

    def since(self, vector: Vector) -> Iterator[tuple[Group, int]]:
        """Yield everything after the vector in order of arrival, each with the number of its messages already sent.

        The command that the vector is inside of comes first: a cursor can be inside of one command only.
        """
        if vector.given != ALL_GIVEN:
            place = (vector.lane, vector.offsets[vector.lane])
            yield from (
                (group, vector.given) for group, _ in self._groups if (group.lane, group.last_offset) == place
            )
        for group, _ in self._groups:
            if group.last_offset > vector.offsets[group.lane]:
                yield group, 0

    def has(self, lane: int, offset: int) -> bool:
        """Return True if the command that ends at an offset is here."""
        return (lane, offset) in self._marks

    def connects(self, lane: int, offset: int, mark: int) -> bool:
        """Return True if a position is of this very log, and everything of its lane after it is here."""
        if offset == self.gone_through[lane]:
            return mark == self.gone_marks[lane]
        return self._marks.get((lane, offset)) == mark

    def _drop_oldest(self) -> None:
        group, size = self._groups.popleft()
        self._bytes -= size
        self.gone_through[group.lane] = group.last_offset
        self.gone_marks[group.lane] = group.mark
        self._marks.pop((group.lane, group.last_offset), None)
        self._drop_command(group)
        if self._last_of_key.get(group.key) is group:
            del self._last_of_key[group.key]

    def _drop_command(self, group: Group) -> None:
        owner = _owner_of(group.key)
        by_key = self._by_command.get((owner, group.command_id), {})
        if by_key.get(group.key) is group:
            del by_key[group.key]
            if not by_key:
                del self._by_command[owner, group.command_id]
        if self._reuses.get((group.key, group.command_id, group.digest)) is group:
            del self._reuses[group.key, group.command_id, group.digest]


def _owner_of(key: bytes) -> Owner:
    """Tenant and project of an execution's key; for a definition's key, its first two parts."""
    return tuple(key.split(b"/", 2)[:2])

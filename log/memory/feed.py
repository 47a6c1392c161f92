"""The command feed of a memory log: a group whose members share partitions, and its members."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from log.errors import LogUnreachable, MemberReplaced
from log.memory.storage import Partition, Signal
from log.places import TopicPartition
from schemas.record import RawRecord

FindPartition = Callable[[TopicPartition], Partition]


class Group:
    """The members of one group in the order in which they joined."""

    def __init__(self, name: str, partitions: Sequence[TopicPartition]) -> None:
        self.name = name
        self._partitions = sorted(partitions)
        self._members: list[MemoryFeed] = []

    def join(self, member: "MemoryFeed") -> None:
        """Add a member and rebalance, or let it replace the member of the same name."""
        for index, other in enumerate(self._members):
            if other.name == member.name and other is not member:
                self._members[index] = member
                member.assign(other.assigned)
                other.replaced()
                return
        self._members.append(member)
        self._rebalance()

    def leave(self, member: "MemoryFeed") -> None:
        """Remove a member and rebalance."""
        if member in self._members:
            self._members.remove(member)
            self._rebalance()

    def _rebalance(self) -> None:
        shares = share(self._partitions, [member.assigned for member in self._members])
        for member, assigned in zip(self._members, shares, strict=True):
            member.assign(assigned)


def share(
    partitions: Sequence[TopicPartition], held: Sequence[frozenset[TopicPartition]]
) -> list[frozenset[TopicPartition]]:
    """Share partitions evenly; each member keeps as many of its partitions as its share allows."""
    if not held:
        return []
    each, more = divmod(len(partitions), len(held))
    quotas = [each + (index < more) for index in range(len(held))]
    shares = [set(sorted(mine)[:quota]) for mine, quota in zip(held, quotas, strict=True)]
    free = iter([tp for tp in partitions if not any(tp in mine for mine in shares)])
    for mine, quota in zip(shares, quotas, strict=True):
        mine.update(next(free) for _ in range(quota - len(mine)))
    return [frozenset(mine) for mine in shares]


class MemoryFeed:
    """See `CommandFeed`."""

    def __init__(self, name: str, group: Group, find: FindPartition, signal: Signal) -> None:
        self.name = name
        self._group = group
        self._find = find
        self._signal = signal
        self.assigned: frozenset[TopicPartition] = frozenset()
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._changed = False
        self._closed = False
        self._replaced = False

    async def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[RawRecord]]:
        """See `CommandFeed.poll`."""
        await asyncio.sleep(0)
        found = self._take()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not (found or self._changed):
                    await self._signal.wait()
                    found = self._take()
        except TimeoutError:
            return {}
        self._changed = False
        return found

    def assignment(self) -> frozenset[TopicPartition]:
        """See `CommandFeed.assignment`."""
        self._next = {tp: offset for tp, offset in self._next.items() if tp in self.assigned}
        self._paused &= self.assigned
        return self.assigned

    def behind(self) -> int:
        """See `CommandFeed.behind`."""
        started = self._next.keys() & self.assigned
        return sum(max(0, self._find(tp).end - self._next[tp]) for tp in started)

    def held_back(self) -> dict[TopicPartition, int]:
        """See `CommandFeed.held_back`: a memory log has no transactions."""
        return {}

    def start_from(self, tp: TopicPartition, offset: int) -> None:
        """See `CommandFeed.start_from`."""
        if tp in self.assigned:
            self._next[tp] = offset
            self._signal.notify()

    def pause(self, tp: TopicPartition) -> None:
        """See `CommandFeed.pause`."""
        if tp in self.assigned:
            self._paused.add(tp)

    def resume(self, tp: TopicPartition) -> None:
        """See `CommandFeed.resume`."""
        self._paused.discard(tp)
        self._signal.notify()

    async def close(self) -> None:
        """See `CommandFeed.close`."""
        if not self._closed:
            self._closed = True
            self.assign(frozenset())
            self._group.leave(self)
            self._signal.notify()

    def assign(self, assigned: frozenset[TopicPartition]) -> None:
        """Accept an assignment of the group."""
        self._changed = assigned != self.assigned
        self.assigned = assigned
        self._signal.notify()

    def replaced(self) -> None:
        """End the feed, since another process joined under this member's name; `poll` raises it."""
        self._replaced = True
        self._signal.notify()

    def _take(self) -> dict[TopicPartition, Sequence[RawRecord]]:
        if self._closed:
            raise LogUnreachable("memory", "the feed is closed")
        if self._replaced:
            raise MemberReplaced(self._group.name, self.name)
        found: dict[TopicPartition, Sequence[RawRecord]] = {}
        for tp in sorted((self._next.keys() & self.assigned) - self._paused):
            partition = self._find(tp)
            if records := partition.slice(self._next[tp], partition.end):
                found[tp] = records
                self._next[tp] = records[-1].offset + 1
        return found

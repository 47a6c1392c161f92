"""Rebuilding a view from the log, beside the live one.

1. Create an empty view beside the live one.
2. Read the log from its beginning up to the live view's position, or to the log's end if no view can be compared. The
   beginning is offset 0, except for the dead letters, which the log deletes after 30 days.
3. Take a snapshot of the live view, read on exactly to its position, and compare: both have read the same records.
4. Read on to the end of the log, and check the result against the audit heads that were stored outside before that.
5. If nothing differs, and the live view was not swapped meanwhile, put the rebuilt view in its place.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from log.errors import LogError
from log.kafka.follower import Follower
from log.places import Bounds, TopicPartition
from projections.audit.heads import SignedHeads, check_all
from projections.compare import Comparison, Forgotten, compare
from projections.log_position import check_begun
from projections.projector import Writer, new_writer
from projections.store.port import ViewDamaged, ViewHeld, ViewOutdated, ViewReplaced, ViewStore
from projections.store.urls import exists, identity_of, new_generation, open_view, remove_leftovers
from schemas.event_signatures import LogSignatures
from schemas.topics import Topics

POLL_MS = 200
STALLED_AFTER_S = 30.0

Offsets = Mapping[TopicPartition, int]
Progress = Callable[[int, int], None]
Bulk = Callable[[ViewStore, Offsets, Progress], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to rebuild: `target_url` from the log, to be compared with the live view at `live_url`.

    If both are the same, a view that differs is swapped in only with `force`. `heads` are the log's signed heads;
    a view that disagrees with them is never swapped in. `signatures` verifies which records a decider signed.
    """

    live_url: str
    target_url: str
    force: bool = False
    heads: SignedHeads | None = None
    signatures: LogSignatures | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a rebuild.

    `comparison` is None if nothing could be compared, and `note` says why. `refused` says why the rebuilt
    view was not put in place; it is empty if it was. `records` were read in `read_s` seconds.
    """

    records: int
    read_s: float
    comparison: Comparison | None
    note: str = ""
    refused: str = ""


@dataclass(slots=True)
class Reading:
    """Reads the log into one view, exactly up to given offsets.

    `firsts` are the first offsets of partitions that do not begin at 0.
    """

    tail: Follower
    writer: Writer
    progress: Progress
    firsts: Offsets = field(default_factory=dict)

    async def up_to(self, targets: Offsets) -> None:
        """Read each partition up to its target.

        Args:
            targets: per partition, the first offset not to read; one already past its target is left alone.
        """
        offsets = {at: self._next(at) for at in targets}
        left = {at for at, end in targets.items() if offsets[at] < end}
        total = count_records(targets, self.firsts)
        if left:
            self.tail.stand_at({at: offsets[at] for at in left})
        stalled_at = _now_s() + STALLED_AFTER_S
        while left:
            polled = await self.tail.poll_on(POLL_MS)
            pieces = [(at, [raw for raw in records if raw.offset < targets[at]]) for at, records in polled]
            self.writer.write([(at, records) for at, records in pieces if records])
            reached = {at: await self.tail.position(at) for at in left}
            left = {at for at in left if reached[at] < targets[at]}
            self.progress(total - sum(targets[at] - reached[at] for at in left), total)
            if polled:
                stalled_at = _now_s() + STALLED_AFTER_S
            elif _now_s() > stalled_at:
                raise LogError(f"No record came from {min(left)} for {STALLED_AFTER_S:.0f} s: check Kafka.")

    def _next(self, at: TopicPartition) -> int:
        position, first = self.writer.positions.get(at), self.firsts.get(at, 0)
        return first if position is None else max(first, position.next_offset)


def count_records(targets: Offsets, firsts: Offsets) -> int:
    """How many offsets lie between the log's beginning and the targets."""
    return sum(max(0, end - firsts.get(at, 0)) for at, end in targets.items())


async def rebuild(
    plan: Plan, tail: Follower, topics: Topics, progress: Progress, bulk: Bulk | None = None
) -> Outcome:
    """Rebuild, compare and swap, as the module's docstring says.

    Args:
        plan: what to rebuild.
        tail: a connected follower.
        topics: the topics of the installation.
        progress: called with the number of records read and their total.
        bulk: reads step 2 with more processes (`rebuild_workers`); None reads it in this one.

    Raises:
        LogError: the log cannot be read from its beginning, or is not the one that was signed.
        ViewError: a view cannot be read or written.
        HeadsUnusable: the heads cannot be read.
    """
    replaced = identity_of(plan.target_url)
    remove_leftovers(plan.target_url)
    generation = new_generation(plan.target_url)
    try:
        if not plan.force:
            generation.check()
        outcome = await _rebuild(plan, generation.store, tail, topics, progress, bulk)
        generation.store.close()
        if not outcome.refused:
            generation.swap(replaced, plan.force)
            return outcome
    except (ViewReplaced, ViewHeld) as error:
        outcome = Outcome(0, 0.0, None, refused=str(error))
    except BaseException:
        generation.discard()
        raise
    generation.discard()
    return outcome


async def _rebuild(
    plan: Plan, store: ViewStore, tail: Follower, topics: Topics, progress: Progress, bulk: Bulk | None
) -> Outcome:
    began = _now_s()
    live, stands, note = _open_live(plan.live_url)
    if refused := _refusal(plan, None, note):
        return Outcome(0, 0.0, None, note, refused)
    try:
        # Read after that: while the log is written to, a view that follows it has always read less than its end.
        held = await _held(tail, topics)
        ends = {at: bounds.end for at, bounds in held.items()}
        if any(offset > ends.get(at, 0) for at, offset in stands.items()):
            note = OTHER_LOG
        targets = ends if note else dict.fromkeys(ends, 0) | stands
        if bulk is not None:
            kept = {at: end for at, end in targets.items() if at.topic != topics.dead_letters}
            await asyncio.to_thread(bulk, store, kept, progress)
        reading = Reading(tail, _writer(store, topics, plan.signatures), progress, _firsts(held))
        await reading.up_to(targets)
        read_s = _now_s() - began
        comparison = None
        if live is not None and not note:
            comparison, note = await _compare(live, store, reading, held, topics)
        signed = {} if plan.heads is None else plan.heads.newest()
        held_now = await _held(tail, topics)
        reading.firsts = _firsts(held_now)
        await reading.up_to({at: bounds.end for at, bounds in held_now.items()})
        if plan.heads is not None:
            check_all(plan.heads.files, signed, store)
    finally:
        if live is not None:
            live.close()
    refused = _refusal(plan, comparison, note)
    return Outcome(count_records(targets, _firsts(held)), read_s, comparison, note, refused)


async def _compare(
    live: ViewStore, store: ViewStore, reading: Reading, held: Mapping[TopicPartition, Bounds], topics: Topics
) -> tuple[Comparison | None, str]:
    """The comparison, or the reason why there is none."""
    of_letters = {at.partition: bounds for at, bounds in held.items() if at.topic == topics.dead_letters}
    forgetful = frozenset(number for number, bounds in of_letters.items() if bounds.first > 0)
    try:
        with live.snapshot() as moment:
            stands = {at.tp: at.next_offset for at in moment.positions()}
            await reading.up_to({at: stands.get(at, 0) for at in held})
            with store.snapshot() as rebuilt:
                return compare(rebuilt, moment, Forgotten(forgetful, len(of_letters))), ""
    except ViewDamaged:
        return None, DAMAGED


def _open_live(url: str) -> tuple[ViewStore | None, dict[TopicPartition, int], str]:
    """The live view and its position, or the reason why none can be compared."""
    if not exists(url):
        return None, {}, "there is no live view yet"
    live = None
    try:
        live = open_view(url)
        return live, _offsets(live), ""
    except (ViewOutdated, ViewDamaged) as error:
        if live is not None:
            live.close()
        return None, {}, OUTDATED if isinstance(error, ViewOutdated) else DAMAGED


OUTDATED = "the live view was built by another version of Placet"
DAMAGED = "the live view is damaged and cannot be compared"
OTHER_LOG = "the live view has read more than the log holds"


def _refusal(plan: Plan, comparison: Comparison | None, note: str) -> str:
    if plan.force or plan.live_url != plan.target_url:
        return ""
    if note == DAMAGED:
        return f"{note}: --force puts the rebuilt view in place"
    if note == OTHER_LOG:
        return f"{note}: find out which of the two is right; --force puts the rebuilt view in place"
    if comparison is not None and not comparison.is_equal:
        return "the rebuilt view differs from the live one: --force puts it in place anyway"
    return ""


def _offsets(store: ViewStore) -> dict[TopicPartition, int]:
    return {at.tp: at.next_offset for at in store.positions()}


async def _held(tail: Follower, topics: Topics) -> dict[TopicPartition, Bounds]:
    """The bounds of each partition that the views are made of: the topics that a projector follows."""
    names = (topics.executions, topics.definitions, topics.dead_letters)
    partitions = [at for name in names for at in await tail.partitions(name)]
    held = await tail.bounds(partitions)
    check_begun(topics, held)
    return held


def _firsts(held: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
    return {at: bounds.first for at, bounds in held.items()}


def _writer(store: ViewStore, topics: Topics, signatures: LogSignatures | None) -> Writer:
    positions = {at.tp: at for at in store.positions()}
    return new_writer(store, topics, positions, signatures=signatures)


def _now_s() -> float:
    return asyncio.get_running_loop().time()

from __future__ import annotations

from gateway.live.cursor import Position, Vector
from gateway.live.facts import EVENT_OVERHEAD_BYTES, Group
from gateway.live.live import groups_of
from gateway.live.ring import Ring
from tests.gateway.facts import LANES, Partition, key_of, new_live, refused, started


def _ring(max_groups: int = 100, max_bytes: int = 10**9) -> Ring:
    return Ring([-1] * LANES, [0] * LANES, max_groups, max_bytes)


def _holds_all_since(ring: Ring, vector: Vector) -> bool:
    return all(map(ring.connects, range(LANES), vector.offsets, vector.marks))


def _groups(partition: Partition, *names: str) -> list[Group]:
    return [
        groups_of(partition.partition + 1, partition.events(key_of(name), f"command-{name}", [started()]))[0]
        for name in names
    ]


def _vector_after(groups: list[Group]) -> Vector:
    position = Position.at_start(new_live()[0].position.key)
    for group in groups:
        position.advance(group.lane, group.last_offset, group.mark)
    return Vector(tuple(position.offsets), tuple(position.marks))


def test_since_a_vector_gives_exactly_what_came_after_in_order() -> None:
    ring, live = _ring(), new_live()[0]
    groups = _groups(Partition(live, 0), "a", "b", "c")
    others = _groups(Partition(live, 1), "d")
    arrived = [groups[0], others[0], groups[1], groups[2]]
    for group in arrived:
        ring.add(group)
    vector = _vector_after(arrived[:2])
    assert _holds_all_since(ring, vector)
    assert [group for group, _ in ring.since(vector)] == arrived[2:]


def test_since_a_vector_inside_a_command_gives_the_rest_of_it() -> None:
    ring = _ring()
    groups = _groups(Partition(new_live()[0]), "a", "b")
    for group in groups:
        ring.add(group)
    inside = _vector_after(groups[:1])._replace(lane=groups[0].lane, given=1)
    assert list(ring.since(inside)) == [(groups[0], 1), (groups[1], 0)]


def test_connects_to_another_log_says_no() -> None:
    ring = _ring()
    groups = _groups(Partition(new_live()[0]), "a", "b")
    for group in groups:
        ring.add(group)
    known = _vector_after(groups[:1])
    assert _holds_all_since(ring, known)
    assert not _holds_all_since(ring, known._replace(marks=(0,) * LANES))
    assert not _holds_all_since(ring, known._replace(offsets=(-1, 99, -1, -1)))


def test_add_over_the_number_drops_the_oldest_and_says_so() -> None:
    ring = _ring(max_groups=2)
    groups = _groups(Partition(new_live()[0]), "a", "b", "c")
    for group in groups:
        ring.add(group)
    assert ring.of_command(key_of("a"), "command-a", "body") is None
    assert ring.of_command(key_of("c"), "command-c", "body") is groups[2]
    assert ring.gone_through[1] == groups[0].last_offset
    assert not ring.knows(key_of("a"))
    assert ring.last_offset_of(key_of("a"), 1) == groups[0].last_offset
    assert _holds_all_since(ring, _vector_after(groups[:1]))
    assert not _holds_all_since(ring, _vector_after([]))


def test_add_over_the_bytes_drops_the_oldest() -> None:
    ring = _ring(max_bytes=2 * EVENT_OVERHEAD_BYTES)
    groups = _groups(Partition(new_live()[0]), "a", "b", "c", "d")
    for group in groups:
        ring.add(group)
    assert ring.of_command(key_of("b"), "command-b", "body") is None
    assert ring.of_command(key_of("d"), "command-d", "body") is groups[3]


def test_of_command_second_trace_never_replaces_the_first() -> None:
    ring = _ring()
    partition = Partition(new_live()[0])
    first = groups_of(1, partition.events(key_of("a"), "same", [started()]))[0]
    second = groups_of(1, partition.events(key_of("a"), "same", [started()]))[0]
    ring.add(first)
    ring.add(second)
    assert ring.of_command(key_of("a"), "same", "body") is first


def test_case_26_of_command_refusal_of_a_reuse_answers_its_own_body_only() -> None:
    """The rightful body's trace may be older than the ring, and is then looked for elsewhere."""
    ring = _ring(max_groups=2)
    partition = Partition(new_live()[0])
    no = refused("idempotency_key_reused")
    refusal = groups_of(1, partition.events(key_of("a"), "same", [no], "other"))[0]
    ring.add(refusal)
    assert ring.of_command(key_of("a"), "same", "body") is None
    assert ring.of_command(key_of("a"), "same", "other") is refusal

    for group in _groups(partition, "b", "c"):
        ring.add(group)
    assert ring.of_command(key_of("a"), "same", "other") is None


def test_case_26_of_command_same_id_on_another_key_takes_nobodys_answer_away() -> None:
    """Whoever may produce commands can repeat an id that they have read, on a key of their own."""
    ring = _ring()
    partition = Partition(new_live()[0])
    elsewhere = groups_of(1, partition.events(key_of("a", tenant="evil"), "same", [started()]))[0]
    beside = groups_of(1, partition.events(key_of("b"), "same", [started()]))[0]
    own = groups_of(1, partition.events(key_of("a"), "same", [started()]))[0]
    ring.add(elsewhere)
    assert ring.of_command(key_of("a"), "same", "body") is None

    ring.add(beside)
    assert ring.of_command(key_of("a"), "same", "body") is beside, "one name for two commands of a caller"
    ring.add(own)
    assert ring.of_command(key_of("a"), "same", "body") is own


def test_add_over_the_number_drops_what_is_known_of_an_id_on_each_key() -> None:
    ring = _ring(max_groups=2)
    partition = Partition(new_live()[0])
    first, second = (
        groups_of(1, partition.events(key_of(name), "same", [started()]))[0] for name in ("a", "b")
    )
    ring.add(first)
    ring.add(second)
    ring.add(_groups(partition, "c")[0])
    assert ring.of_command(key_of("a"), "same", "body") is second
    ring.add(_groups(partition, "d")[0])
    assert ring.of_command(key_of("b"), "same", "body") is None

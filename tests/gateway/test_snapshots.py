from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sockets.protocol import Snapshot
from gateway.sockets.snapshots import (
    ITEMS_MAX,
    PART_MAX_BYTES,
    Shown,
    SnapshotsTooLarge,
    is_unfinished,
    snapshot_frames,
)
from tests.gateway.facts import HELD_CALL, Partition, key_of, new_live, new_work, started

HEAD_BYTES = 400
PLENTY = 2**40


def show(sizes: list[int], channel: str = "holds") -> Shown:
    return Shown(channel, [{"n": n, "text": "x" * size} for n, size in enumerate(sizes)], dict)


def messages(*shown: Shown, bytes_max: int = PLENTY) -> list[dict[str, Any]]:
    live, _ = new_live()
    Partition(live).write(key_of("e1"), "start", started(), *HELD_CALL)
    frames = asyncio.run(snapshot_frames(shown, live.position, bytes_max, new_work(), ("acme", "anna")))
    for frame in frames:
        assert len(frame) <= PART_MAX_BYTES + HEAD_BYTES or len(orjson.loads(frame)["items"]) == 1
        Snapshot.model_validate(orjson.loads(frame))
    return [orjson.loads(frame) for frame in frames]


@given(st.lists(st.integers(0, PART_MAX_BYTES * 2), max_size=12))
def test_parts_together_are_the_whole_in_order_and_only_the_last_has_no_more(sizes: list[int]) -> None:
    found = messages(show(sizes))
    assert [item["n"] for part in found for item in part["items"]] == list(range(len(sizes)))
    assert [part["more"] for part in found] == [True] * (len(found) - 1) + [False]
    assert {part["total"] for part in found} == {len(sizes)}


def test_empty_channel_has_one_empty_part() -> None:
    (part,) = messages(show([]))
    assert (part["items"], part["total"], part["more"]) == ([], 0, False)


def test_many_small_items_share_parts() -> None:
    found = messages(show([1_000] * 1_000))
    assert 4 <= len(found) <= 5


def test_only_the_very_last_part_has_a_cursor_to_go_on_from() -> None:
    live, _ = new_live()
    found = messages(show([PART_MAX_BYTES] * 2), show([1], "executions:e1"), show([], "events"))
    vectors = [live.position.key.read(part["cursor"]) for part in found]
    assert [part["channel"] for part in found] == ["holds", "holds", "executions:e1", "events"]
    assert [is_unfinished(vector) for vector in vectors] == [True, True, True, False]


def test_more_items_than_allowed_are_counted_and_left_out() -> None:
    found = messages(show([1] * (ITEMS_MAX + 5)))
    assert sum(len(part["items"]) for part in found) == ITEMS_MAX
    assert found[0]["total"] == ITEMS_MAX + 5


def test_more_bytes_than_allowed_are_left_out_of_all_channels_together() -> None:
    found = messages(show([1_000] * 5), show([1_000] * 5, "executions:e1"), bytes_max=7_000)
    counts = [(part["channel"], len(part["items"]), part["total"], part["more"]) for part in found]
    assert counts == [("holds", 5, 5, False), ("executions:e1", 1, 5, False)]


def test_full_inbox_leaves_the_channels_of_one_row_theirs_in_the_order_asked_for() -> None:
    shown = [show([1_000] * 10), show([500], "executions:e1"), show([], "events"), show([500], "calls:e1/c1")]
    found = messages(*shown, bytes_max=5_000)
    counts = [(part["channel"], len(part["items"]), part["total"], part["more"]) for part in found]
    assert counts == [
        ("holds", 3, 10, False),
        ("executions:e1", 1, 1, False),
        ("events", 0, 0, False),
        ("calls:e1/c1", 1, 1, False),
    ]


def test_rows_of_channels_of_one_row_over_the_bytes_allowed_are_refused_instead_of_left_out() -> None:
    with pytest.raises(SnapshotsTooLarge, match="subscribe to fewer"):
        messages(show([600], "calls:e1/c1"), show([600], "calls:e1/c2"), bytes_max=1_000)


def test_rows_of_a_lower_rank_get_room_first_and_one_row_of_a_higher_rank_can_be_left_out() -> None:
    beside = show([600], "beside")._replace(rank=2)
    found = messages(
        show([500], "executions:e1"), beside, show([1_000] * 3, "asked")._replace(rank=1), bytes_max=3_900
    )
    counts = [(part["channel"], len(part["items"]), part["total"]) for part in found]
    assert counts == [("executions:e1", 1, 1), ("beside", 0, 1), ("asked", 3, 3)]


@pytest.mark.parametrize("channel", ["holds", 'executions:"odd"'])
def test_frame_is_json_whatever_the_channel_is_called(channel: str) -> None:
    assert messages(show([3], channel))[0]["channel"] == channel

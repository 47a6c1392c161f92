"""A worker's places: nobody's long claim keeps the messages to other agents waiting."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from placet.places import LONG_S, SHARED_S, Places


async def test_each_agent_claims_for_long_while_a_place_is_left() -> None:
    places = Places(3, agents=2)
    async with places.claim() as first, places.claim() as second:
        assert (first.wait_s, second.wait_s) == (LONG_S, LONG_S)


@pytest.mark.parametrize("count", [1, 2])
async def test_agents_take_turns_where_a_claim_can_take_the_last_place(count: int) -> None:
    places = Places(count, agents=2)
    claimed = Counter[str]()

    async def claiming(agent: str) -> None:
        for _ in range(10):
            async with places.claim() as claim:
                claimed[agent] += 1
                assert claim.wait_s == SHARED_S
                assert claimed.total() <= 2 * min(claimed["a"] + 1, claimed["b"] + 1)
                await asyncio.sleep(0)

    await asyncio.gather(claiming("a"), claiming("b"))
    assert claimed == {"a": 10, "b": 10}


async def test_only_agent_always_claims_for_long_and_for_no_more_turns_than_places() -> None:
    places = Places(2, agents=1)
    for _ in range(2):
        async with places.claim() as claim:
            assert claim.wait_s == LONG_S
            claim.keep()
    third = asyncio.ensure_future(places.claim().__aenter__())
    await asyncio.sleep(0)
    assert not third.done()
    places.free()
    await third


async def test_claim_that_fails_or_is_cancelled_gives_its_place_back() -> None:
    places = Places(1, agents=1)
    for error in (RuntimeError, asyncio.CancelledError):
        with pytest.raises(error):
            async with places.claim():
                raise error
    async with asyncio.timeout(60), places.claim():
        pass

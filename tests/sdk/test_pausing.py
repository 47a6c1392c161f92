import pytest

import placet
from placet import pausing
from tests.sdk.desk import Desk, Resource, ended, released
from tests.sdk.runs import never, running

IDEMPOTENT: dict[str, Resource] = {"send": {"name": "send", "idempotent": True}}
PAUSED: Resource = {"code": "not_released", "detail": "the execution is paused"}


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pausing, "LOOK_AGAIN_S", 0.01)


async def send(recipient: str) -> str:
    return "sent"


async def test_released_call_of_a_paused_run_is_consumed_once_it_is_resumed() -> None:
    desk = Desk(refuse_consumption=[dict(PAUSED)], states=["paused", "paused"])
    async with running(desk) as run:
        assert await run.gated(send)("GB29") == "sent"
    assert (desk.states, len(desk.consumed)) == ([], 1)


async def test_idempotent_call_whose_outcome_is_unknown_runs_again_once_its_run_is_resumed() -> None:
    desk = Desk(judge=ended(status="outcome_unknown", attempt_id="other"), tools=IDEMPOTENT)
    desk.refuse_consumption = [dict(PAUSED)]
    desk.states = ["paused", "running"]
    async with running(desk) as run:
        assert await run.gated(send)("GB29") == "sent"
    assert len(desk.consumed) == 1


async def test_call_is_denied_by_what_became_of_it_during_the_pause() -> None:
    desk = Desk(refuse_consumption=[dict(PAUSED), {"code": "not_released", "then": {"status": "revoked"}}])
    desk.states = ["paused"]
    async with running(desk) as run:
        with pytest.raises(placet.Denied):
            await run.gated(never)("GB29")


async def test_pause_that_outlasts_the_wait_leaves_the_run_open() -> None:
    desk = Desk(refuse_consumption=[dict(PAUSED)], states=["paused"] * 1000)
    with pytest.raises(
        placet.StillHeld, match=r"never is still released after 0\.1 s: its execution is paused"
    ):
        async with running(desk) as run:
            await run.gated(timeout_s=0.1)(never)("GB29")
    assert desk.finished == []


async def test_release_that_can_never_be_consumed_leaves_the_run_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pausing, "LOOK_AGAIN_S", 0.0)
    desk = Desk(judge=released, refuse_consumption=[dict(PAUSED) for _ in range(1000)])
    with pytest.raises(placet.StillHeld, match="its consumption was refused 100 times"):
        async with running(desk) as run:
            await run.gated(never)("GB29")
    assert desk.finished == []

from __future__ import annotations

from services.runtime.shares import BURST_S, DEBT_MAX_S, PART, Shares


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_share_used_up_is_given_back_by_time_and_is_no_more_than_the_burst() -> None:
    clock = Clock()
    shares = Shares(clock)
    shares.charge("acme", BURST_S + 1)
    assert shares.is_spent("acme")
    clock.now_s += 0.9 / PART
    assert shares.is_spent("acme")
    clock.now_s += 0.2 / PART
    assert not shares.is_spent("acme")
    clock.now_s += 3_600
    shares.charge("acme", BURST_S)
    assert shares.is_spent("acme")


def test_share_of_a_tenant_whose_work_was_under_way_while_the_process_stood_still_comes_back() -> None:
    clock = Clock()
    shares = Shares(clock)
    shares.charge("acme", 3_600)
    clock.now_s += DEBT_MAX_S / PART + 0.1
    assert not shares.is_spent("acme")


def test_share_of_another_tenant_is_its_own() -> None:
    shares = Shares(Clock())
    shares.charge("acme", BURST_S)
    assert shares.is_spent("acme")
    assert not shares.is_spent("other")

from services.runtime.overruns import REMEMBERED_MAX, WITHIN_S, Overruns


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_bars_after_two_overruns_within_a_minute_for_the_rest_of_it() -> None:
    clock = Clock()
    overruns = Overruns(clock)
    overruns.note("acme", "slow")
    assert not overruns.bars("acme", "slow")
    clock.now_s += WITHIN_S - 1
    overruns.note("acme", "slow")
    assert overruns.bars("acme", "slow")
    assert not overruns.bars("acme", "other")
    assert not overruns.bars("globex", "slow"), "another tenant may have the same condition"
    clock.now_s += 1
    assert not overruns.bars("acme", "slow")


def test_bars_counts_only_the_last_two_overruns() -> None:
    clock = Clock()
    overruns = Overruns(clock)
    for _ in range(3):
        overruns.note("acme", "slow")
        clock.now_s += WITHIN_S / 3
    assert overruns.bars("acme", "slow")
    clock.now_s += WITHIN_S / 3
    assert not overruns.bars("acme", "slow")


def test_texts_without_end_are_forgotten_oldest_first() -> None:
    overruns = Overruns(Clock())
    for number in range(REMEMBERED_MAX + 1):
        overruns.note("acme", f"slow {number}")
        overruns.note("acme", f"slow {number}")
    assert not overruns.bars("acme", "slow 0")
    assert overruns.bars("acme", f"slow {REMEMBERED_MAX}")

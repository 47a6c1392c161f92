import pytest

from gateway import view_times as module
from gateway.view_times import ViewTimes
from schemas.actor import Actor

ANNA = Actor(subject="anna", tenant="acme", project="main", roles=("reviewer",))
BERT = Actor(subject="bert", tenant="acme", project="main", roles=("reviewer",))


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def test_dwell_is_from_the_first_look_to_the_decision(at: list[float]) -> None:
    times = ViewTimes()
    times.note(ANNA, "h")
    at[0] += 3
    times.note(ANNA, "h")
    at[0] += 2
    assert times.dwell_ms(ANNA, "h") == 5000
    assert times.dwell_ms(BERT, "h") is None
    assert times.dwell_ms(ANNA, "other") is None


def test_looks_are_forgotten_oldest_first(at: list[float]) -> None:
    times = ViewTimes(most=2)
    for hold_id in "abc":
        times.note(ANNA, hold_id)
    assert times.dwell_ms(ANNA, "a") is None
    assert times.dwell_ms(ANNA, "c") == 0

from typing import Any

import pytest

from gateway import looks as module
from gateway.looks import Looks
from schemas.actor import Actor

ANNA = Actor(subject="anna", tenant="acme", project="main", roles=("reviewer",))
BERT = Actor(subject="bert", tenant="acme", project="main", roles=("reviewer",))
OPEN: dict[str, Any] = {"hold_id": "h", "votes": "[]"}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def test_dwell_is_from_the_first_look_to_the_decision(at: list[float]) -> None:
    looks = Looks()
    looks.note(ANNA, "h")
    at[0] += 3
    looks.note(ANNA, "h")
    at[0] += 2
    assert looks.dwell_ms(ANNA, OPEN, "approve") == 5000
    assert looks.dwell_ms(BERT, OPEN, "approve") is None
    assert looks.dwell_ms(ANNA, OPEN | {"hold_id": "other"}, "approve") is None


def test_dwell_of_a_word_said_again_is_what_it_was(at: list[float]) -> None:
    looks = Looks()
    looks.note(ANNA, "h")
    at[0] += 1
    assert looks.dwell_ms(ANNA, OPEN, "approve") == 1000
    at[0] += 9
    assert looks.dwell_ms(ANNA, OPEN, "approve") == 1000
    assert looks.dwell_ms(ANNA, OPEN, "reject") == 10_000


def test_dwell_of_a_word_in_the_log_is_what_stands_there(at: list[float]) -> None:
    row = OPEN | {"votes": '[{"by":"anna","dwell_ms":7},{"by":"bert","dwell_ms":null}]'}
    looks = Looks()
    looks.note(BERT, "h")
    assert looks.dwell_ms(ANNA, row, "approve") == 7
    assert looks.dwell_ms(BERT, row, "approve") is None


def test_looks_are_forgotten_oldest_first(at: list[float]) -> None:
    looks = Looks(most=2)
    for hold_id in "abc":
        looks.note(ANNA, hold_id)
    assert looks.dwell_ms(ANNA, OPEN | {"hold_id": "a"}, "x") is None
    assert looks.dwell_ms(ANNA, OPEN | {"hold_id": "c"}, "x") == 0

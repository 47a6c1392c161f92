"""Another trust function tried on history: scores are computed again from the facts that verdicts cite."""

from __future__ import annotations

from typing import Any

import pytest

from ops.backtest.command import _function
from ops.backtest.found import Found
from ops.backtest.judging import Inputs
from ops.backtest.trust import FactsOfLog, Rescoring
from ops.errors import UsageError
from schemas.call_history import NO_HISTORY
from schemas.principals import TenantPeople
from schemas.topics import DAY_MS
from schemas.trust_score import IN_FORCE, TrustFunction
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.counting import HARMLESS, Counted
from tests.domain.trusting import outcome
from tests.domain.world import rule, the, with_people
from tests.ops.backtest.past import Past, policy

TOOL = {"name": "note", "annotations": HARMLESS}
ADAPTIVE = policy(rule("notes", "note", "hold"), adaptive={"sample_rate": 0})


def history(*words: tuple[str, int, int]) -> Past:
    """A log in which people said a word on so many notes in a row, each word after so many days."""
    counted = Counted()
    made = Past(trust=counted)
    counted.world, counted.offset_of = made.world, lambda number: made.offsets[number]
    made.tools(TOOL)
    made.policy(ADAPTIVE)
    made.start()
    number = 0
    for word, count, days in words:
        made.world.now_ms += days * DAY_MS
        for _ in range(count):
            number += 1
            bodies = made.propose("note", f"c{number}", text="hello")
            if outcome(bodies).result == "asked":
                made.decide(the(bodies, "HoldOpened"), word)
    return made


def effects(found: Found) -> dict[Any, int]:
    assert not found.not_judged
    return dict(found.effects)


def test_function_in_force_gives_every_recorded_score_again() -> None:
    made = history(("approve", 20, 0), ("approve", 2, 40), ("reject", 1, 0), ("approve", 8, 1))

    found = made.against(ADAPTIVE, function=IN_FORCE)

    assert (found.rescored, found.rescored_otherwise) == (31, 0)
    assert not found.rows
    assert effects(found) == effects(made.against(ADAPTIVE))


def test_stricter_quantile_asks_again_and_a_laxer_one_asks_less() -> None:
    made = history(("approve", 30, 0))
    released = effects(made.against(ADAPTIVE))[("allow", "allow")]

    strict = made.against(ADAPTIVE, function=IN_FORCE._replace(quantile=0.0001))
    lax = made.against(ADAPTIVE, function=IN_FORCE._replace(quantile=0.5))

    assert effects(strict)[("allow", "hold")] > 0
    assert effects(lax)[("hold", "allow")] > 0
    assert effects(lax)[("allow", "allow")] == released
    assert (strict.rescored, lax.rescored) == (30, 30)


def test_longer_half_life_releases_what_was_asked_again_after_a_while() -> None:
    made = history(("approve", 20, 0), ("approve", 1, 90))

    found = made.against(ADAPTIVE, function=IN_FORCE._replace(half_life_days=100_000.0))
    short = made.against(ADAPTIVE, function=IN_FORCE._replace(window_days=1))

    assert [row.after.effect for row in found.rows] == ["allow"]
    assert not [row for row in short.rows if row.after.effect == "allow"]


def test_rejected_call_that_another_function_would_release_is_listed() -> None:
    made = history(("approve", 10, 0), ("reject", 1, 0))

    (row,) = made.against(ADAPTIVE, function=IN_FORCE._replace(quantile=0.5)).overruled

    assert (row.call_id, row.word, row.after.reason) == ("c11", "rejected", "trusted")


def test_facts_that_a_verdict_does_not_cite_are_not_looked_at() -> None:
    made = history(("approve", 10, 0))
    later = made.against(ADAPTIVE, function=IN_FORCE._replace(quantile=0.9))
    # The first call was judged before anybody had decided: no function makes trust of nothing.
    assert {row.call_id for row in later.rows} == {f"c{number}" for number in range(2, 11)}


def test_score_is_by_the_people_of_then() -> None:
    made = history(("approve", 10, 0))
    facts, through = FactsOfLog(), {"0": 10**6}
    for event in made.world.events:
        facts.take(event)
    rescoring = Rescoring(facts, IN_FORCE)
    trust_class = "text=text&risk=writes"
    trust = {"trust_class": trust_class, "through": through}
    inputs = Inputs(trust, trust_class, NO_HISTORY, NO_HISTORY, "", None)
    tool = ("acme", "main", "bot", "note")

    def raising(of: TenantPeople) -> Any:
        found = rescoring.of(tool, inputs, made.world.now_ms, of).trust
        assert found is not None
        return found["raising"]

    withdrawn = people_of(
        {"principal": "rita", "subjects": ["rita"], "roles": ["reviewer"], "disabled": True}
    )
    assert raising(people_of()) == 10
    assert raising(withdrawn) == 0
    assert raising(people_of()) == 10
    # Nothing that it could agree with was recorded.
    assert (rescoring.agreed, rescoring.differed) == (0, 3)


def people_of(*documents: dict[str, Any]) -> TenantPeople:
    return with_people(Definitions(policies=PolicySet()), *documents).people.of("acme", "main")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0.0, None, None), "--trust-quantile 0: it is above 0 and below 1."),
        ((1.5, None, None), "--trust-quantile 1.5: it is above 0 and below 1."),
        ((float("nan"), None, None), "--trust-quantile nan: it is above 0 and below 1."),
        ((None, 0.0, None), "--trust-half-life 0: it is a number of days above 0."),
        ((None, float("inf"), None), "--trust-half-life inf: it is a number of days above 0."),
        ((None, None, 0), "--trust-window 0: it is at least one day."),
    ],
)
def test_refused_is_a_function_that_is_none(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        _function(*given)


def test_function_has_the_numbers_in_force_but_for_those_that_are_given() -> None:
    assert _function(None, None, None) is None
    assert _function(0.2, None, None) == TrustFunction(quantile=0.2)
    assert _function(None, 7.0, 365) == TrustFunction(half_life_days=7.0, window_days=365)

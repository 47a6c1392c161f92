"""Trust by days is what `placet trust explain --at` computes for the end of each day, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from projections.folds.trust_classes import trust_classes
from projections.queries.moment import Moment
from projections.queries.trust import class_facts
from projections.queries.trust_days import people_now, trust_days
from projections.queries.views import Views, open_views
from projections.tables.trust_days import TrustDayRow
from schemas.topics import DAY_MS
from schemas.trust_score import WINDOW_DAYS, discounting
from tests.projections.filling import Filler
from tests.projections.histories import PROJECT, START_MS, TENANT
from tests.projections.season import AGENTS, CLASSES, DAYS, people, season

FIRST, LAST = START_MS // DAY_MS, START_MS // DAY_MS + DAYS
# Long enough for every fact of the season to lose its weight.
LATER = LAST + WINDOW_DAYS + 20
Place = tuple[str, str, str, str]


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    filler.fill(season(), people())
    found = open_views(database_url)
    yield found
    found.close()


def explained(moment: Moment, day: int) -> dict[Place, tuple[float, float, float, int]]:
    """The scores at the end of a day, each by the query and the fold of the REST API."""
    now_ms = (day + 1) * DAY_MS - 1
    discounted = discounting(people_now(moment).of(TENANT, PROJECT))
    found = {}
    for agent in AGENTS:
        facts = class_facts(moment, TENANT, PROJECT, agent, now_ms=now_ms, until_ms=now_ms)
        for one in trust_classes(facts, now_ms, discounted):
            found[agent, one.tool, one.name, name_of(day)] = (*one.score, len(one.facts))
    return found


def name_of(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat()


def place_of(row: TrustDayRow) -> Place:
    return row["agent"], row["tool"], row["trust_class"], row["day"]


def test_each_day_has_the_score_that_is_explained_for_its_end(views: Views) -> None:
    rows, days = views.read_now(
        lambda now: (
            list(trust_days(now, LATER * DAY_MS)),
            [explained(now, day) for day in range(FIRST - 1, LATER + 1)],
        )
    )[0]

    expected = {place: numbers for day in days for place, numbers in day.items()}
    found = {
        place_of(row): (row["lower_bound"], row["raising"], row["lowering"], row["facts"]) for row in rows
    }
    assert found == expected
    assert len(found) == len(rows)
    assert {(agent, trust_class) for agent, _, trust_class, _ in found} == {
        (agent, trust_class) for agent in AGENTS for trust_class in CLASSES.values()
    }
    last = max(day for *_, day in found)
    assert name_of(LAST + WINDOW_DAYS - 5) < last < name_of(LATER)
    assert all(row["at_ms"] % DAY_MS == DAY_MS - 1 for row in rows)


def test_days_end_with_today_and_withdrawn_accounts_raise_nothing(views: Views) -> None:
    rows, all_words = views.read_now(
        lambda now: (
            list(trust_days(now, LAST * DAY_MS)),
            [row for row in trust_days(now, FIRST * DAY_MS) if row["raising"]],
        )
    )[0]

    assert max(row["day"] for row in rows) == name_of(LAST)
    assert {row["day"] for row in all_words} <= {name_of(FIRST)}
    assert views.read_now(people_now)[0].of(TENANT, PROJECT).is_disabled("eve@acme")


def test_views_without_facts_have_no_days(database_url: str, filler: Filler) -> None:
    found = open_views(database_url)
    try:
        assert found.read_now(lambda now: list(trust_days(now, LAST * DAY_MS)))[0] == []
    finally:
        found.close()

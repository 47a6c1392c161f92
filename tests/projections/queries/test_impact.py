"""What rested on a grant, a rule or a person's word, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from projections.queries import impact
from projections.queries.moment import Moment
from projections.queries.paging import Page
from projections.queries.views import Views, open_views
from projections.store.sqlite import DIALECT, connect
from projections.store.urls import open_view
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from tests.projections.filling import Filler
from tests.projections.histories import (
    LogBuilder,
    consumed,
    decided,
    held,
    judged,
    key_of,
    proposed,
    released,
    started,
    succeeded,
)

OURS = ("acme", "main")
RULES = {
    "c1": ("production@3/payments",),
    "c2": ("production@4/payments", "rule:r-1"),
    "c3": ("production@3/reads", "other@3/payments"),
    "c4": ("production@3/payments",),
    "c5": ("rule:r_1",),
}


def cycle(key: bytes, call_id: str, by: str, ran: bool = True) -> list[list[Message]]:
    """A call that was held, approved by somebody, and ran, or not yet."""
    call = proposed(call_id)
    hold = held(key, call)
    word = decided(hold, by=by)
    verdict = judged(call).model_copy(update={"rules": RULES[call_id]})
    steps: list[list[Message]] = [[call, verdict, hold], [word, released(call, word.decision_id)]]
    return [*steps, [consumed(call)], [succeeded(call)]] if ran else steps


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    builder = LogBuilder(4).claim_all()
    for run, call_id, by, ran in (
        ("run-1", "c1", "rita", True),
        ("run-1", "c2", "otto", True),
        ("run-2", "c3", "rita", True),
        ("run-2", "c4", "rita", False),
        ("run-3", "c5", "otto", True),
    ):
        key = key_of(run)
        if call_id in ("c1", "c3", "c5"):
            builder.append(key, [started()])
        for bodies in cycle(key, call_id, by, ran):
            builder.append(key, bodies)
    foreign = key_of("run-1", tenant="other")
    builder.append(foreign, [started()])
    for bodies in cycle(foreign, "c1", "rita"):
        builder.append(foreign, bodies)
    filler.fill(builder)
    opened = open_views(database_url)
    yield opened
    opened.close()


def effects(views: Views, question: Callable[[Moment, str | None], Page]) -> list[str]:
    found, cursor = [], None
    while True:
        page = views.read_now(partial(_ask, question, cursor))[0]
        found += [row["call_id"] for row in page.rows]
        if (cursor := page.next_cursor) is None:
            return found


def _ask(question: Callable[[Moment, str | None], Page], cursor: str | None, moment: Moment) -> Page:
    return question(moment, cursor)


@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        ("production@3/payments", ["c1"]),
        ("production/payments", ["c1", "c2"]),
        ("r-1", ["c2"]),
        ("r_1", ["c5"]),
        ("other/payments", ["c3"]),
        ("production/other", []),
        ("%", []),
        ('production@3/reads","other@3/payments', []),
    ],
)
def test_effects_of_a_rule_are_the_calls_that_ran_and_cite_it(
    views: Views, rule: str, calls: list[str]
) -> None:
    assert effects(views, lambda now, at: impact.effects_of_rule(now, *OURS, rule, at, 1)) == calls


def test_effects_of_people_are_the_calls_that_ran_on_their_word(views: Views) -> None:
    def of(*people: str) -> list[str]:
        return effects(views, lambda now, at: impact.effects_of_people(now, *OURS, people, at, 1))

    assert of("rita") == ["c1", "c3"]
    assert of("otto", "rita") == ["c1", "c2", "c3", "c5"]
    assert of("eve") == []


def test_effects_of_a_grant_are_its_call_once_it_ran(views: Views) -> None:
    rows = views.read_now(lambda now: impact.effects_of_rule(now, *OURS, "production/payments", None, 9))[
        0
    ].rows
    grants: list[Any] = [row["grant_id"] for row in rows if row["call_id"] == "c1"]

    found = effects(views, lambda now, at: impact.effects_of_grant(now, *OURS, grants[0], at, 9))

    assert found == ["c1"]
    assert effects(views, lambda now, at: impact.effects_of_grant(now, *OURS, "none", at, 9)) == []


def test_effects_of_an_editor_are_those_of_the_edit_that_ran(database_url: str, filler: Filler) -> None:
    builder = LogBuilder(4).claim_all()
    key, call = key_of("run-1"), proposed("c1")
    hold = held(key, call)
    new = call.model_copy(update={"revision": 2, "digest": "e" * 64, "by": "rita"})
    builder.append(key, [started()])
    builder.append(key, [call, judged(call), hold])
    voted = decided(hold, by="otto", resolves=False)
    edit = decided(hold, "edit", by="rita", edited_arguments="{}")
    verdict: c.PolicyVerdictIssued = judged(new)
    builder.append(key, [voted])
    builder.append(key, [edit, new, verdict, released(new, edit.decision_id)])
    builder.append(key, [consumed(new)])
    filler.fill(builder)
    opened = open_views(database_url)

    def of(name: str) -> list[str]:
        return effects(opened, lambda now, at: impact.effects_of_people(now, *OURS, (name,), at, 9))

    assert of("rita") == ["c1"]
    assert of("otto") == [], "a vote on what did not run is no cause of what did"
    opened.close()


def test_effects_of_who_handed_a_hold_on_are_those_that_their_delegate_decided(
    database_url: str, filler: Filler
) -> None:
    builder = LogBuilder(4).claim_all()

    def run(name: str, by: str, *handed: tuple[str, str]) -> None:
        key, call = key_of(name), proposed("c1")
        hold = held(key, call)
        builder.append(key, [started()])
        builder.append(key, [call, judged(call), hold])
        for giver, taker in handed:
            builder.append(key, [h.HoldDelegated(hold_id=hold.hold_id, by=giver, to=taker)])
        word = decided(hold, by=by)
        builder.append(key, [word, released(call, word.decision_id)])
        builder.append(key, [consumed(call)])

    run("by-delegate", "mia@acme", ("tom", "mia"))
    run("down-the-line", "lea", ("tom", "mia"), ("mia@acme", "lea"))
    run("by-another", "lea", ("tom", "mia"))
    run("after-it-came-back", "tom", ("tom", "mia"), ("mia@acme", "tom"))
    run("without", "mia@acme")
    filler.fill(builder)
    opened = open_views(database_url)

    def of(*names: str) -> set[str]:
        def person(name: str) -> str:
            return name.partition("@")[0]

        page = opened.read_now(lambda now: impact.effects_of_people(now, *OURS, names, None, 9, person))[0]
        return {row["execution_id"] for row in page.rows}

    assert of("tom") == {"by-delegate", "down-the-line", "after-it-came-back"}
    assert of("mia@acme") == {"by-delegate", "down-the-line", "after-it-came-back", "without"}
    assert of("lea") == {"down-the-line", "by-another"}
    assert opened.read_now(lambda now: impact.has_acted(now, *OURS, ("lea",)))[0]
    assert not opened.read_now(lambda now: impact.has_acted(now, *OURS, ("nobody",)))[0]
    opened.close()


def test_plan_finds_deciding_entries_once_and_not_for_each_call(views: Views) -> None:
    plan: list[str] = []

    def explained(now: Moment) -> Page:
        explain = "EXPLAIN QUERY PLAN" if now.dialect is DIALECT else "EXPLAIN"

        def execute(text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
            plan.extend(str(row) for row in now.execute(f"{explain} {text}", values))
            return now.execute(text, values)

        return impact.effects_of_people(replace(now, execute=execute), *OURS, ("rita",), None, 9)

    views.read_now(explained)
    told = "\n".join(plan)
    assert "LIST SUBQUERY" in told or "hashed SubPlan" in told, told
    assert "CORRELATED" not in told


@pytest.mark.postgres
@pytest.mark.parametrize("reviewer", ["lea", "tom"])
def test_effects_of_people_are_found_without_a_join_on_a_database_that_has_no_statistics_yet(
    postgres_url: str, reviewer: str
) -> None:
    url = f"{postgres_url}?schema=v{uuid.uuid4().hex[:10]}"
    handed_on_views(url, 20)
    plan: list[str] = []

    def explained(now: Moment) -> Page:
        def execute(text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
            plan.extend(str(row) for row in now.execute(f"EXPLAIN {text}", values))
            return now.execute(text, values)

        return impact.effects_of_people(replace(now, execute=execute), *OURS, (reviewer,), None, 9)

    with closing(open_views(url)) as views:
        page = views.read_now(explained)[0]
    told = "\n".join(plan)
    assert len(page.rows) == 9
    assert "hashed SubPlan" in told
    assert "Nested Loop" not in told, told
    assert "Join" not in told, told


def handed_on_views(url: str, count: int) -> None:
    """Views of calls that lea approved, each in a run of its own; tom had handed every second one to her."""
    builder = LogBuilder(1).claim_all()
    for number in range(count):
        key, call = key_of(f"run-{number}"), proposed("c1")
        hold = held(key, call)
        builder.append(key, [started()])
        builder.append(key, [call, judged(call), hold])
        if number % 2:
            builder.append(key, [h.HoldDelegated(hold_id=hold.hold_id, by="tom", to="lea")])
        word = decided(hold, by="lea")
        builder.append(key, [word, released(call, word.decision_id)])
        builder.append(key, [consumed(call)])
    with closing(open_view(url)) as store:
        Filler(store).fill(builder)


@pytest.mark.parametrize("reviewer", ["lea", "tom", "nobody"])
def test_work_for_effects_of_people_grows_with_the_audit_and_not_with_its_square(
    tmp_path: Path, reviewer: str
) -> None:
    def work(count: int) -> int:
        path = tmp_path / f"{count}.db"
        handed_on_views(f"sqlite:///{path}", count)
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        with closing(connect(path)) as connection:
            connection.set_progress_handler(step, 1)

            def execute(text: str, values: Sequence[Any]) -> list[Any]:
                return connection.execute(text, values).fetchall()

            def nothing(text: str, values: Sequence[Any]) -> Generator[Sequence[Any], None, None]:
                yield from ()

            impact.effects_of_people(Moment(DIALECT, execute, nothing), *OURS, (reviewer,), None, 200)
        return steps

    assert work(160) < 2.5 * work(80)


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        ("production/payments", True),
        ("production@4/payments", True),
        ("r-1", True),
        ("payments/nosuch", False),
    ],
)
def test_rule_is_known_once_a_verdict_cites_it(views: Views, rule: str, known: bool) -> None:
    assert views.read_now(lambda now: impact.is_cited(now, *OURS, rule))[0] is known
    assert not views.read_now(lambda now: impact.is_grant(now, *OURS, "zzz"))[0]

"""What a door asks of the views, on both databases: only its own tenant's, in pages, with positions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from projections.folds.audit import audit_json
from projections.folds.rows import Row
from projections.queries import definitions, history, lists, resources
from projections.queries.history import ExecutionState, Fold, Until, WantedRows
from projections.queries.moment import Moment
from projections.queries.paging import BadCursor, Page
from projections.queries.reviewers import reviewers
from projections.queries.views import Views, open_views
from projections.store.port import ViewUnavailable
from projections.store.sqlite import DIALECT
from projections.tables.events import EventRow
from schemas.events import executions as x
from schemas.ids import derived_id
from tests.projections.filling import Filler
from tests.projections.folding import KEY
from tests.projections.folds.test_holds import ASKED, REQUEST_HOLD
from tests.projections.histories import (
    START_MS,
    LogBuilder,
    consumed,
    decided,
    held,
    held_cycle,
    hold_id_of,
    judged,
    key_of,
    policy_key,
    policy_published,
    proposed,
    released,
    started,
    succeeded,
    tool_key,
    tool_published,
)

T = TypeVar("T")
OURS = ("acme", "main")
CALL = proposed("c1")
HOLD = held(KEY, CALL)


@pytest.fixture
def views(database_url: str) -> Iterator[Views]:
    opened = open_views(database_url)
    yield opened
    opened.close()


def ask(views: Views, question: Callable[[Moment], T]) -> T:
    return views.read_now(question)[0]


def state_at(views: Views, until: Until, step_bytes: int) -> ExecutionState:
    """The state of run-1, which is read in steps of so many bytes."""
    wanted = WantedRows(frozenset({"c1"}), frozenset({HOLD.hold_id}))
    fold = Fold(*OURS, "run-1", until, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "STEP_BYTES", step_bytes)
        while not ask(views, fold.step):
            pass
    return fold.state


def a_log() -> LogBuilder:
    """run-1: a decided call and an open request; runs 2 to 5: a held call each; another tenant's run-1."""
    builder = LogBuilder(4).claim_all()
    builder.append(KEY, [started()], command_id="start")
    builder.append(KEY, [CALL, judged(CALL), HOLD], command_id="propose")
    word = decided(HOLD)
    builder.append(KEY, [word, released(CALL, word.decision_id)], command_id="approve")
    builder.append(KEY, [consumed(CALL)])
    builder.append(KEY, [succeeded(CALL)])
    builder.append(KEY, [ASKED, REQUEST_HOLD])
    for number in range(2, 6):
        key = key_of(f"run-{number}")
        builder.append(key, [started("mail-bot" if number == 5 else "billing-bot")])
        builder.append(key, next(held_cycle(key, "c1", number)))
    foreign = key_of("run-1", tenant="other")
    builder.append(foreign, [started()])
    builder.append(foreign, next(held_cycle(foreign, "c1", 1)))
    return builder


@pytest.fixture
def filled(filler: Filler) -> Filler:
    filler.fill(a_log())
    return filler


def pages(views: Views, question: Callable[[Moment, str | None], Page]) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page = ask(views, lambda moment: question(moment, cursor))
        found.append([row["execution_id"] for row in page.rows])
        if (cursor := page.next_cursor) is None:
            return found


def test_read_answers_with_the_positions_of_the_same_moment(filled: Filler, views: Views) -> None:
    builder = a_log()
    row, positions = views.read_now(lambda moment: resources.execution(moment, *OURS, "run-1"))
    assert row is not None
    assert positions.executions == {number: len(records) for number, records in enumerate(builder.records)}
    assert positions.definitions == 0


async def test_read_from_several_tasks_at_once_answers_each(filled: Filler, views: Views) -> None:
    import asyncio

    answers = await asyncio.gather(
        *(views.read(lambda moment: resources.execution(moment, *OURS, "run-2")) for _ in range(20))
    )
    assert {row["execution_id"] for row, _ in answers if row is not None} == {"run-2"}


def test_reviewers_are_who_decided_since_a_moment_and_how_often_which_way(
    filled: Filler, views: Views
) -> None:
    everybody = ask(views, lambda moment: reviewers(moment, *OURS, 0))
    (ann,) = everybody
    assert (ann.reviewer, ann.approved) == ("ann@acme", 1)
    assert (ann.edited, ann.rejected, ann.answered) == (0, 0, 0)
    last_ms = ann.last_decided_at_ms
    assert ask(views, lambda moment: reviewers(moment, *OURS, last_ms)) == everybody
    assert ask(views, lambda moment: reviewers(moment, *OURS, last_ms + 1)) == []
    assert ask(views, lambda moment: reviewers(moment, "other", "main", 0)) == []


def test_moment_sees_nothing_of_what_is_written_meanwhile(filled: Filler, views: Views) -> None:
    later = a_log()
    later.append(key_of("run-2"), [x.ExecutionPaused(reason="", by="ann@acme")])

    def twice(moment: Moment) -> list[str]:
        seen = [_state(moment)]
        writing = threading.Thread(target=filled.fill, args=(later,))
        writing.start()
        writing.join()
        return [*seen, _state(moment)]

    assert ask(views, twice) == ["waiting_approval", "waiting_approval"]
    assert ask(views, _state) == "paused"


def _state(moment: Moment) -> str:
    row = resources.execution(moment, *OURS, "run-2")
    assert row is not None
    return str(row["state"])


@pytest.mark.parametrize(("tenant", "project"), [("other", "main"), ("acme", "elsewhere"), ("", "")])
def test_other_owners_see_nothing_of_ours(filled: Filler, views: Views, tenant: str, project: str) -> None:
    hold_id = hold_id_of(key_of("run-2"), "c1")
    assert ask(views, lambda moment: resources.hold(moment, tenant, project, hold_id)) is None
    found = ask(views, lambda moment: resources.requests(moment, tenant, project, "r1", agent=None, limit=2))
    assert found == []
    assert ask(views, lambda moment: resources.answer(moment, tenant, project, "propose", "")) is None
    assert ask(views, lambda moment: resources.execution(moment, tenant, project, "run-2")) is None
    assert ask(views, lambda moment: resources.call(moment, tenant, project, "run-2", "c1")) is None
    assert ask(views, lambda moment: [*history.each_event(moment, tenant, project, "run-2")]) == []
    of_other = ask(views, lambda moment: lists.executions(moment, tenant, project)).rows
    assert {row["tenant"] for row in of_other} <= {tenant}


def test_executions_are_listed_newest_first_in_pages(filled: Filler, views: Views) -> None:
    found = pages(views, lambda moment, cursor: lists.executions(moment, *OURS, cursor=cursor, limit=2))
    assert found == [["run-5", "run-4"], ["run-3", "run-2"], ["run-1"]]


def test_executions_are_filtered_by_state_and_agent(filled: Filler, views: Views) -> None:
    waiting = ask(views, lambda moment: lists.executions(moment, *OURS, state="waiting_approval"))
    assert [row["execution_id"] for row in waiting.rows] == ["run-5", "run-4", "run-3", "run-2"]
    mail = ask(views, lambda moment: lists.executions(moment, *OURS, agent="mail-bot"))
    assert [row["execution_id"] for row in mail.rows] == ["run-5"]
    assert ask(views, lambda moment: lists.executions(moment, *OURS, state="completed")).rows == []


def test_open_holds_are_listed_longest_open_first_in_pages(filled: Filler, views: Views) -> None:
    found = pages(
        views, lambda moment, cursor: lists.holds(moment, *OURS, status="open", cursor=cursor, limit=3)
    )
    assert found == [["run-1", "run-2", "run-3"], ["run-4", "run-5"]]


def test_holds_are_filtered_by_status_and_kind(filled: Filler, views: Views) -> None:
    resolved = ask(views, lambda moment: lists.holds(moment, *OURS, status="resolved"))
    assert [row["hold_id"] for row in resolved.rows] == [HOLD.hold_id]
    asked = ask(views, lambda moment: lists.holds(moment, *OURS, status="open", kind="clarification"))
    assert [row["request_id"] for row in asked.rows] == ["r1"]
    nobody = ask(views, lambda moment: lists.holds(moment, *OURS, assignee="ann@acme"))
    assert nobody.rows == []


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "WzEsMl0", "!"])
def test_foreign_cursor_is_refused(filled: Filler, views: Views, cursor: str) -> None:
    with pytest.raises(BadCursor):
        ask(views, lambda moment: lists.holds(moment, *OURS, cursor=cursor))


def test_request_is_found_by_its_own_id(filled: Filler, views: Views) -> None:
    def holds(agent: str | None) -> list[tuple[str, str]]:
        rows = ask(views, lambda moment: resources.requests(moment, *OURS, "r1", agent=agent, limit=2))
        return [(row["hold_id"], row["status"]) for row in rows]

    assert (holds(None), holds("nobody")) == ([("h-r1", "open")], [])


def test_audit_row_gets_its_result_when_the_call_has_ended(filled: Filler, views: Views) -> None:
    page = ask(views, lambda moment: lists.audit(moment, *OURS, subject="ann@acme"))
    (approval,) = [audit_json(row) for row in page.rows]
    assert (approval["action"], approval["call_id"], approval["digest"]) == ("approve", "c1", CALL.digest)
    assert approval["result"]["status"] == "succeeded"
    assert approval["result"]["output"] == {"receipt": "R-1"}


def test_audit_since_a_moment_leaves_out_what_was_before(filled: Filler, views: Views) -> None:
    assert ask(views, lambda moment: lists.audit(moment, *OURS, since_ms=START_MS)).rows != []
    assert ask(views, lambda moment: lists.audit(moment, *OURS, since_ms=START_MS * 2)).rows == []


def test_answer_leads_to_exactly_the_events_of_its_command(filled: Filler, views: Views) -> None:
    def events(moment: Moment) -> list[str]:
        row = resources.answer(moment, *OURS, "propose", key_of("run-1").decode())
        assert row is not None
        return [event.type for event in history.events_of_answer(moment, row)]

    assert ask(views, events) == ["ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]


def test_events_of_an_execution_are_those_of_the_log(filled: Filler, views: Views) -> None:
    from schemas.headers import read_event

    rows = ask(views, lambda moment: [*history.each_event(moment, *OURS, "run-1")])
    on_the_log = [read_event(raw) for records in a_log().records for raw in records if raw.key == KEY]
    assert [history.event_of(row) for row in rows] == on_the_log
    assert history.event_json(rows[0])["data"]["agent"] == "billing-bot"


def test_event_at_a_place_is_found_by_its_project_and_agent_alone(filled: Filler, views: Views) -> None:
    def event(tenant: str, project: str, partition: int, offset: int, agent: str | None) -> EventRow | None:
        return ask(
            views,
            lambda now: history.event_at(
                now, tenant, project, partition=partition, offset=offset, agent=agent
            ),
        )

    for row in ask(views, lambda moment: [*history.each_event(moment, *OURS, "run-5")]):
        place = row["log_partition"], row["log_offset"]
        assert event(*OURS, *place, None) == event(*OURS, *place, "mail-bot") == row
        assert event(*OURS, *place, "billing-bot") is None
        assert event("other", "main", *place, None) is event("acme", "elsewhere", *place, None) is None
    assert event(*OURS, 0, 10**15, None) is None


def test_event_at_a_place_is_found_by_an_index(filled: Filler, views: Views) -> None:
    plan: list[str] = []

    def explained(now: Moment) -> None:
        explain = "EXPLAIN QUERY PLAN" if now.dialect is DIALECT else "EXPLAIN"
        if now.dialect is not DIALECT:
            # Of a table as small as this one the database would read everything.
            now.execute("SELECT set_config('enable_seqscan', 'off', true)", ())

        def execute(text: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
            plan.extend(str(row) for row in now.execute(f"{explain} {text}", values))
            return now.execute(text, values)

        history.event_at(replace(now, execute=execute), *OURS, partition=1, offset=1)

    ask(views, explained)
    assert "events_by_place" in "\n".join(plan), plan


def test_state_at_a_version_or_time_is_the_fold_up_to_there(filled: Filler, views: Views) -> None:
    rows = ask(views, lambda moment: [*history.each_event(moment, *OURS, "run-1")])
    held_at: Row = next(row for row in rows if row["type"] == "HoldOpened")
    for at in (
        Until(version=held_at["version"]),
        Until(at_ms=held_at["at_ms"]),
        Until(offset=held_at["log_offset"]),
    ):
        state = state_at(views, at, 2)
        assert state.execution is not None
        assert state.execution["state"] == "waiting_approval"
        assert state.calls["c1"]["status"] == "held"
        assert state.holds[HOLD.hold_id]["status"] == "open"
    now = state_at(views, Until(), 2**20)
    assert now.calls["c1"] == ask(views, lambda moment: resources.call(moment, *OURS, "run-1", "c1"))
    assert now.execution == ask(views, lambda moment: resources.execution(moment, *OURS, "run-1"))


def test_version_that_a_command_published_is_read_by_its_answer(filler: Filler, views: Views) -> None:
    log = LogBuilder(1).claim_all()
    for version in (1, 2):
        log.append(policy_key("production"), [policy_published("production", version)], partition=0)
        log.append(
            tool_key("send_money"),
            [tool_published("send_money", version)],
            partition=0,
            command_id=f"t{version}",
        )
    filler.fill(definitions=log)
    answer = ask(views, lambda moment: resources.answer(moment, "acme", "main", "t1", ""))
    assert answer is not None
    published = ask(views, lambda moment: definitions.published_by_command(moment, answer))
    assert published is not None
    assert published["version"] == 1
    assert views.read_now(lambda moment: None)[1].definitions == 5


def test_adoption_is_told_by_partition(filler: Filler, views: Views) -> None:
    builder = LogBuilder(2).claim_all()
    builder.adopted(1, 4, {})
    filler.fill(builder)
    assert ask(views, definitions.adopted_through) == {1: 4}


def test_agents_are_listed_with_what_they_did(filled: Filler, views: Views) -> None:
    rows = ask(views, lambda moment: lists.agents(moment, *OURS))
    assert [(row["agent"], row["tool"], row["proposed"]) for row in rows] == [
        ("billing-bot", "send_money", 5)
    ]
    (evidence,) = ask(views, lambda moment: lists.agent_evidence(moment, *OURS, "billing-bot"))
    assert (evidence["approved"], evidence["succeeded"]) == (1, 1)


def test_read_before_there_is_a_view_says_what_to_start(views: Views) -> None:
    with pytest.raises(ViewUnavailable, match="start the projector"):
        ask(views, lambda moment: None)


def test_hold_id_of_a_call_is_known_to_whoever_knows_the_call(filled: Filler, views: Views) -> None:
    hold_id = derived_id("hold", "acme", "main", "run-2", "c1", 1)
    row = ask(views, lambda moment: resources.hold(moment, *OURS, hold_id))
    assert row is not None
    assert row["execution_id"] == "run-2"

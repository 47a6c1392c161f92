"""A history without end costs a query little memory, on both databases."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from projections.queries import history, lists, moment, resources
from projections.queries.history import Fold, Until, WantedRows
from projections.queries.moment import Moment
from projections.queries.paging import PageOf
from projections.queries.views import Views, open_views
from schemas.events import conversations as v
from schemas.message import Message
from tests.projections.filling import Filler
from tests.projections.folding import KEY
from tests.projections.histories import LogBuilder, held, proposed, started

T = TypeVar("T")
OURS = ("acme", "main")
REPLIES = 80
DETAILS = '{"a":"%s"}' % ("x" * 200_000)
CALLS = 50
HELD = proposed("c7")
HOLD = held(KEY, HELD)


def reply(number: int) -> v.ReplyPosted:
    return v.ReplyPosted(
        turn_id="m", attempt_id="a", number=number, text="r", details=DETAILS, lease_until_ms=9, by="bot"
    )


def a_long_log() -> LogBuilder:
    """A turn with large replies, then calls with large arguments, one of them held."""
    log = LogBuilder(1).claim_all()
    said: list[Message] = [
        started(),
        v.MessageSent(turn_id="m", text="hello", by="rita"),
        v.TurnClaimed(turn_id="m", attempt_id="a", lease_until_ms=9, by="bot"),
        *map(reply, range(1, REPLIES + 1)),
        v.TurnEnded(turn_id="m", outcome="completed", error="", by="bot"),
    ]
    for number, body in enumerate(said):
        log.append(KEY, [body], command_id=f"say-{number}")
    for number in range(CALLS):
        call = proposed(f"c{number}").model_copy(update={"arguments": DETAILS})
        log.append(KEY, [call, *([HOLD] if number == 7 else [])], command_id=f"propose-{number}")
    return log


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    filler.fill(a_long_log())
    opened = open_views(database_url)
    yield opened
    opened.close()


def ask(views: Views, question: Callable[[Moment], T]) -> T:
    return views.read_now(question)[0]


def folded(views: Views, until: Until, wanted: WantedRows, through: Callable[[Moment], Moment]) -> Fold:
    fold = Fold(*OURS, "run-1", until, wanted)
    while not ask(views, lambda at: fold.step(through(at))):
        pass
    return fold


def test_case_30_fold_of_a_long_history_keeps_what_is_wanted_and_little_more(views: Views) -> None:
    tracemalloc.start()
    wanted = WantedRows(holds=frozenset({HOLD.hold_id}))
    state = folded(views, Until(), wanted, lambda at: at).state
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All of it has 26 MB. PostgreSQL sends 16 rows at once.
    assert peak < 9_000_000
    # The call of a wanted hold is needed for what the hold shows.
    assert set(state.calls) == {"c7"}
    assert state.holds[HOLD.hold_id]["arguments"] == DETAILS
    assert state.turns == {}
    assert state.execution == ask(views, lambda at: resources.execution(at, *OURS, "run-1"))


def test_case_30_state_at_an_early_moment_reads_only_the_events_before_it(views: Views) -> None:
    read: list[Any] = []

    def counted(at: Moment) -> Moment:
        def stream(text: str, values: Sequence[Any]) -> Generator[Sequence[Any], None, None]:
            for row in at.stream(text, values):
                read.append(row)
                yield row

        return replace(at, stream=stream)

    fold = folded(views, Until(version=2), WantedRows(), counted)
    assert (len(read), fold.state.execution and fold.state.execution["version"]) == (2, 2)
    at_ms = read[1][8]
    read.clear()
    assert folded(views, Until(at_ms=at_ms), WantedRows(), counted).state.execution is not None
    assert 2 <= len(read) < REPLIES


def test_open_holds_that_are_not_wanted_count_without_their_texts(views: Views) -> None:
    fold = folded(views, Until(), WantedRows(), lambda at: at)
    assert fold.state.execution is not None
    assert fold.state.execution["open_approvals"] == 1
    assert fold.state.holds == {}
    (kept,) = fold._others.values()
    assert moment.size_of(kept) < 4_000


def test_step_ends_at_its_bytes_and_the_next_goes_on(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STEP_BYTES", 1_000_000)
    monkeypatch.setattr(history, "STEP_S", 60.0)
    fold, steps = Fold(*OURS, "run-1"), 1
    while not ask(views, fold.step):
        steps += 1
    assert steps == pytest.approx((REPLIES + CALLS) / 5, abs=3)


@pytest.mark.parametrize("query", [history.events, resources.messages])
def test_case_30_page_of_the_log_ends_at_its_bytes_and_the_next_goes_on(views: Views, query: Any) -> None:
    found, pages, is_cut = [-1], 0, True
    while is_cut:
        page = partial(query, after_offset=found[-1], limit=501)
        rows, is_cut = ask(views, lambda at: page(at, *OURS, "run-1"))  # noqa: B023 – it is called at once
        assert sum(map(moment.size_of, rows)) < moment.READ_BYTES + 300_000
        found += [row["log_offset"] for row in rows]
        pages += 1
    assert found == sorted(set(found))
    assert len(found) >= REPLIES
    assert pages > 1


def test_list_of_calls_ends_at_its_bytes_and_the_next_page_goes_on(views: Views) -> None:
    found, cursor, pages = list[str](), None, 0
    while not pages or cursor is not None:
        page: PageOf[Any] = ask(views, lambda at: lists.calls(at, *OURS, "run-1", cursor))  # noqa: B023
        assert sum(map(moment.size_of, page.rows)) < moment.READ_BYTES + 300_000
        found += [row["call_id"] for row in page.rows]
        cursor, pages = page.next_cursor, pages + 1
    assert sorted(found) == sorted(f"c{number}" for number in range(CALLS))
    assert pages > 1

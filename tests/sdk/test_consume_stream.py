"""Consuming over the gateway's stream: where it goes on, what it skips, and what it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from placet import CheckpointRefused, NotAuthorised, Unreachable, consume
from placet.parsing import UnexpectedAnswer
from tests.sdk.consuming import (
    CAUGHT_UP,
    GONE,
    GONE_QUIET,
    PLACE,
    QUIET,
    TOO_SLOW,
    Connection,
    Gateway,
    Kept,
    consumer,
    event,
    take,
)
from tests.sdk.scripted import QUICK, Scripted, serving
from tests.sdk.threaded import serving_thread


def refused(status: int, code: str, detail: str) -> Response:
    return JSONResponse({"code": code, "status": status, "detail": detail}, status)


async def test_consume_event_has_what_the_log_says_of_it() -> None:
    async with serving(Gateway([[event(7), QUIET]]).script()) as script:
        (found,) = await take(consumer(script), 1)
    assert (found.id, found.type, found.execution_id, found.version) == ("id-7", "ExecutionPaused", "run", 7)
    assert found.at == datetime(2026, 1, 31, 9, 30, 0, 250_000, UTC)
    assert (found.partition, found.offset, found.term, found.command_id) == (1, 7, 0, "c")
    assert (found.data, found.cursor, found.raw, found.tenant) == ({"reason": "lunch"}, "7", b"", "")


async def test_consume_over_lost_connections_goes_on_after_the_last_event() -> None:
    gateway = Gateway([[event(1), event(2)], [event(3)], refused(503, "unavailable", ""), [event(4), QUIET]])
    async with serving(gateway.script()) as script:
        found = await take(consumer(script), 4)
    assert [one.id for one in found] == ["id-1", "id-2", "id-3", "id-4"]
    assert gateway.cursors == ["earliest", "2", "3", "3"]
    assert gateway.params[0] == {"channels": "events"}


async def test_consume_without_following_ends_with_what_there_is() -> None:
    gateway = Gateway([[event(1)], [event(2), CAUGHT_UP]])
    async with serving(gateway.script()) as script:
        found = [one.id async for one in consumer(script, follow=False)]
    assert found == ["id-1", "id-2"]
    assert gateway.params[1] == {"channels": "events", "follow": "false"}


async def test_consume_of_an_empty_history_ends_at_once() -> None:
    async with serving(Gateway([[CAUGHT_UP]]).script()) as script:
        assert [one async for one in consumer(script, follow=False)] == []


async def test_consume_from_the_latest_sends_no_position() -> None:
    gateway = Gateway([[event(5), QUIET]])
    async with serving(gateway.script()) as script:
        await take(consumer(script, start="latest"), 1)
    assert gateway.cursors == [None]


async def test_consume_from_the_latest_that_was_lost_before_its_first_message_has_no_position() -> None:
    gateway = Gateway([refused(503, "unavailable", ""), [], [event(5)], [event(6), QUIET]])
    async with serving(gateway.script()) as script:
        found = await take(consumer(script, start="latest"), 2)
    assert [one.id for one in found] == ["id-5", "id-6"]
    assert gateway.cursors == [None, None, None, "5"]


async def test_consume_too_slow_for_the_stream_goes_on_after_its_last_event() -> None:
    in_vain: list[Connection | Response] = [[TOO_SLOW]] * 5
    gateway = Gateway([[event(1), TOO_SLOW], *in_vain, [event(2), QUIET]])
    async with serving(gateway.script()) as script:
        found = await take(consumer(script), 2)
    assert [one.id for one in found] == ["id-1", "id-2"]
    assert gateway.cursors == ["earliest", *["1"] * 6]


async def test_consume_whose_subject_has_too_much_waiting_is_tried_longer_than_a_gateway_that_never_answered() -> (
    None
):
    kept = Kept(PLACE)
    in_vain: list[Connection | Response] = [[TOO_SLOW]] * 6
    gateway = Gateway([*in_vain, [GONE]])
    async with serving(gateway.script()) as script:
        patience = replace(QUICK, request_s=0.0, outage_s=60.0)
        with pytest.raises(CheckpointRefused):
            await take(consume(script.url, token="secret", patience=patience, checkpoint=kept), 1)
    assert (gateway.cursors, kept.saved) == ([PLACE] * 7, [])


async def test_consume_whose_subject_has_too_much_waiting_keeps_its_position_until_its_patience_is_over() -> (
    None
):
    kept = Kept(PLACE)
    gateway = Gateway([[TOO_SLOW]] * 1_000)
    async with serving(gateway.script()) as script:
        patience = replace(QUICK, request_s=0.0, outage_s=0.3)
        with pytest.raises(Unreachable, match="for all readers of its subject"):
            await take(consume(script.url, token="secret", patience=patience, checkpoint=kept), 1)
    # The pauses become longer and longer.
    assert len(gateway.cursors) < 60
    assert (set(gateway.cursors), kept.saved) == ({PLACE}, [])


async def test_consume_from_a_position_that_is_gone_is_an_error_and_never_starts_elsewhere() -> None:
    gateway = Gateway([[GONE]])
    async with serving(gateway.script()) as script:
        with pytest.raises(CheckpointRefused, match="start with another checkpoint") as error:
            await take(consumer(script, start=PLACE), 1)
    assert (error.value.why, error.value.acts) == ("gone", "operator")
    assert gateway.cursors == [PLACE]


@pytest.mark.parametrize("start", ["", "lastest", "Earliest", "9"])
def test_consume_from_what_is_no_position_says_what_there_is(start: str) -> None:
    with pytest.raises(ValueError, match=r"'earliest', 'latest' or an event's cursor, not "):
        consume("http://127.0.0.1:1", token="secret", start=start)


async def test_consume_from_a_position_of_another_installation_is_an_error() -> None:
    detail = "Last-Event-ID: this is no position in this installation's log"
    async with serving(Gateway([refused(422, "invalid", detail)]).script()) as script:
        with pytest.raises(CheckpointRefused) as error:
            await take(consumer(script, start=PLACE), 1)
    assert error.value.why == "other_log"


@pytest.mark.parametrize("first", [[], [[event(1)]]])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (HTMLResponse("<html>welcome to the portal</html>"), "answers with text/html"),
        (Response(b""), "which is no stream"),
        ([], "before the first message"),
    ],
)
async def test_consume_from_a_server_that_is_no_gateway_ends_after_its_patience(
    first: list[Connection | Response], answer: Connection | Response, says: str
) -> None:
    quick = replace(QUICK, request_s=0.2, outage_s=0.2)
    gateway = Gateway([*first, *[answer] * 1_000])
    async with serving(gateway.script()) as script:
        with pytest.raises(Unreachable, match=says):
            await asyncio.wait_for(take(consume(script.url, token="secret", patience=quick), 2), 30)
    assert set(gateway.cursors) == ({"earliest", "1"} if first else {"earliest"})


async def test_consume_by_a_token_that_may_not_read_is_refused() -> None:
    async with serving(Gateway([refused(403, "not_authorised", "no")]).script()) as script:
        with pytest.raises(NotAuthorised):
            await take(consumer(script), 1)


async def test_consume_where_nobody_answers_ends_after_its_patience() -> None:
    async with serving(Scripted()) as script:
        url = script.url
    quick = QUICK.__class__(request_s=0.2, open_s=0.1, first_delay_s=0.01)
    with pytest.raises(Unreachable):
        await take(consume(url, token="secret", patience=quick), 1)


async def test_consume_of_an_unknown_type_delivers_it_as_it_is() -> None:
    sent = event(1, "HoldTeleported", data={"to": ["mars"]}, new_field=1)
    async with serving(Gateway([[sent, QUIET]]).script()) as script:
        (found,) = await take(consumer(script), 1)
    assert (found.type, found.data) == ("HoldTeleported", {"to": ["mars"]})


async def test_consume_of_something_that_is_no_event_is_an_error() -> None:
    async with serving(Gateway([[event(1, at="yesterday"), QUIET]]).script()) as script:
        with pytest.raises(UnexpectedAnswer, match="an event of the stream"):
            await take(consumer(script), 1)


async def test_consume_by_type_and_execution_delivers_these_only() -> None:
    sent = [
        event(1),
        event(2, "ExecutionResumed"),
        event(3, "ExecutionResumed", execution_id="other"),
        event(4, "ExecutionResumed"),
        QUIET,
    ]
    async with serving(Gateway([sent]).script()) as script:
        found = await take(consumer(script, types="ExecutionResumed", execution=["run"]), 2)
    assert [one.id for one in found] == ["id-2", "id-4"]


async def test_consume_by_a_type_that_does_not_exist_says_which_do() -> None:
    async with serving(Gateway([]).script()) as script:
        with pytest.raises(ValueError, match=r"no event type 'HoldOpend'.*HoldOpened"):
            await take(consumer(script, types=["HoldOpened", "HoldOpend"]), 1)


@pytest.mark.parametrize("given", [[], "", ["x", ""]])
def test_consume_by_a_filter_that_names_nothing_is_refused_at_once(given: object) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        consume("http://127.0.0.1:1", token="secret", agents=given)  # type: ignore[arg-type]


async def test_consume_by_agent_reads_each_execution_once_unless_it_saw_its_start() -> None:
    sent = [
        event(1, execution_id="a"),
        event(2, execution_id="a"),
        event(3, "ExecutionStarted", execution_id="b", data={"agent": "billing"}),
        event(4, execution_id="b"),
        event(5, execution_id="nowhere"),
        event(6, execution_id="c"),
        QUIET,
    ]
    gateway = Gateway([sent], {"a": "billing", "c": "billing", "b": "wrong"})
    async with serving(gateway.script()) as script:
        found = await take(consumer(script, agents=["billing"]), 5)
    assert [one.id for one in found] == ["id-1", "id-2", "id-3", "id-4", "id-6"]
    assert gateway.read == ["a", "nowhere", "c"]


async def test_consume_goes_on_from_where_a_quiet_stream_says_that_it_is() -> None:
    gateway = Gateway([[event(1), GONE_QUIET], [event(2), QUIET]])
    async with serving(gateway.script()) as script:
        await take(consumer(script), 2)
    assert gateway.cursors == ["earliest", "quiet"]


def test_consume_in_a_program_that_blocks_is_the_same() -> None:
    gateway = Gateway([[event(1)], [event(2), CAUGHT_UP], [event(1), QUIET]])
    with serving_thread(gateway.script()) as script:
        both = consumer(script, follow=False)
        assert [one.id for one in both] == ["id-1", "id-2"]
        first = iter(both)
        assert next(first).id == "id-1"
        first.close()
    assert gateway.cursors == ["earliest", "1", "earliest"]

import asyncio
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from placet import asks
from placet.errors import Unreachable
from placet.transport.port import Frame, Patience, Reply, Request
from placet.transport.rest import AT_ONCE_MAX, RestTransport
from placet.transport.retry import delays
from tests.sdk.scripted import QUICK, Asked, Scripted, serving


async def send(script: Scripted, request: Request, patience: Patience = QUICK) -> Reply:
    transport = RestTransport(script.url, lambda: "secret", patience)
    try:
        return await transport.send(request)
    finally:
        await transport.close()


def scripted(*answers: Response) -> Scripted:
    coming = iter(answers)

    async def answer(asked: Asked) -> Response:
        return next(coming)

    return Scripted(on_http=answer)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), r"options\[0\]\.id is nan, which is not a JSON number"),
        ({1}, r"options\[0\]\.id is a builtins\.set"),
    ],
)
async def test_value_that_json_has_not_is_named_and_nothing_is_sent(value: object, why: str) -> None:
    """By both transports: on the socket the body is a part of the message."""
    script = scripted()
    request = asks.change_hold("h1", "decision", {"options": [{"id": value}]})
    async with serving(script):
        with pytest.raises((TypeError, ValueError), match=f"^{why}"):
            await send(script, request)
    with pytest.raises((TypeError, ValueError), match=f"^{why}"):
        replace(request, frame=Frame("decide", {})).frame_text()
    assert not script.asked


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_send_answered_for_now_not_is_repeated_with_the_same_key(status: int) -> None:
    script = scripted(Response(status_code=status), Response(status_code=status), JSONResponse({"x": 1}, 201))
    async with serving(script):
        reply = await send(script, asks.put_tool("pay", {}))
    assert reply == Reply(201, {"x": 1})
    assert len(script.asked) == 3
    assert len({asked.headers["idempotency-key"] for asked in script.asked}) == 1


async def test_send_told_when_to_come_back_waits_that_long() -> None:
    script = scripted(Response(status_code=429, headers={"Retry-After": "1"}), JSONResponse({}))
    async with serving(script):
        started = asyncio.get_running_loop().time()
        await send(script, asks.put_tool("pay", {}))
    assert asyncio.get_running_loop().time() - started >= 1


async def test_send_refused_is_answered_once() -> None:
    script = scripted(JSONResponse({"code": "already_decided"}, 409))
    async with serving(script):
        reply = await send(script, asks.change_hold("h1", "decision", {"decision": "approve"}))
    assert (reply.status, reply.ok, len(script.asked)) == (409, False, 1)


async def test_send_never_served_gives_the_last_answer() -> None:
    async def busy(asked: Asked) -> Response:
        return JSONResponse({"code": "unavailable"}, 503)

    script = Scripted(on_http=busy)
    async with serving(script):
        reply = await send(script, asks.read("/tools"), replace(QUICK, request_s=1.0))
    assert reply.status == 503
    assert len(script.asked) > 1


async def test_send_where_nobody_listens_is_unreachable() -> None:
    script = Scripted()
    async with serving(script):
        pass
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        await send(script, asks.read("/tools"), replace(QUICK, request_s=0.2))


async def test_send_of_a_read_has_no_idempotency_key() -> None:
    script = scripted(JSONResponse({"items": []}))
    async with serving(script):
        await send(script, asks.list_holds({"status": "open", "kind": None}))
    assert "idempotency-key" not in script.asked[0].headers
    assert script.asked[0].params == {"status": "open"}


async def test_send_of_a_yaml_policy_is_the_text_as_it_is() -> None:
    script = scripted(JSONResponse({"version": 1}))
    async with serving(script):
        await send(script, asks.put_policy("prod/eu", "policy: prod/eu\n# kept\n"))
    asked = script.asked[0]
    assert asked.body == b"policy: prod/eu\n# kept\n"
    assert asked.headers["content-type"] == "application/yaml"


async def test_send_answered_with_a_page_keeps_its_text() -> None:
    script = scripted(PlainTextResponse("<html>who are you", 400))
    async with serving(script):
        assert (await send(script, asks.read("/tools"))).body == "<html>who are you"


async def test_decision_is_one_long_poll_of_a_minute_at_most() -> None:
    script = scripted(JSONResponse({"status": "held"}))
    async with serving(script):
        transport = RestTransport(script.url, lambda: "secret", QUICK)
        await transport.decision(("run", "c1"), float("inf"))
        await transport.close()
    assert script.asked[0].params == {"wait": "50"}


@pytest.mark.parametrize("id_", ["a/b", "a?b", ""])
def test_requests_about_ids_that_would_change_the_address_are_refused(id_: str) -> None:
    with pytest.raises(ValueError, match="call id"):
        asks.get_call("run", id_, None, None)


def test_requests_about_ids_of_dots_alone_keep_their_address() -> None:
    assert asks.get_call("..", ".", None, None).path == "/executions/%2E%2E/tool-calls/%2E"


def test_delays_double_up_to_a_ceiling_and_spread() -> None:
    pauses = delays(Patience(first_delay_s=1, most_delay_s=4))
    for whole in (1, 2, 4, 4, 4):
        assert whole / 2 <= next(pauses) <= whole


async def test_requests_that_wait_for_people_do_not_hold_up_others() -> None:
    waiting, end = list[Asked](), asyncio.Event()

    async def slow_if_it_waits(asked: Asked) -> Response:
        if "wait" in asked.params:
            waiting.append(asked)
            await end.wait()
        return JSONResponse({"items": []})

    async with serving(Scripted(on_http=slow_if_it_waits)) as script:
        transport = RestTransport(script.url, lambda: "t", QUICK)
        long = [
            asyncio.create_task(transport.send(asks.get_call("e", f"c{number}", 60, None)))
            for number in range(AT_ONCE_MAX + 1)
        ]
        async with asyncio.timeout(QUICK.request_s):
            while len(waiting) < len(long):
                await asyncio.sleep(0.01)
            assert (await transport.send(asks.read("/tools"))).status == 200
        end.set()
        assert {reply.status for reply in await asyncio.gather(*long)} == {200}
        await transport.close()


async def test_cookie_that_a_proxy_sets_is_not_sent_with_another_callers_token() -> None:
    script = scripted(JSONResponse({}, headers={"Set-Cookie": "session=of-a; Path=/"}), JSONResponse({}))
    tokens = iter(("a", "b"))
    async with serving(script):
        transport = RestTransport(script.url, lambda: next(tokens), QUICK)
        await transport.send(asks.put_tool("pay", {}))
        await transport.send(asks.put_tool("pay", {}))
        await transport.close()
    assert [asked.headers["authorization"] for asked in script.asked] == ["Bearer a", "Bearer b"]
    assert [asked.headers.get("cookie") for asked in script.asked] == [None, None]

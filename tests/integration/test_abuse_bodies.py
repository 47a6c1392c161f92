"""Cases 17 and 18 of the abuse list: bodies too large, too deep, padded, or with two meanings."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from schemas import commands as k
from schemas.envelope import Draft
from tests.integration.doors import (
    Tenant,
    agent_of,
    asked,
    fresh,
    key_of,
    received,
    refused,
    site_log,
    socket,
)
from tests.integration.site import Site
from tests.schemas.token_commands import with_token
from tests.servers.stack import PLACET, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


# Cases 17 and 18: bodies.


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def raw_proposal(arguments: str) -> bytes:
    return f'{{"call_id":"c1","tool":"read_file","arguments":{arguments}}}'.encode()


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        (json.dumps({"text": "x" * 10 * 1024 * 1024}), (413, "too_large")),
        (json.dumps({"text": "x" * 256 * 1024}), (413, "too_large")),
        ('{"deep":' + nested(70) + "}", (413, "too_large")),
        ('{"deep":' + nested(100_000) + "}", (413, "too_large")),
        ('{"deep":' + nested(1_000_000) + "}", (413, "too_large")),
    ],
    ids=["10 MB", "256 KiB and a few", "70 levels", "100,000 levels", "1,000,000 levels"],
)
def test_case_17_giant_or_deep_arguments_are_refused_and_not_recorded(
    tenant: Tenant, arguments: str, outcome: tuple[int, str]
) -> None:
    execution_id = tenant.execution()

    answer = tenant.bot.post(f"/executions/{execution_id}/tool-calls", raw_proposal(arguments))

    assert refused(answer) == outcome
    assert tenant.events(execution_id) == ["ExecutionStarted"]


async def test_case_17_giant_body_that_hides_its_length_is_413(tenant: Tenant) -> None:
    execution_id = tenant.execution()

    def chunks() -> Iterator[bytes]:
        yield b'{"tool":"read_file","arguments":{"text":"'
        for _ in range(10):
            yield b"x" * 1024 * 1024

    answer = tenant.client.post(
        f"/v1/executions/{execution_id}/tool-calls",
        content=chunks(),
        headers={"Authorization": f"Bearer {tenant.bot.token}"},
    )

    assert refused(answer) == (413, "too_large")
    assert tenant.events(execution_id) == ["ExecutionStarted"]


def test_case_17_payload_behind_padding_is_shown_whole_before_it_can_be_approved(
    site: Site, tenant: Tenant
) -> None:
    execution_id = tenant.execution()
    arguments = {"to": "the usual account" + " " * 20_000 + "and everything else to GB99 EVIL", "amount": 5}
    call = tenant.propose(execution_id, "send_money", arguments)

    unseen = tenant.decide(call)
    assert refused(unseen) == (422, "invalid")
    assert f"GET /v1/holds/{call['hold_id']}/view" in unseen.json()["detail"]
    assert tenant.call(execution_id)["status"] == "held"

    shown = terminal(tenant, "approve", call["hold_id"], "--yes")

    assert shown.returncode == 0, shown.stderr
    assert f'"to": "the usual account\\s{{{20_000}}}and everything else to GB99 EVIL"' in shown.stdout
    assert "badges: padding" in shown.stdout
    assert shown.stdout.index("GB99 EVIL") < shown.stdout.index("approved")
    assert tenant.call(execution_id)["approved_arguments"] == arguments


def test_case_17_nested_and_long_arguments_are_approved_only_with_their_view(tenant: Tenant) -> None:
    deep = {"a": {"b": {"c": {"d": {"e": "GB99 EVIL"}}}}}
    for arguments in (deep, {"lines": "\n".join(map(str, range(60)))}, {"long": "x" * 5_000}):
        call = tenant.propose(tenant.execution(), "unknown_tool", arguments)
        assert refused(tenant.decide(call)) == (422, "invalid")
        view = tenant.rita.get(f"/holds/{call['hold_id']}/view").json()
        assert view["must_read"]
        assert not view["truncated"]
        assert tenant.decide(call, view_digest=view["view_digest"]).status_code == 200


def test_case_17_approval_that_nobody_confirmed_decides_nothing(site: Site, tenant: Tenant) -> None:
    execution_id, call = tenant.held()
    assert terminal(tenant, "approve", call["hold_id"]).returncode == 2
    assert refused(tenant.decide(call | {"digest": ""})) == (422, "invalid")
    assert tenant.call(execution_id)["status"] == "held"


def terminal(tenant: Tenant, *words: str) -> subprocess.CompletedProcess[str]:
    """The reviewer's terminal, without anybody at its keyboard."""
    env = {**os.environ, "PLACET_URL": tenant.site.url, "PLACET_TOKEN": tenant.rita.token, "COLUMNS": "200"}
    return subprocess.run(
        [PLACET, *words], env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


TWO_MEANINGS = {
    "duplicate key": '{"to":"rita","to":"mallory"}',
    "duplicate key, escaped": '{"to":"rita","\\u0074o":"mallory"}',
    "NaN": '{"amount":NaN}',
    "Infinity": '{"amount":-Infinity}',
    "1e400": '{"amount":1e400}',
    "lone surrogate": '{"to":"\\ud800"}',
    "surrogates the wrong way round": '{"to":"\\udc00\\ud800"}',
    "integer beyond 2^53": '{"amount":9007199254740993}',
}


@pytest.mark.parametrize("arguments", TWO_MEANINGS.values(), ids=TWO_MEANINGS.keys())
def test_case_18_json_with_two_meanings_is_400_and_not_recorded(tenant: Tenant, arguments: str) -> None:
    execution_id = tenant.execution()

    answer = tenant.bot.post(f"/executions/{execution_id}/tool-calls", raw_proposal(arguments))

    assert refused(answer) == (400, "malformed")
    assert tenant.events(execution_id) == ["ExecutionStarted"]


async def test_case_18_json_with_two_meanings_is_400_at_the_websocket(site: Site, tenant: Tenant) -> None:
    execution_id = tenant.execution()
    async with socket(site, tenant.bot.token) as ws:
        for name, arguments in TWO_MEANINGS.items():
            body = raw_proposal(arguments).decode()
            await ws.send(f'{{"type":"propose","ref":"r","execution_id":"{execution_id}","body":{body}}}')
            answer = await received(ws)
            # An answer to its ref, where that can be read.
            code = answer["body"]["code"] if answer["type"] == "reply" else answer["code"]
            assert (answer["status"], code) == (400, "malformed"), name
        assert (await asked(ws, "ping"))["type"] == "pong"
    assert tenant.events(execution_id) == ["ExecutionStarted"]


@pytest.mark.parametrize("arguments", TWO_MEANINGS.values(), ids=TWO_MEANINGS.keys())
async def test_case_18_json_with_two_meanings_over_kafka_is_refused_by_the_decider(
    site: Site, tenant: Tenant, arguments: str
) -> None:
    execution_id = tenant.execution()
    key = key_of(tenant, execution_id)
    propose = k.ProposeToolCall(call_id="c1", tool="read_file", arguments=arguments)
    async with site_log(site) as log:
        draft = Draft(propose, agent_of(tenant), fresh("json"), key)
        await log.log.send(log.place(key), with_token(draft, tenant.bot.token))
    types = wait_for(lambda: tenant.events(execution_id), lambda found: len(found) > 1)
    assert types == ["ExecutionStarted", "CommandRefused"]

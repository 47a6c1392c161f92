"""Cases 10, 11, 12 and 14 of the abuse list: who comes in."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from gateway.identity.keys import load_or_create
from schemas import commands as k
from schemas.canonical import canonical
from schemas.envelope import Draft
from schemas.events.executions import CommandRefused
from tests.integration.doors import (
    POLICY,
    PROJECT,
    Caller,
    Tenant,
    agent_of,
    asked,
    dead_letter,
    events_of,
    fresh,
    key_of,
    new_tenant,
    received,
    refused,
    site_log,
    socket,
)
from tests.integration.site import Site
from tests.schemas.token_commands import with_token

pytestmark = [pytest.mark.stack, pytest.mark.broker]

SECRET = b"a shared secret that nobody of the installation knows"


@pytest.fixture(scope="module")
def stranger(site: Site) -> Iterator[Tenant]:
    """Another tenant, whose people have every role."""
    with new_tenant(site) as found:
        yield found


# Case 10: another tenant's ids.


def probes(execution_id: str, call: Any) -> list[tuple[str, str, Any]]:
    """What a stranger could ask about a held call, with bodies that would be right."""
    execution, hold = f"/executions/{execution_id}", f"/holds/{call['hold_id']}"
    consume = {"digest": call["digest"], "attempt_id": "theirs"}
    return [
        ("GET", execution, None),
        ("GET", f"{execution}/events", None),
        ("GET", f"{execution}?at=1", None),
        ("GET", f"{execution}/tool-calls", None),
        ("GET", f"{execution}/tool-calls/c1", None),
        ("GET", hold, None),
        ("POST", f"{execution}/tool-calls", {"call_id": "c9", "tool": "read_file", "arguments": {}}),
        ("POST", f"{execution}/tool-calls/c1/consume", consume),
        ("POST", f"{execution}/tool-calls/c1/result", {"attempt_id": "theirs", "outcome": "succeeded"}),
        ("POST", f"{execution}/tool-calls/c1/revoke", {}),
        ("POST", f"{execution}/tool-calls/c1/report-impact", {"reason": "harm"}),
        *(("POST", f"{execution}/{verb}", {}) for verb in ("pause", "resume", "cancel", "complete", "fail")),
        *(("POST", f"{hold}/{verb}", {}) for verb in ("claim", "release", "escalate")),
        ("POST", f"{hold}/delegate", {"to": "me"}),
        ("POST", f"{hold}/extend", {"seconds": 60}),
        ("POST", f"{hold}/decision", {"decision": "approve", "digest": call["digest"]}),
    ]


async def test_case_10_another_tenants_ids_over_rest_are_404_and_leave_no_event(
    site: Site, tenant: Tenant, stranger: Tenant
) -> None:
    execution_id, call = tenant.held()
    mallory = stranger.caller("mallory", "admin", "reviewer", "operator")
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)

        for method, path, body in probes(execution_id, call):
            assert refused(mallory.ask(method, path, body)) == (404, "not_found"), (method, path)

        for mine in ("/executions", "/holds?status=open", "/holds", "/audit"):
            assert execution_id not in mallory.get(mine).text
        since = await log.since(ends)
        assert events_of(since, tenant.name) == events_of(since, stranger.name) == []
    assert tenant.call(execution_id)["status"] == "held"


async def test_case_10_another_tenants_ids_over_websocket_are_404_and_nothing_is_pushed(
    site: Site, tenant: Tenant, stranger: Tenant
) -> None:
    execution_id, call = tenant.held()
    ids = {"execution_id": execution_id, "call_id": "c1"}
    consume = {"digest": call["digest"], "attempt_id": "theirs"}
    async with site_log(site) as log, socket(site, stranger.token("mallory", "admin", "reviewer")) as ws:
        ends = await log.ends(log.log.topics.executions)
        replies = [
            await asked(ws, "decision", hold_id=call["hold_id"], decision="approve", digest=call["digest"]),
            await asked(ws, "claim", hold_id=call["hold_id"]),
            await asked(ws, "consume", **ids, body=consume),
            await asked(ws, "result", **ids, body={"attempt_id": "theirs", "outcome": "succeeded"}),
            await asked(ws, "propose", execution_id=execution_id, body={"tool": "read_file"}),
            await asked(ws, "subscribe", channels=[f"executions:{execution_id}"]),
            await asked(ws, "subscribe", channels=[f"calls:{execution_id}/c1"]),
        ]
        assert {(reply["status"], reply["body"]["code"]) for reply in replies} == {(404, "not_found")}

        await ws.send(json.dumps({"type": "subscribe", "channels": ["holds", "events"]}))
        assert tenant.decide(call).status_code == 200
        marker = stranger.execution()
        seen = [await received(ws)]
        while marker not in json.dumps(seen[-1]):
            seen.append(await received(ws))

        for secret in (execution_id, call["digest"], tenant.name):
            assert secret not in json.dumps(seen)
        types = [event.type for event in events_of(await log.since(ends), tenant.name)]
        assert types == ["DecisionRecorded", "ToolCallReleased"], "only what its own reviewer did"


async def test_case_10_another_tenants_key_over_kafka_is_a_dead_letter_and_leaves_no_event(
    site: Site, tenant: Tenant, stranger: Tenant
) -> None:
    execution_id, call = tenant.held()
    key = key_of(tenant, execution_id)
    token = stranger.token("mallory", "agent", agent="bot")
    consume = k.ConsumeGrant(call_id="c1", digest=call["digest"], attempt_id="theirs")
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)
        actor = agent_of(stranger)
        offset = await log.log.send(
            log.place(key), with_token(Draft(consume, actor, fresh("theft"), key), token)
        )

        letter = await dead_letter(log, log.place(key), offset)

        assert letter["placet_reason"] == b"wrong_key"
        assert events_of(await log.since(ends), tenant.name) == []
    assert tenant.call(execution_id)["status"] == "held"


async def test_report_and_sign_of_life_over_kafka_from_another_than_who_consumed_are_refused_and_change_nothing(
    site: Site, tenant: Tenant
) -> None:
    execution_id, call = tenant.held()
    assert tenant.decide(call).status_code == 200
    server = tenant.caller("bank", "tool:send_money")
    path = f"/executions/{execution_id}/tool-calls/c1"
    consume = {"digest": call["digest"], "attempt_id": "the-banks"}
    assert server.post(f"{path}/consume", consume).status_code == 200
    attempt_id = tenant.call(execution_id)["attempt_id"]
    key = key_of(tenant, execution_id)
    token = tenant.token("bot", "agent", agent="bot")
    lies = [
        k.ReportResult(call_id="c1", attempt_id=attempt_id, outcome="failed", error="never ran"),
        k.RenewLease(call_id="c1", attempt_id=attempt_id),
    ]
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)
        for lie in lies:
            draft = Draft(lie, agent_of(tenant), fresh("lie"), key)
            await log.log.send(log.place(key), with_token(draft, token))

        # It is decided after the lies, since it stands after them.
        told = server.post(f"{path}/result", {"attempt_id": attempt_id, "outcome": "succeeded", "output": 1})

        assert (told.status_code, told.json()["status"]) == (200, "succeeded")
        events = events_of(await log.since(ends), tenant.name)
    assert [(event.type, getattr(event.body, "code", "")) for event in events] == [
        ("CommandRefused", "already_consumed"),
        ("CommandRefused", "already_consumed"),
        ("ToolCallSucceeded", ""),
    ]


async def test_case_10_decision_forged_straight_to_kafka_is_a_dead_letter_and_decides_nothing(
    site: Site, tenant: Tenant
) -> None:
    execution_id, call = tenant.held()
    key = key_of(tenant, execution_id)
    approve = k.DecideHold(hold_id=call["hold_id"], decision="approve", digest=call["digest"])
    actor = agent_of(tenant)
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)
        by_reviewer = with_token(Draft(approve, actor, fresh("forged"), key), tenant.rita.token)
        signed = log.signer.sign([Draft(approve, actor, fresh("forged"), key)])[0]
        other_id = tuple((n, b"another-id" if n == "ce_id" else v) for n, v in signed.headers)
        for record in (by_reviewer, signed._replace(headers=other_id)):
            offset = await log.log.send(log.place(key), record)
            letter = await dead_letter(log, log.place(key), offset)
            assert letter["placet_reason"] == b"unbelievable"
        assert events_of(await log.since(ends), tenant.name) == []
    assert tenant.call(execution_id)["status"] == "held"


# Case 11: tokens that must not be believed.


def claims(of: Tenant, **changed: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": "placet",
        "aud": "placet",
        "sub": "rita",
        "iat": now,
        "exp": now + 3600,
        "jti": fresh("token"),
        "tenant": of.name,
        "project": PROJECT,
        "roles": ["admin"],
    }
    return {name: value for name, value in (whole | changed).items() if value is not None}


def raw_token(header: dict[str, Any], payload: dict[str, Any]) -> str:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, payload)]
    return ".".join([*parts, ""])


def forged_tokens(tenant: Tenant) -> dict[str, str]:
    keys = load_or_create(tenant.keys_dir)
    kid, private = keys.issuer.kid, keys.issuer.private_key
    public = private.public_key().public_bytes_raw()

    def signed(**changed: Any) -> str:
        return jwt.encode(claims(tenant, **changed), private, "EdDSA", headers={"kid": kid})

    whole = signed()
    return {
        "alg none": raw_token({"alg": "none", "typ": "JWT", "kid": kid}, claims(tenant)),
        "alg None": raw_token({"alg": "None", "kid": kid}, claims(tenant)),
        "alg EdDSA, no signature": raw_token({"alg": "EdDSA", "kid": kid}, claims(tenant)),
        "HMAC with the public key": jwt.encode(claims(tenant), public, "HS256", headers={"kid": kid}),
        "HMAC with its own secret": jwt.encode(claims(tenant), SECRET, "HS256", headers={"kid": kid}),
        "the command key": jwt.encode(
            claims(tenant), keys.gateway.private_key, "EdDSA", headers={"kid": keys.gateway.kid}
        ),
        "unknown kid": jwt.encode(claims(tenant), private, "EdDSA", headers={"kid": "../issuer.pem"}),
        "no kid": jwt.encode(claims(tenant), private, "EdDSA"),
        "payload of another": ".".join(
            [whole.split(".")[0], *signed(sub="eve").split(".")[1:2], whole.split(".")[2]]
        ),
        "no exp": signed(exp=None),
        "no aud": signed(aud=None),
        "no iss": signed(iss=None),
        "other aud": signed(aud="another-product"),
        "list aud": signed(aud=["placet", "another-product"]),
        "other iss": signed(iss="https://issuer.example"),
        "expired": signed(exp=int(time.time()) - 1),
        "issued tomorrow": signed(iat=int(time.time()) + 86_400),
        "exp as text": signed(exp="2999-01-01"),
        "the system's role": signed(roles=["system"]),
        "the system's subject": signed(sub="placet:timer"),
        "no tenant": signed(tenant=None),
        "tenant as a path": signed(tenant=f"{tenant.name}/default"),
    }


def test_case_11_forged_tokens_are_401_at_rest(tenant: Tenant) -> None:
    for name, token in forged_tokens(tenant).items():
        answer = Caller(tenant.client, token).get("/holds")
        assert refused(answer) == (401, "unauthenticated"), name
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert token not in answer.text


async def test_case_11_forged_tokens_are_turned_away_at_the_websocket(site: Site, tenant: Tenant) -> None:
    for name, token in forged_tokens(tenant).items():
        async with socket(site) as ws:
            await ws.send(json.dumps({"type": "authenticate", "token": token}))
            assert (await received(ws))["code"] == "unauthenticated", name
            await ws.wait_closed()
            assert ws.close_code == 4401, name


async def test_case_11_forged_tokens_over_kafka_are_dead_letters(site: Site, tenant: Tenant) -> None:
    execution_id, _ = tenant.held()
    key = key_of(tenant, execution_id)
    forged = forged_tokens(tenant)
    propose = k.ProposeToolCall(call_id="c2", tool="read_file", arguments="{}")
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)
        for name in ("alg none", "HMAC with the public key", "no exp", "no aud", "no iss", "expired"):
            record = with_token(Draft(propose, agent_of(tenant), fresh("jwt"), key), forged[name])
            offset = await log.log.send(log.place(key), record)
            letter = await dead_letter(log, log.place(key), offset)
            assert letter["placet_reason"] == b"unbelievable", name
        assert events_of(await log.since(ends), tenant.name) == []


# Cases 12 and 14: sockets and time.


async def test_case_12_token_that_expires_mid_socket_closes_it(site: Site, tenant: Tenant) -> None:
    async with socket(site, tenant.token("rita", "reviewer", ttl_s=3)) as ws:
        await ws.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
        async with asyncio.timeout(20):
            await ws.wait_closed()
        assert (ws.close_code, ws.close_reason) == (4401, "the token has expired: get a new one")


async def test_case_14_socket_without_authentication_is_closed_after_five_seconds(site: Site) -> None:
    async with socket(site) as ws:
        started = time.monotonic()
        assert (await received(ws))["code"] == "unauthenticated"
        await ws.wait_closed()
        assert ws.close_code == 4401
        assert 4.5 <= time.monotonic() - started < 15


async def test_case_14_first_message_other_than_authenticate_is_not_served(
    site: Site, tenant: Tenant
) -> None:
    async with socket(site) as ws:
        await ws.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
        assert (await received(ws))["code"] == "unauthenticated"
        await ws.wait_closed()
        assert ws.close_code == 4401


# Case 37: what the REST door refuses comes by Kafka.


async def test_case_37_forms_that_rest_refuses_are_refused_by_kafka_too(site: Site, tenant: Tenant) -> None:
    execution_id = tenant.execution()
    key = key_of(tenant, execution_id)
    token = tenant.token("bot", "agent", agent="bot")
    lies = [
        *(
            k.ProposeToolCall(call_id="c0", tool=tool, arguments="{}")
            for tool in ("", "send\x00money", "\x1b[2J")
        ),
        k.RequestHumanInput(request_id="q0", kind="clarification", question=""),
    ]
    async with site_log(site) as log:
        ends = await log.ends(log.log.topics.executions)
        for lie in lies:
            draft = Draft(lie, agent_of(tenant), fresh("lie"), key)
            await log.log.send(log.place(key), with_token(draft, token))

        # It is decided after the lies, since it stands after them.
        tenant.propose(execution_id, "read_file", {})
        events = events_of(await log.since(ends), tenant.name)
    refusals = [event.body for event in events if isinstance(event.body, CommandRefused)]
    assert [(one.command, one.code) for one in refusals] == [
        *[("ProposeToolCall", "invalid")] * 3,
        ("RequestHumanInput", "invalid"),
    ]


LOGIN = {
    "name": "send_money",
    "inputSchema": {
        "type": "object",
        "properties": {"token": {"type": "string", "x-placet-sensitive": True}},
    },
    "annotations": {"destructiveHint": True},
}


async def test_sensitive_value_made_up_by_kafka_was_never_sealed_and_is_not_called_erased(
    site: Site,
) -> None:
    with new_tenant(site, POLICY, LOGIN) as tenant:
        execution_id = tenant.execution()
        key = key_of(tenant, execution_id)
        made_up = {"token": {"handle": f"sec_{'0' * 32}", "commitment": "0" * 64}}
        proposal = k.ProposeToolCall(call_id="c1", tool="send_money", arguments=canonical(made_up))
        async with site_log(site) as log:
            draft = Draft(proposal, agent_of(tenant), fresh("lie"), key)
            await log.log.send(log.place(key), with_token(draft, tenant.token("bot", "agent", agent="bot")))
        # It is decided after the proposal, since it stands after it.
        tenant.propose(execution_id, "send_money", {}, "c2")
        call = tenant.call(execution_id)
        assert tenant.decide(call).status_code == 200
        answer = tenant.consume(execution_id, call["digest"])

    assert refused(answer) == (409, "expired")
    assert "no sensitive value was ever sealed" in answer.json()["detail"]
    assert "erased" not in answer.json()["detail"]

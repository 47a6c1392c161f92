"""Sensitive arguments in the client: decided on masked, run with whole, and repeated nowhere."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

import pytest

import placet
from placet import AsyncPlacet
from placet.canonical import canonical, sha256_hex
from placet.exposure import Exposure
from placet.ids import call_id
from placet.secrets import MARK, ForgedSecret, masked, restored
from tests.sdk.desk import Desk, Resource, digest_of, granted, released
from tests.sdk.runs import running
from tests.sdk.scripted import QUICK, Peer, serving

NONCE = b"n" * 32
TOKEN = "hunter2-token"


def sealed(value: Any) -> Resource:
    commitment = hashlib.sha256(NONCE + canonical(value)).hexdigest()
    return {"handle": f"sec_{sha256_hex(canonical(value))[:32]}", "commitment": commitment}


def delivered(path: str, value: Any) -> Resource:
    return {"path": path, "handle": sealed(value)["handle"], "nonce": NONCE.hex(), "value": value}


def sealing(desk: Desk, call: Resource) -> Resource:
    """What a gateway makes of a proposal whose tool marks `token`."""
    public = {**call["arguments"], "token": sealed(call["arguments"]["token"])}
    call = {**call, "arguments": public, "digest": digest_of(call, public)}
    return granted(call, public)


def rejected(desk: Desk, call: Resource) -> Resource:
    return {**sealing(desk, call), "status": "denied", "grant": None}


def client_of(served: Any) -> AsyncPlacet:
    return AsyncPlacet(served.url, token="t", agent="billing-bot", patience=QUICK)


@dataclass
class Delivering(Desk):
    """Hands over values with the answer to a consumption."""

    secrets: tuple[Resource, ...] = ()

    def on_consume(self, message: Resource) -> tuple[int, Resource]:
        status, body = super().on_consume(message)
        return status, {**body, "secrets": list(self.secrets)}


async def test_gated_with_a_sensitive_argument_runs_with_the_value_that_was_handed_over() -> None:
    desk = Delivering(judge=sealing, secrets=(delivered("/token", TOKEN),))
    seen: list[str] = []
    async with running(desk) as run:

        @run.gated(sensitive=["token"])
        async def login(user: str, token: str) -> str:
            seen.append(token)
            return "in"

        assert await login("bob", TOKEN) == "in"
    assert seen == [TOKEN]
    assert list(desk.calls) == [call_id("invoice-march", "login", sha256_hex(b'{"user":"bob"}'), 0)]


@pytest.mark.parametrize(
    "secret",
    [
        delivered("/token", "another-token"),
        {**delivered("/token", TOKEN), "value": "another-token"},
        {**delivered("/token", TOKEN), "nonce": "zz"},
        {**delivered("/token", TOKEN), "handle": "sec_of another call"},
        delivered("/user", TOKEN),
    ],
)
async def test_gated_handed_anything_but_what_was_decided_does_not_run_and_says_so(secret: Resource) -> None:
    desk = Delivering(judge=sealing, secrets=(secret,))
    async with running(desk) as run:

        @run.gated(sensitive=["token"])
        async def login(user: str, token: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.DigestMismatch) as refused:
            await login("bob", TOKEN)
    assert desk.results[0]["outcome"] == "failed"
    assert "token" not in str(refused.value).replace("/token", "")


async def test_gated_handed_nothing_where_something_sensitive_stands_does_not_run() -> None:
    desk = Delivering(judge=sealing)
    async with running(desk) as run:

        @run.gated(sensitive=["token"])
        async def login(user: str, token: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.DigestMismatch):
            await login("bob", TOKEN)


UNTOLD = "(its text is not recorded: it can contain sensitive values)"


@pytest.mark.parametrize("value", [TOKEN, "a/b\n\u00e9", 12345678, {"pin": 9876}])
async def test_gated_failing_with_a_sensitive_argument_reports_the_type_of_its_error_alone(
    value: Any,
) -> None:
    desk = Delivering(judge=sealing, secrets=(delivered("/token", value),))

    async def fail() -> None:
        async with running(desk) as run:

            @run.gated(sensitive=["token"])
            async def login(user: str, token: Any) -> None:
                raise RuntimeError(f"401 for {token!r}")

            await login("bob", value)

    with pytest.raises(RuntimeError, match="401"):
        await fail()
    assert desk.results[0]["error"] == f"RuntimeError {UNTOLD}"
    assert [one["reason"] for one in desk.finished] == [f"RuntimeError {UNTOLD}"]


async def test_run_failing_after_a_sensitive_argument_was_sent_reports_the_type_of_its_error_alone() -> None:
    desk = Desk(judge=rejected)

    async def fail() -> None:
        async with running(desk) as run:

            @run.gated
            async def login(user: str, token: str) -> None:
                raise AssertionError("ran")

            with pytest.raises(placet.Denied):
                await login("bob", TOKEN)
            raise ValueError(TOKEN)

    with pytest.raises(ValueError, match=TOKEN):
        await fail()
    assert [one["reason"] for one in desk.finished] == [f"ValueError {UNTOLD}"]


async def test_client_without_sensitive_arguments_beside_one_with_them_reports_its_errors_whole() -> None:
    desk = Delivering(judge=sealing, secrets=(delivered("/token", TOKEN),))
    async with serving(desk.scripted()) as served:
        async with client_of(served) as client, client.execution(id="with") as run:

            @run.gated(sensitive=["token"])
            async def login(user: str, token: str) -> str:
                return "in"

            await login("bob", TOKEN)
            with pytest.raises(ValueError, match="other"):
                async with client.execution(id="another"):
                    raise ValueError("other")
        desk.judge, desk.secrets = released, ()

        async def fail() -> None:
            async with client_of(served) as client, client.execution(id="without") as run:

                @run.gated
                async def pay(iban: str) -> None:
                    raise RuntimeError(f"no route to {iban}")

                await pay("GB29")

        with pytest.raises(RuntimeError, match="no route"):
            await fail()
    assert [one.get("error") for one in desk.results] == [None, "RuntimeError: no route to GB29"]
    reasons = [one.get("reason") for one in desk.finished]
    assert reasons == [f"ValueError {UNTOLD}", None, "RuntimeError: no route to GB29"]


@dataclass
class Refusing(Desk):
    """Refuses proposals, or answers none."""

    answers: bool = True

    async def frame(self, peer: Peer, message: Resource) -> None:
        if message["type"] != "propose" or self.answers:
            await super().frame(peer, message)

    def on_propose(self, message: Resource) -> tuple[int, Resource]:
        return 422, {"code": "invalid_arguments", "detail": "$.user: not of type string"}


MARKED = {"type": "object", "properties": {"token": {"type": "string", MARK: True}}}
UNMARKED = {"type": "object", "properties": {"token": {"type": "string"}}}


@pytest.mark.parametrize("answers", [True, False], ids=["refused", "cancelled"])
@pytest.mark.parametrize("low_level", [True, False], ids=["propose", "gated"])
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (MARKED, f"ValueError {UNTOLD}"),
        (UNMARKED, f"ValueError: bad {TOKEN}"),
        (None, f"ValueError: bad {TOKEN}"),
    ],
    ids=["marked", "unmarked", "unpublished"],
)
async def test_run_failing_after_a_call_without_an_answer_reports_its_error_as_the_tools_schema_permits(
    answers: bool, low_level: bool, schema: Resource | None, told: str
) -> None:
    tools = {} if schema is None else {"login": {"name": "login", "inputSchema": schema}}
    desk = Refusing(answers=answers, tools=tools)

    async def fail(client: AsyncPlacet) -> None:
        async with client.execution(id="run") as run:

            @run.gated(call_id="c1")
            async def login(user: str, token: str) -> None:
                raise AssertionError("ran")

            made = (
                client.propose("run", "login", {"user": "bob", "token": TOKEN})
                if low_level
                else login("bob", TOKEN)
            )
            with pytest.raises((placet.Refused, TimeoutError)):
                await asyncio.wait_for(made, None if answers else 0.2)
            raise ValueError(f"bad {TOKEN}")

    async with serving(desk.scripted()) as served, client_of(served) as client:
        with pytest.raises(ValueError, match=TOKEN):
            await fail(client)
    assert [one["reason"] for one in desk.finished] == [told]


async def test_exposure_that_cannot_be_found_out_counts_as_exposed_until_it_can() -> None:
    found = Exposure()
    found.doubt("login")

    async def away(tool: str) -> Any:
        raise placet.Unreachable("away")

    async def unmarked(tool: str) -> Any:
        return UNMARKED

    assert await found.is_exposed(away)
    assert not await found.is_exposed(unmarked)
    assert not await found.is_exposed(away)


def test_restored_puts_nested_values_back_and_masked_takes_nothing_else_over() -> None:
    own = {"a/b": [{"pin": 1}, {"pin": 2}], "to": "x"}
    public = {"a/b": [{"pin": sealed(1)}, {"pin": sealed(2)}], "to": "y"}

    assert masked(own, public) == {**public, "to": "x"}
    assert restored(public, [delivered("/a~1b/1/pin", 2), delivered("/a~1b/0/pin", 1)]) == {**own, "to": "y"}
    with pytest.raises(ForgedSecret):
        restored(public, [delivered("/a~1b/0/pin", 2)])

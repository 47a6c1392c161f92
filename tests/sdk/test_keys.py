import asyncio

import pytest
from starlette.responses import JSONResponse, Response

import placet
from gateway.idempotency import KEY_PATTERN
from placet import AsyncPlacet, Placet, keys
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.threaded import serving_thread

RECORDED = {"hold_id": "h1", "decision": "approve", "decision_id": "d1", "status": "recorded"}


def recording() -> Scripted:
    async def on_http(asked: Asked) -> Response:
        return JSONResponse(RECORDED if asked.method == "POST" else {"items": []})

    return Scripted(on_http=on_http)


def keys_of(script: Scripted) -> list[str | None]:
    return [asked.headers.get("idempotency-key") for asked in script.asked]


async def test_chosen_key_is_of_the_one_change_within_its_context() -> None:
    script = recording()
    async with (
        serving(script),
        AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client,
    ):
        with placet.idempotency_key("mine"):
            await client.holds.list()
            await client.holds.decide("h1", "approve", digest="x")
            with pytest.raises(ValueError, match="'mine' is used by another change"):
                await client.holds.decide("h2", "approve", digest="x")
        await client.holds.decide("h3", "approve", digest="x")
    assert keys_of(script)[:2] == [None, "mine"]
    assert len(script.asked) == 3
    assert keys_of(script)[2] not in (None, "mine")


def test_chosen_key_reaches_the_synchronous_clients_thread() -> None:
    with serving_thread(recording()) as script, Placet(script.url, token="t", transport="rest") as client:
        for _ in range(2):
            with placet.idempotency_key("mine"):
                client.holds.decide("h1", "approve", digest="x")
    assert keys_of(script) == ["mine", "mine"]


async def test_chosen_keys_of_concurrent_tasks_do_not_mix() -> None:
    script = recording()
    async with (
        serving(script),
        AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client,
    ):

        async def decide(hold_id: str) -> None:
            with placet.idempotency_key(f"key-{hold_id}"):
                await client.holds.decide(hold_id, "approve", digest="x")

        await asyncio.gather(*(decide(f"h{number}") for number in range(10)))
    assert {asked.path.split("/")[-2]: asked.headers["idempotency-key"] for asked in script.asked} == {
        f"h{number}": f"key-h{number}" for number in range(10)
    }


@pytest.mark.parametrize("is_change", [True, False])
async def test_unavailable_names_the_path_of_a_change_that_may_have_been_made(is_change: bool) -> None:
    async def busy(asked: Asked) -> Response:
        return JSONResponse({"code": "unavailable", "detail": "later"}, 503)

    script = Scripted(on_http=busy)
    async with (
        serving(script),
        AsyncPlacet(script.url, token="t", transport="rest", patience=QUICK) as client,
    ):
        with pytest.raises(placet.Unavailable) as caught:
            await (client.holds.decide("h1", "approve", digest="x") if is_change else client.holds.get("h1"))
    assert caught.value.path == ("/holds/h1/decision" if is_change else None)


@pytest.mark.parametrize("key", ["", " a", "a ", "Freigabe-März", "a\n", "a" * 257])
def test_key_that_no_gateway_would_take_is_refused_before_anything_is_sent(key: str) -> None:
    with pytest.raises(ValueError, match="1 to 256 printable ASCII characters"), placet.idempotency_key(key):
        pytest.fail("the block began")


def test_form_of_a_key_is_the_gateways() -> None:
    assert f"^{keys._KEY.pattern}$" == KEY_PATTERN

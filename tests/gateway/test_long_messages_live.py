"""The client's long messages at a gateway: near its bounds they pass, and over them they cost nobody a connection."""

from __future__ import annotations

import threading
from typing import Any, Literal

import pytest

from placet import Placet, Refused
from placet.canonical import MAX_DEPTH
from placet.recording import UNRECORDED
from tests.gateway.conftest import Caller

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def test_first_message_that_no_stranger_may_send_is_taken_once_the_token_is_believed(bot: Caller) -> None:
    execution_id = bot.execution()
    with Placet(bot.url, token=bot.token, agent="billing", transport="ws") as client:
        call = client.propose(execution_id, "read_file", {"path": "x" * 200_000}, call_id="c1")
    assert call.status == "released"


def test_output_over_the_bound_is_recorded_without_it_while_others_go_on(bot: Caller) -> None:
    done: list[str] = []
    with Placet(bot.url, token=bot.token, agent="billing") as client, client.execution() as run:
        read: Any = run.gated(tool="read_file")(lambda path, chars: "x" * chars)

        def others() -> None:
            done.extend(read(f"small {number}", 1) for number in range(20))

        beside = threading.Thread(target=others)
        beside.start()
        for chars in (1_048_000, 1_100_000, 5_000_000):
            assert len(read("large", chars)) == chars
        beside.join()
        with pytest.raises(Refused, match="too_large"):
            read("x" * 1_500_000, 1)
        calls = list(client.executions.calls(run.id))
    assert done == ["x"] * 20
    large = [call for call in calls if call.arguments["path"] == "large"]
    assert [call.status for call in large] == ["succeeded"] * 3
    assert all(UNRECORDED in call.output for call in large)


@pytest.mark.parametrize("transport", ["ws", "rest"])
def test_value_that_is_too_deep_for_a_message_is_told_at_once(
    bot: Caller, transport: Literal["ws", "rest"]
) -> None:
    """The message around it counts too: the client looks at the value alone."""
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = {"k": deep}
    with (
        Placet(bot.url, token=bot.token, agent="billing", transport=transport) as client,
        client.execution() as run,
    ):
        read: Any = run.gated(tool="read_file")(lambda path: {"k": deep})
        assert read("f") == {"k": deep}
        with pytest.raises(Refused, match="too_large"):
            read(deep)
        (call,) = client.executions.calls(run.id)
    assert call.status == "succeeded"
    assert UNRECORDED in call.output

"""A cursor continues the list that gave it, and no other."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Caller

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def test_cursor_of_another_list_is_refused(bot: Caller) -> None:
    mine, others = bot.execution(), bot.execution()
    for execution_id in (mine, others):
        bot.propose(execution_id, "read_file")
    first = bot.get(f"/v1/executions/{mine}/events?limit=1").json()
    for path in (f"/v1/executions/{others}/events", "/v1/executions", "/v1/holds"):
        refused = bot.get(f"{path}?cursor={first['next_cursor']}")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), path
        assert refused.json()["detail"] == "the cursor is not one of this list: leave it out to begin again"


def test_cursor_of_an_earlier_version_continues_its_list(bot: Caller) -> None:
    execution_id = bot.execution()
    bot.propose(execution_id, "read_file")
    path = f"/v1/executions/{execution_id}/events?limit=1"
    named = bot.get(path).json()["next_cursor"]
    _, _, unnamed = named.partition(".")
    assert (
        bot.get(f"{path}&cursor={unnamed}").json()["items"]
        == bot.get(f"{path}&cursor={named}").json()["items"]
    )

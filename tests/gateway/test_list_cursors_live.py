"""A cursor continues the list that gave it, and no other."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Caller, Doors

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


def test_cursor_that_no_list_made_is_refused_also_where_a_list_is_empty(doors: Doors) -> None:
    lists = ("/v1/rules", "/v1/policies", "/v1/tools", "/v1/standing-rules", "/v1/executions", "/v1/holds")
    for caller in (doors.caller("anna", "reviewer"), doors.caller("nora", "reviewer", tenant="empty")):
        for path in lists:
            assert caller.get(path).status_code == 200
            refused = caller.get(f"{path}?cursor=0")
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), path
            assert (
                refused.json()["detail"] == "the cursor is not one of this list: leave it out to begin again"
            )


def test_after_the_begin_of_the_log_is_as_if_it_were_left_out(bot: Caller) -> None:
    execution_id = bot.execution()
    path = f"/v1/executions/{execution_id}"
    assert bot.get(f"{path}?after=earliest").json()["execution_id"] == execution_id
    assert bot.get("/v1/executions?after=earliest&limit=1").status_code == 200
    assert bot.get(f"{path}?after=latest").status_code == 422

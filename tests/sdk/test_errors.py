from typing import Any

import pytest

import placet
from placet import errors
from placet.errors import refusal
from schemas.refusals import HTTP_STATUS


def test_refusal_of_a_problem_is_typed_and_carries_its_fields() -> None:
    error = refusal(
        409, {"code": "already_decided", "detail": "too late", "winning_decision_id": "d7", "type": "x"}
    )
    assert isinstance(error, placet.AlreadyDecided)
    assert (error.code, error.status, error.detail) == ("already_decided", 409, "too late")
    assert error.fields == {"winning_decision_id": "d7"}
    assert str(error) == "already_decided: too late"


@pytest.mark.parametrize("code", sorted(HTTP_STATUS))
def test_refusal_of_every_known_code_keeps_code_and_status(code: str) -> None:
    status = HTTP_STATUS[code]  # type: ignore[index]
    error = refusal(status, {"code": code, "detail": "x"})
    assert (error.code, error.status) == (code, status)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, placet.Unauthenticated),
        (404, placet.NotFound),
        (429, placet.QuotaExceeded),
        (503, placet.Unavailable),
    ],
)
def test_refusal_of_a_proxys_page_is_typed_by_status(status: int, kind: type[placet.Refused]) -> None:
    assert type(refusal(status, "<html>no</html>")) is kind


@pytest.mark.parametrize("body", ["<html>\n" + "no " * 500, None, {"detail": "Not Found"}])
def test_refusal_by_something_that_is_no_gateway_says_so_and_shows_little_of_it(body: object) -> None:
    said = str(refusal(404, body))
    assert said.startswith(
        "not_found: status 404 from a proxy or another server, not a gateway: check the address"
    )
    assert len(said) < 260


def test_every_error_says_who_acts() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, placet.PlacetError)
    ]
    assert len(kinds) > 15
    assert {kind.acts for kind in kinds} == {"retry", "stop", "operator"}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (None, "pay was denied: too much"),
        ([], "pay was denied: too much"),
        (["c2", "c1"], "pay was denied: too much; to undo, newest first (rollback): c2, c1"),
        (
            [f"c{number}" for number in range(1000)],
            "pay was denied: too much; to undo, newest first (rollback): c0, c1, c2, c3, c4 and 995 more",
        ),
    ],
)
def test_denied_names_the_calls_to_undo(named: list[str] | None, said: str) -> None:
    raw = {"feedback": "too much", "rollback": named}
    denied = placet.Denied(placet.ToolCall("e1", "c3", "denied", tool="pay", raw=raw))
    assert (str(denied), denied.rollback) == (said, tuple(named or ()))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"hold_id": "h1"}, "pay expired without a decision"),
        (
            {"hold_id": "h1", "raw": {"feedback": "nobody decided in time"}},
            "pay expired: nobody decided in time",
        ),
        ({}, "pay expired: its release was not used in time"),
    ],
)
def test_denied_says_why_a_call_expired(fields: dict[str, Any], said: str) -> None:
    assert str(placet.Denied(placet.ToolCall("e1", "c3", "expired", tool="pay", **fields))) == said

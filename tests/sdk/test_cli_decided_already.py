"""`placet approve` and others on a hold that was decided before: whose decision stands, and since when."""

from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli.session import local_time
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import HOLD, VIEW, Terminal, gateway
from tests.sdk.threaded import serving_thread

DECIDED = {"decision": "approve", "by": "rita", "at": "2026-11-20T10:00:00Z", "feedback": ""}
REFUSED = {"code": "already_decided", "detail": "rita decided it first", "winning_decision_id": "d1"}
AT = local_time(DECIDED["at"])
EDIT = ("edit", "c0ffee", "--yes", "--arguments", '{"recipient": "GB30", "amount": 98.7}')
OTHERS = [("approve", "c0ffee", "--yes"), ("reject", "c0ffee", "--feedback", "no"), EDIT]


def _resolved(**fields: Any) -> dict[str, Any]:
    return {**HOLD, "status": "resolved", "decision": DECIDED, "must_read": False, **fields}


def _at(hold: dict[str, Any], answer: dict[str, Any], status: int) -> Scripted:
    """A gateway that has this hold, and answers each decision on it so."""

    async def answers(asked: Asked) -> Response:
        if asked.path == f"/v1/holds/{HOLD['hold_id']}":
            return JSONResponse(hold)
        if asked.path.endswith("/decision"):
            return JSONResponse(answer, status)
        return await gateway(asked)

    return Scripted(on_http=answers)


def test_approval_again_says_who_approved_and_when_and_shows_nothing_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving_thread(_at(_resolved(), {"status": "resolved", "decision_id": "d1"}, 200)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("approve", "c0ffee", "--yes") == 0
    assert terminal.out.splitlines()[0] == (
        f"already approved by rita at {AT}: {HOLD['tool']} {HOLD['hold_id']}"
    )
    assert "arguments:" not in terminal.out
    assert "view_digest" not in terminal.sent()[0].json(), "nothing was shown"


def test_approval_again_of_what_must_be_read_shows_it_since_no_approval_is_read_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = {"status": "resolved", "decision_id": "d1"}
    with serving_thread(_at(_resolved(must_read=True), answer, 200)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("approve", "c0ffee", "--yes") == 0
    assert terminal.sent()[0].json()["view_digest"] == VIEW["view_digest"]
    assert f"already approved by rita at {AT}" in terminal.out


@pytest.mark.parametrize("typed", OTHERS, ids=lambda typed: typed[0])
def test_other_decision_is_refused_by_the_one_that_stands(
    capsys: pytest.CaptureFixture[str], typed: tuple[str, ...]
) -> None:
    with serving_thread(_at(_resolved(), REFUSED, 409)) as script:
        terminal = Terminal(script, capsys)
        assert terminal(*typed) == 1
    assert terminal.err.strip() == f"already_decided: rita decided it first: approved at {AT}"
    assert terminal.out == ""


def test_decision_that_came_while_the_hold_was_looked_at_is_told_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hold: dict[str, Any] = {**HOLD, "must_read": False}
    script = _at(hold, REFUSED, 409)
    answered = script.on_http

    async def overtaken(asked: Asked) -> Response:
        if asked.path.endswith("/decision"):
            hold.update(_resolved())
        return await answered(asked)

    script.on_http = overtaken
    with serving_thread(script) as serving:
        terminal = Terminal(serving, capsys)
        assert terminal("reject", "c0ffee", "--feedback", "no") == 1
    assert terminal.err.strip() == f"already_decided: rita decided it first: approved at {AT}"


def test_permission_that_was_answered_is_not_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    hold = _resolved(call_id=None, request_id="r", decision={**DECIDED, "decision": "respond"})
    with serving_thread(_at(hold, REFUSED, 409)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("answer", str(HOLD["hold_id"]), "yes", "--yes") == 1
        assert terminal.sent() == []
    assert terminal.err.strip() == f"already_decided: already answered by rita at {AT}"

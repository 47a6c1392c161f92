from typing import Any

import pytest

import placet
from placet import gate, pausing
from placet.canonical import sha256_hex
from placet.ids import call_id
from tests.sdk.desk import Desk, Resource, digest_of, ended, granted
from tests.sdk.runs import never, pay_in, running
from tests.sdk.scripted import Peer


async def test_gated_released_runs_between_consumption_and_result() -> None:
    desk = Desk()
    seen: list[str] = []
    async with running(desk) as run:

        @run.gated(annotations={"destructiveHint": True}, reason="the March invoice")
        async def send_money(recipient: str, amount: float) -> str:
            seen.append(f"{len(desk.consumed)} consumed, {len(desk.results)} reported")
            return f"sent {amount} to {recipient}"

        assert await send_money("GB29", 98.70) == "sent 98.7 to GB29"
    proposed = next(iter(desk.calls.values()))
    assert proposed["arguments"] == {"recipient": "GB29", "amount": 98.7}
    assert proposed["annotations"] == {"destructiveHint": True}
    assert proposed["reason"] == "the March invoice"
    assert seen == ["1 consumed, 0 reported"]
    assert desk.consumed[0]["digest"] == proposed["digest"]
    assert desk.results[0]["outcome"] == "succeeded"
    assert desk.results[0]["output"] == "sent 98.7 to GB29"
    assert desk.results[0]["attempt_id"] == desk.consumed[0]["attempt_id"]
    assert desk.finished == [{"outcome": "completed"}]


async def test_gated_calls_have_ids_that_a_restarted_process_makes_again() -> None:
    made: list[list[str]] = []
    for _ in range(2):
        desk = Desk()
        async with running(desk) as run:

            @run.gated
            async def note(text: str) -> None: ...

            for text in ("a", "a", "b"):
                await note(text)
        made.append(list(desk.calls))
    assert made[0] == made[1]
    digests = [sha256_hex(text) for text in (b'{"text":"a"}', b'{"text":"b"}')]
    assert made[0] == [
        call_id("invoice-march", "note", digests[0], 0),
        call_id("invoice-march", "note", digests[0], 1),
        call_id("invoice-march", "note", digests[1], 0),
    ]


async def test_gated_edited_runs_with_the_approved_arguments() -> None:
    def edit(desk: Desk, call: Resource) -> Resource:
        edited = {**call["arguments"], "amount": 10}
        return granted({**call, "revision": 2, "arguments": edited}, edited)

    desk = Desk(judge=edit)
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str, amount: float) -> float:
            return amount

        assert await send_money("GB29", 98.70) == 10


@pytest.mark.parametrize(
    "forge",
    [
        lambda desk, call: {**granted(call, call["arguments"]), "grant": {"digest": "0" * 64}},
        lambda desk, call: granted(call, {"recipient": "EVIL"}),
        lambda desk, call: {**granted(call, call["arguments"]), "tool_version": "v2"},
        lambda desk, call: {**granted(call, call["arguments"]), "tenant": "other"},
        lambda desk, call: granted({**call, "agent": "other-bot"}, call["arguments"]),
        lambda desk, call: granted({**call, "tool": "other_tool"}, call["arguments"]),
        lambda desk, call: {
            **granted(call, {"recipient": "EVIL"}, revision=2),
            "approved_arguments": {"x": 1},
        },
    ],
)
async def test_gated_released_for_anything_else_does_not_run(forge: Any) -> None:
    desk = Desk(judge=forge)
    with pytest.raises(placet.DigestMismatch):
        await pay_in(desk, never)
    assert desk.consumed == []


@pytest.mark.parametrize("status", ["denied", "expired", "cancelled", "revoked"])
async def test_gated_stopped_raises_denied_with_decision_and_feedback(status: str) -> None:
    decision = {"decision": "reject", "decision_id": "d9", "by": "ada", "feedback": "use the other account"}
    desk = Desk(judge=ended(status=status, decision=decision))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.Denied, match="other account") as caught:
            await send_money("GB29")
    assert caught.value.call.status == status
    assert caught.value.decision is not None
    assert caught.value.decision.by == "ada"
    assert caught.value.feedback == "use the other account"
    assert desk.consumed == []


async def test_gated_rejected_without_a_word_says_that_a_person_did_and_no_word_of_the_policy() -> None:
    decision = {"decision": "reject", "decision_id": "d9", "by": "ada", "feedback": ""}
    verdict = {"effect": "hold", "rules": [], "reason": "no_match"}
    desk = Desk(judge=ended(status="denied", decision=decision, feedback="", verdict=verdict))
    async with running(desk) as run:

        @run.gated(on_denied="return")
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        said = await send_money("GB29")
    assert said.endswith("was denied: a person rejected it and gave no reason")


async def test_gated_stopped_can_return_the_feedback_to_the_model() -> None:
    desk = Desk(judge=ended(status="denied", feedback="not on Fridays"))
    async with running(desk) as run:

        @run.gated(on_denied="return")
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        assert await send_money("GB29") == "not on Fridays"


async def test_gated_stopped_returns_the_calls_to_undo_to_the_model() -> None:
    desk = Desk(judge=ended(status="denied", feedback="not on Fridays", rollback=["c2", "c1"]))
    async with running(desk) as run:

        @run.gated(on_denied="return")
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        said = await send_money("GB29")
    assert said == "send_money was denied: not on Fridays; to undo, newest first (rollback): c2, c1"


async def test_gated_held_waits_for_the_pushed_decision() -> None:
    desk = Desk(judge=ended(status="held", hold_id="h1"))
    script = desk.scripted()

    async def hold_then_push(peer: Peer, message: Resource) -> None:
        await desk.frame(peer, message)
        if message["type"] == "propose":
            call = desk.calls[message["body"]["call_id"]]
            decided = granted(call, call["arguments"])
            call.update(decided)
            await peer.say(type="tool_call_decided", cursor="k1", **decided)

    script.on_frame = hold_then_push
    async with running(desk, script) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            return "sent"

        assert await send_money("GB29") == "sent"
    assert script.asked == []


async def test_gated_held_longer_than_the_timeout_is_still_held_and_then_the_same_call() -> None:
    desk = Desk(judge=ended(status="held"))
    async with running(desk) as run:

        @run.gated(timeout_s=0.1)
        async def send_money(recipient: str) -> str:
            return "sent"

        with pytest.raises(placet.StillHeld):
            await send_money("GB29")
        desk.judge = Desk().judge
        assert await send_money("GB29") == "sent"
    assert len(desk.calls) == 1


async def test_gated_taken_back_before_consumption_waits_for_the_new_decision() -> None:
    desk = Desk(refuse_consumption=[{"code": "not_released", "then": {"status": "held"}}])
    script = desk.scripted()

    async def push_after_the_refusal(peer: Peer, message: Resource) -> None:
        await desk.frame(peer, message)
        if message["type"] == "consume" and not desk.consumed:
            call = desk.calls[message["call_id"]]
            newer = {**call, "revision": 2, "tool_version": "v2"}
            newer["digest"] = digest_of(newer, call["arguments"])
            call.update(granted(newer, call["arguments"]))
            await peer.say(type="tool_call_decided", cursor="k2", **call)

    script.on_frame = push_after_the_refusal
    async with running(desk, script) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            return "sent"

        assert await send_money("GB29") == "sent"
    assert desk.consumed[0]["digest"] == next(iter(desk.calls.values()))["grant"]["digest"]


@pytest.mark.parametrize("status", ["consumed", "outcome_unknown"])
async def test_gated_taken_by_another_attempt_is_for_a_person(status: str) -> None:
    desk = Desk(judge=ended(status=status))
    with pytest.raises(placet.OutcomeUnknown, match="placet show invoice-march/"):
        await pay_in(desk, never)
    assert desk.finished == [], "the execution stays open for whoever settles it"


@pytest.mark.parametrize(
    ("status", "outcome"), [("consumed", placet.OutcomeUnknown), ("succeeded", "recorded")]
)
async def test_gated_losing_the_race_for_the_grant_never_runs(status: str, outcome: Any) -> None:
    lost = {"code": "already_consumed", "then": {"status": status, "output": "recorded"}}
    desk = Desk(refuse_consumption=[lost])
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> str:
            raise AssertionError("ran")

        if isinstance(outcome, str):
            assert await send_money("GB29") == outcome
        else:
            with pytest.raises(outcome):
                await send_money("GB29")


IDEMPOTENT: dict[str, Resource] = {name: {"name": name, "idempotent": True} for name in ("send", "never")}


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(pausing, "LOOK_AGAIN_S", 0.01)


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_that_another_attempt_left_runs_once_its_lease_has_ended() -> None:
    desk = Desk(judge=ended(status="consumed"), tools=IDEMPOTENT)
    desk.then = [{"status": "consumed"}, {"status": "outcome_unknown"}]
    seen = []

    async def send(recipient: str) -> str:
        seen.append(f"{len(desk.then)} to come, {len(desk.consumed)} consumed")
        return "sent"

    assert await pay_in(desk, send) == "sent"
    assert seen == ["0 to come, 1 consumed"]
    assert [result["outcome"] for result in desk.results] == ["succeeded"]


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_whose_attempt_reports_after_all_does_not_run() -> None:
    desk = Desk(judge=ended(status="consumed"), tools=IDEMPOTENT)
    desk.then = [{"status": "consumed"}, {"status": "succeeded", "output": "recorded"}]
    assert await pay_in(desk, never) == "recorded"
    assert desk.consumed == []


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_that_may_not_be_taken_over_is_for_a_person() -> None:
    lost = {"code": "already_consumed", "then": {"status": "outcome_unknown"}}
    desk = Desk(judge=ended(status="outcome_unknown"), tools=IDEMPOTENT, refuse_consumption=[lost])
    with pytest.raises(placet.OutcomeUnknown):
        await pay_in(desk, never)


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_that_is_judged_anew_is_for_a_person() -> None:
    anew = {"code": "not_released", "then": {"status": "outcome_unknown"}}
    desk = Desk(judge=ended(status="outcome_unknown"), tools=IDEMPOTENT, refuse_consumption=[anew])
    with pytest.raises(placet.OutcomeUnknown):
        await pay_in(desk, never)


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_that_another_process_took_over_first_is_waited_for() -> None:
    lost = {"code": "already_consumed", "then": {"status": "consumed"}}
    desk = Desk(judge=ended(status="outcome_unknown"), tools=IDEMPOTENT, refuse_consumption=[lost])
    desk.then = [{}, {"status": "succeeded", "output": "recorded"}]
    assert await pay_in(desk, never) == "recorded"


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_whose_own_left_attempt_lost_its_lease_runs_under_another() -> None:
    desk = Desk(tools=IDEMPOTENT)
    ran = []

    async def send(recipient: str) -> str:
        ran.append(recipient)
        return "sent"

    async with running(desk) as run:
        # Its answer comes too late, and nothing has run under it.
        desk.refuse_consumption = [{"code": "unavailable"}]
        with pytest.raises(placet.Refused):
            await run.gated(send)("GB29")
        first = dict(run._tries._unused)
        assert first
        ended = {"status": "outcome_unknown", "attempt_id": next(iter(first.values())).id}
        desk.judge = lambda desk, call: {**call, **ended}
        desk.refuse_consumption = [{"code": "not_released", "then": ended}]
        assert await run.gated(send)("GB29") == "sent"
    assert ran == ["GB29"]
    assert desk.consumed[-1]["attempt_id"] != ended["attempt_id"]


@pytest.mark.usefixtures("quick_looks")
async def test_gated_idempotent_call_that_another_attempt_keeps_is_waited_for_so_long_and_no_longer() -> None:
    desk = Desk(judge=ended(status="consumed"), tools=IDEMPOTENT)
    async with running(desk) as run:
        with pytest.raises(placet.StillHeld):
            await run.gated(timeout_s=0.2)(never)("GB29")


async def test_gated_done_by_an_earlier_attempt_returns_the_recorded_output() -> None:
    desk = Desk(judge=ended(status="succeeded", output={"id": 7}))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> dict[str, int]:
            raise AssertionError("ran")

        assert await send_money("GB29") == {"id": 7}


async def test_gated_failed_in_an_earlier_attempt_says_how() -> None:
    desk = Desk(judge=ended(status="failed", error="no funds"))
    async with running(desk) as run:

        @run.gated
        async def send_money(recipient: str) -> None:
            raise AssertionError("ran")

        with pytest.raises(placet.ToolFailed, match="no funds"):
            await send_money("GB29")

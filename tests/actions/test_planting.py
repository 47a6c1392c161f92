"""PlantProbe and ProbeEnded: asked about like any other call, never run, told to people when they have answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from projections.folds.agents import counted
from projections.folds.calls import call_json, planted_json
from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.fold import fold_event
from projections.folds.holds import told_fields
from projections.queries.history import _Rows, fold_all
from projections.tables.analytics import EVIDENCE, TRUST_VERDICTS
from projections.tables.probes import PROBE_ANSWERS
from schemas import commands as k
from schemas.actor import Actor
from schemas.authority import OWN_REQUEST
from schemas.events.calls import ToolCallReleased
from schemas.message import Message
from schemas.probe import Probe, is_caught
from services.domain.execution.probes import with_probes
from services.domain.execution.verdicts import release
from services.runtime.contrary_facts import ContraryFacts
from tests.actions.planting import ARGUMENTS, NOTE, plant, planted
from tests.domain.steps import TESSA, ask_two, code, consumed, decided, refusal, started
from tests.domain.trusting import ALWAYS, Known, facts, world_of
from tests.domain.world import ANNA, BOT, OLGA, RITA, World, names, published, the, with_people


def ended(bodies: list[Message]) -> tuple[str, list[Any]]:
    """The result of a planted call, and what each person answered: (account, decision, caught)."""
    end = the(bodies, "ProbeEnded")
    answers = [(one["by"], one["decision"], one["caught"]) for one in json.loads(end.answers)]
    return end.result, answers


def test_planted_call_is_judged_and_held_in_a_run_of_its_own() -> None:
    world = World()

    bodies = world.ask(plant(user="ada", request="pay the rent", reason="due"), OLGA)

    assert names(bodies) == ["ExecutionStarted", "ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]
    start, call, _, hold = bodies
    assert (start.agent, start.by, start.user, start.request) == ("bot", "bot", "ada", "pay the rent")  # type: ignore[attr-defined]
    # The people who are asked see nothing that differs from a call of the agent's own.
    assert (call.by, hold.requester, hold.view_digest != "") == ("bot", "bot", True)  # type: ignore[attr-defined]
    assert json.loads(call.probe) == {"by": "olga", "note": NOTE, "wrong": []}  # type: ignore[attr-defined]
    own = started()
    real = own.ask(k.ProposeToolCall(call_id="c", tool="pay", arguments=ARGUMENTS))
    # All but the proposal, whose mark no API shows (below), and the view, which shows the request.
    assert the(bodies, "PolicyVerdictIssued") == the(real, "PolicyVerdictIssued")
    hidden = {"view_digest": "", "deadline_at_ms": 0}
    assert hold.model_copy(update=hidden) == the(real, "HoldOpened").model_copy(update=hidden)


@pytest.mark.parametrize(
    ("decision", "content", "result"),
    [
        ("approve", {}, "missed"),
        ("reject", {"feedback": "who is that?"}, "caught"),
        ("respond", {"value": '"no"'}, "caught"),
        ("edit", {"edited_arguments": '{"amount":5,"to":"ada"}'}, "caught"),
        ("edit", {"edited_arguments": '{"amount":4,"to":"mallory"}'}, "missed"),
    ],
)
def test_answer_ends_the_call_and_its_run_and_nothing_else_follows(
    decision: str, content: dict[str, Any], result: str
) -> None:
    world, hold = planted(wrong='["/to"]')

    bodies = decided(world, hold, decision, **content)

    assert names(bodies) == ["DecisionRecorded", "ProbeEnded", "ToolCallDenied", "ExecutionCompleted"]
    assert ended(bodies) == (result, [("rita", decision, result == "caught")])
    assert (the(bodies, "ProbeEnded").planted_by, the(bodies, "ProbeEnded").note) == ("olga", NOTE)
    assert the(bodies, "ToolCallDenied").cause == "probe"
    assert world.state().calls["c"].status == "denied"
    assert world.state().memory == ()
    assert code(consumed(world, hold.digest)) in ("not_released", "execution_closed")


def test_call_without_a_right_place_is_caught_by_no_edit() -> None:
    world, hold = planted()
    bodies = decided(world, hold, "edit", edited_arguments='{"amount":1,"to":"ada"}')
    assert ended(bodies)[0] == "missed"


def test_each_of_several_wrong_places_must_be_changed() -> None:
    probe = Probe("olga", wrong=("/to", "/items/0"))
    before = {"to": "m", "items": [1, 2]}
    assert not is_caught(probe, "edit", before, {"to": "a", "items": [1]})
    assert is_caught(probe, "edit", before, {"to": "a", "items": []})
    assert is_caught(probe, "edit", before, {"items": [2]})


def test_where_two_are_asked_each_answer_is_told() -> None:
    world = World()
    ask_two(world)
    world, hold = planted(world)

    assert names(decided(world, hold, "approve")) == ["DecisionRecorded"]
    bodies = decided(world, hold, "reject", TESSA)

    assert ended(bodies) == ("caught", [("rita", "approve", False), ("tessa", "reject", True)])


def test_nobody_answers_to_what_they_planted() -> None:
    world = World()
    world.definitions = with_people(
        world.definitions, {"principal": "o", "subjects": ["olga", "olga-phone"], "roles": ["operator"]}
    )
    world, hold = planted(world)
    phone = OLGA.model_copy(update={"subject": "olga-phone"})

    for account in (OLGA, phone):
        refused = decided(world, hold, "reject", account)
        assert (code(refused), refusal(refused).detail) == (
            "own_request",
            OWN_REQUEST,
        )
    assert code(world.ask(k.ClaimHold(hold_id=hold.hold_id, seconds=60), OLGA)) == "own_request"


def test_deadline_ends_a_planted_call_as_expired() -> None:
    world, hold = planted()
    world.later(700)

    bodies = world.ask(k.ExpireDue(subject_id=hold.hold_id, deadline_at_ms=hold.deadline_at_ms, attempt=1))

    assert names(bodies) == ["HoldExpired", "ProbeEnded", "ToolCallDenied", "ExecutionCompleted"]
    assert ended(bodies) == ("expired", [])


@pytest.mark.parametrize("command", [k.CancelExecution(), k.CompleteExecution()])
def test_end_of_the_run_cancels_a_planted_call(command: Message) -> None:
    world, _ = planted()
    bodies = world.ask(command, BOT)
    assert names(bodies)[:3] == ["HoldCancelled", "ProbeEnded", "ToolCallCancelled"]
    assert ended(bodies) == ("cancelled", [])
    assert names(bodies).count("ExecutionCompleted") + names(bodies).count("ExecutionCancelled") == 1


def test_what_the_agent_opened_in_the_run_ends_with_it() -> None:
    world, hold = planted()
    other = world.ask(k.ProposeToolCall(call_id="d", tool="pay", arguments='{"amount":1}'))
    assert names(other)[-1] == "HoldOpened"

    bodies = decided(world, hold, "reject")

    assert names(bodies)[3:] == ["HoldCancelled", "ToolCallCancelled", "ExecutionCompleted"]
    assert world.state().open_count == 0


@pytest.mark.parametrize(
    ("by", "changes", "refused"),
    [
        (RITA, {}, ("not_authorised", "only an operator plants a call")),
        (ANNA, {}, ("not_authorised", "only an operator plants a call")),
        (BOT, {}, ("not_authorised", "only an operator plants a call")),
        (
            OLGA,
            {"tool": "read"},
            ("invalid", "nobody would be asked about this call: the policy would allow it"),
        ),
        (
            OLGA,
            {"tool": "drop"},
            ("invalid", "nobody would be asked about this call: the policy would deny it"),
        ),
        (OLGA, {"arguments": "[]"}, ("malformed", "arguments: must be a JSON object")),
        (OLGA, {"arguments": '{"to":"x"}'}, ("invalid_arguments", "")),
        (OLGA, {"wrong": '["to"]'}, ("invalid", "wrong[0] is no JSON Pointer (RFC 6901), such as /to")),
        (OLGA, {"wrong": '["/~2"]'}, ("invalid", "wrong[0] is no JSON Pointer (RFC 6901), such as /to")),
        (OLGA, {"wrong": '["/to","/iban"]'}, ("invalid", "wrong[1] names nothing in the arguments")),
        (OLGA, {"wrong": '"/to"'}, ("invalid", "wrong must be a list of at most 20 JSON Pointers")),
        (OLGA, {"wrong": '["/to'}, ("malformed", "wrong: ")),
        (OLGA, {"wrong": json.dumps(["/to"] * 21)}, ("invalid", "wrong must be a list")),
        (OLGA, {"note": " "}, ("invalid", "note must not be blank")),
    ],
)
def test_refused_is_what_cannot_be_planted(by: Actor, changes: Any, refused: tuple[str, str]) -> None:
    world = World()
    bodies = world.ask(plant(**changes), by)
    assert code(bodies) == refused[0]
    assert refusal(bodies).detail.startswith(refused[1])
    assert names(world.ask(k.StartExecution(agent="bot"), BOT)) == ["ExecutionStarted"]


def test_nobody_proposes_in_a_persons_name() -> None:
    world = World()
    world.definitions = with_people(
        world.definitions, {"principal": "ada", "subjects": ["ada@x"], "roles": ["reviewer"]}
    )
    assert code(world.ask(plant(requester="ada@x"), OLGA)) == "invalid"
    assert the(world.ask(plant(requester="bot-7"), OLGA), "HoldOpened").requester == "bot-7"


def test_account_of_a_service_can_seem_to_propose() -> None:
    world = World()
    world.definitions = with_people(
        world.definitions, {"principal": "bots", "subjects": ["bot-7"], "roles": []}
    )
    assert the(world.ask(plant(requester="bot-7"), OLGA), "HoldOpened").requester == "bot-7"


def test_edit_that_a_real_call_would_not_take_is_refused_here_too() -> None:
    world, hold = planted(wrong='["/to"]')
    refused = decided(world, hold, "edit", edited_arguments='{"amount":5000.5,"to":"ada"}')
    assert code(refused) == "edit_denied"
    assert world.state().calls["c"].status == "held"


def test_call_is_planted_in_no_run_that_exists() -> None:
    world = started()
    assert code(world.ask(plant(), OLGA)) == "id_reused"
    assert code(world.ask(plant(), BOT)) == "not_found"


def test_what_trust_would_release_is_not_planted() -> None:
    world = world_of(Known(facts()), ALWAYS)
    refused = world.ask(plant(), OLGA, execution_id="own")
    assert refusal(refused).detail == "nobody would be asked about this call: trust would release it"


def test_no_release_of_a_planted_call_is_recorded_whatever_path_makes_one() -> None:
    world, _ = planted()
    call = world.state().calls["c"]
    granted = release(call, "d", "decision", _context())

    (event,) = with_probes(world.state(), [granted], 0)

    assert isinstance(granted, ToolCallReleased)
    assert (type(event).__name__, event.cause) == ("ToolCallDenied", "probe")  # type: ignore[attr-defined]


def _context() -> Any:
    class Ids:
        now_ms = 0

        def new_id(self, *parts: object) -> str:
            return "id"

    return Ids()


@pytest.mark.parametrize("has_mark", [True, False])
def test_answers_say_nothing_about_the_agent(has_mark: bool) -> None:
    """Also where the start of the run has no mark, as in the logs of versions that opened it by the same command."""
    world = world_of(Known(facts()), {**ALWAYS, "sample_rate": 1})
    hold = the(world.ask(plant(), OLGA, execution_id="own"), "HoldOpened")
    contrary = ContraryFacts()
    reject = k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest)
    consume = k.ConsumeGrant(call_id="c", digest=hold.digest, attempt_id="a")
    assert code(world.ask(reject, OLGA, execution_id="own")) == "own_request"
    assert code(world.ask(consume, BOT, execution_id="own")) == "not_released"
    assert ended(world.ask(reject, RITA, execution_id="own"))[0] == "caught"
    assert code(world.ask(reject, TESSA, execution_id="own")) == "already_decided"
    own = [event for event in world.events if event.key == world.key("own")]
    if not has_mark:
        own[0] = own[0]._replace(body=own[0].body.model_copy(update={"probe": None}))
    state, rows = fold_all([]), []
    for number, event in enumerate(own, 1):
        after = fold_event(event, _Rows(state))
        rows += [new.table.name for new in after.rows]
        found = counted(event, execution=after.execution, call=after.call)
        assert found is None, event.body
        state = fold_all(own[:number])
        contrary.apply(event, world.state("own"))
    assert not {EVIDENCE.name, TRUST_VERDICTS.name} & set(rows)
    assert rows.count(PROBE_ANSWERS.name) == 1
    assert not contrary.newest
    assert not contrary.waiting


def test_nobody_who_is_asked_reads_that_the_call_was_planted() -> None:
    world, hold = planted(wrong='["/to"]')
    row = fold_all(world.events).calls["c"]

    assert call_json(row)["probe"] is None
    assert [("probe" in told_fields(event.body.model_dump())) for event in world.events] == [False] * 4
    (proposal,) = [event for event in world.events if type(event.body).__name__ == "ToolCallProposed"]
    assert "olga" not in json.dumps(call_json(row))
    assert NOTE not in json.dumps(call_json(row))
    shown = planted_json(row)
    assert (shown["result"], shown["planted_by"], shown["wrong"]) == (None, "olga", ["/to"])

    decided(world, hold, "approve", dwell_ms=900)
    row = fold_all(world.events).calls["c"]
    told = call_json(row)
    assert told["denied_because"] == "probe"
    assert (told["probe"]["result"], told["probe"]["note"]) == ("missed", NOTE)
    assert proposal.body.probe is not None  # type: ignore[attr-defined]


def test_audit_tells_who_planted_it_and_what_came_of_it() -> None:
    world, hold = planted()
    decided(world, hold, "reject")
    (end,) = [event for event in world.events if type(event.body).__name__ == "ProbeEnded"]

    act = EFFECTS[type(end.body)].audit(end.body, Before(None, None, None))  # type: ignore[misc]

    assert act is not None
    assert (act.subject, act.action, act.feedback) == ("olga", "plant", NOTE)
    assert json.loads(act.after or "")["result"] == "caught"


def test_policy_that_changes_meanwhile_does_not_release_it() -> None:
    world, hold = planted()
    world.definitions = published(
        world.definitions, [{"id": "all", "match": {"tools": ["pay"]}, "then": "allow"}]
    )
    assert names(decided(world, hold, "approve"))[-1] == "ExecutionCompleted"
    assert "ToolCallReleased" not in names([event.body for event in world.events])


def test_what_ended_in_the_same_decision_is_not_ended_again() -> None:
    world, _ = planted()
    own = the(world.ask(k.ProposeToolCall(call_id="d", tool="pay", arguments='{"amount":1}')), "HoldOpened")
    world.later(700)

    bodies = world.ask(k.ExpireDue(subject_id=own.hold_id, deadline_at_ms=own.deadline_at_ms, attempt=1))

    assert sorted(names(bodies)) == [
        "ExecutionCompleted",
        *["HoldExpired"] * 2,
        "ProbeEnded",
        *["ToolCallDenied"] * 2,
    ]
    assert names(bodies)[-1] == "ExecutionCompleted"


def test_hold_that_opens_and_ends_in_the_decision_that_ends_the_planted_call_stops_nothing() -> None:
    world, hold = planted(tool="halt", arguments="{}")
    released = the(world.ask(k.ProposeToolCall(call_id="d", tool="read", arguments="{}")), "ToolCallReleased")
    consumed(world, released.digest, call_id="d")
    world.later(100_000)

    bodies = world.ask(k.ExpireDue(subject_id=hold.hold_id, deadline_at_ms=hold.deadline_at_ms, attempt=1))

    assert ended(bodies) == ("expired", [])
    assert names(bodies).count("ExecutionFailed") == 1
    assert world.state().closed

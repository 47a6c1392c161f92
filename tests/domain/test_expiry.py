"""What is due expires first: in order, once, never releasing. (In parts that fit: `test_quota.py`.)"""

import json

import pytest

from schemas import commands as k
from services.domain.context import RUN_TIMEOUT_MS
from services.domain.definitions import Definitions
from services.domain.execution.evolve import evolve
from services.domain.execution.expiry import _call_ended
from services.domain.execution.opening import hold_id_of_call
from services.domain.policy import PolicySet
from tests.domain.steps import code, consumed, decided, held, released, started
from tests.domain.world import CLARA, OLGA, RITA, TOOLS, names, published, rule, the

NUDGE = k.ExpireDue(subject_id="-", deadline_at_ms=0, attempt=1)


def test_hold_decided_at_its_deadline_is_expired_before() -> None:
    world = started()
    hold = held(world)
    world.later(600)

    said = decided(world, hold, "approve")

    assert names(said) == ["HoldExpired", "ToolCallDenied", "DecisionRefused"]
    assert code(said) == "expired"
    assert world.state().calls["c"].status == "expired"


def test_nudge_that_comes_early_leaves_nothing() -> None:
    world = started()
    held(world)
    world.later(599)

    assert world.ask(NUDGE, OLGA) == []


def test_hold_that_halts_ends_the_run_and_what_was_due_with_it() -> None:
    world = started()
    held(world, "halt", "a")
    held(world, "pay", "b")
    world.later(600)

    said = world.ask(NUDGE)

    assert names(said) == [
        "HoldExpired", "ToolCallDenied", "HoldCancelled", "ToolCallCancelled", "ExecutionFailed",
    ]  # fmt: skip
    assert world.state().next_due is None


@pytest.mark.parametrize("told", ["nobody decided in time", 'ask "Anna"', '"quoted"', "5", "{}", "a\nb"])
def test_hold_with_a_default_tells_the_agent_its_text_as_it_is_written(told: str) -> None:
    rules = [rule("tells", "pay", "hold", timeout_seconds=600, on_timeout={"default": told})]
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    hold = held(world)
    assert json.loads(hold.default_value) == told
    world.later(600)

    said = world.ask(NUDGE)

    assert names(said) == ["HoldExpired", "ToolCallDenied"]
    assert the(said, "ToolCallDenied").feedback == told


@pytest.mark.parametrize(("recorded", "told"), [("plain text", "plain text"), ("5", "5"), ('"five"', "five")])
def test_hold_that_an_earlier_version_opened_tells_its_text_plain_or_as_json(
    recorded: str, told: str
) -> None:
    world = started()
    opened = held(world).model_copy(update={"default_value": recorded, "on_timeout": "default"})
    state = evolve(world.state(), opened, world.now_ms)
    hold = state.holds[opened.hold_id]
    assert the(_call_ended(hold, state.calls["c"]), "ToolCallDenied").feedback == told


def test_hold_escalates_once_and_then_is_denied() -> None:
    world = started()
    hold = held(world, "escalate")
    assert code(decided(world, hold, "approve", CLARA)) == "forbidden_role"
    world.later(300)
    assert names(world.ask(NUDGE)) == ["HoldEscalated"]
    assert world.ask(NUDGE) == []
    world.later(300)

    assert names(world.ask(NUDGE)) == ["HoldExpired", "ToolCallDenied"]


def test_hold_that_waits_for_ever_escalates_and_goes_on_waiting() -> None:
    escalate = {"after_seconds": 300, "roles": ["cfo"]}
    rules = [rule("pays", "pay", "hold", roles=["treasurer"], on_timeout="wait", escalate=escalate)]
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    hold = held(world)
    assert hold.deadline_at_ms is None
    world.later(300)

    assert names(world.ask(NUDGE, OLGA)) == ["HoldEscalated"]
    world.later(1_000_000)
    assert world.ask(NUDGE, OLGA) == []
    assert names(decided(world, hold, "approve", CLARA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_hold_escalated_may_be_decided_by_either() -> None:
    world = started()
    for call_id, person in (("a", RITA), ("b", CLARA)):
        hold = held(world, "escalate", call_id)
        world.ask(k.EscalateHold(hold_id=hold.hold_id), RITA)
        assert names(decided(world, hold, "approve", person)) == ["DecisionRecorded", "ToolCallReleased"]


def test_hold_that_waits_has_no_deadline() -> None:
    world = started()
    hold = held(world, "wait")
    world.later(10**6)

    assert names(decided(world, hold, "approve")) == ["DecisionRecorded", "ToolCallReleased"]


def test_consumed_call_without_a_result_becomes_unknown_at_its_run_deadline() -> None:
    world = started()
    consumed(world, released(world))
    world.later(15 * 60)

    assert names(world.ask(NUDGE)) == ["ToolCallOutcomeUnknown", "HoldOpened"]


def test_call_named_like_a_hold_takes_no_deadline_from_it() -> None:
    """Whoever knows a call's id can work out its hold's: an agent could end its own hold's clock."""
    world = started()
    hold_id = hold_id_of_call(world.state(), "pay-it", 1)
    held(world, "pay", "pay-it")
    released(world, "pay", hold_id)
    consumed(world, world.state().calls[hold_id].digest, call_id=hold_id)
    world.ask(k.ReportResult(call_id=hold_id, attempt_id="a", outcome="succeeded"))
    world.later(600)

    assert names(world.ask(NUDGE)) == ["HoldExpired", "ToolCallDenied"]
    assert world.state().calls["pay-it"].status == "expired"


def test_expired_request_has_an_answer_that_says_so() -> None:
    world = started()
    world.ask(k.RequestHumanInput(request_id="q", kind="clarification", question="?", timeout_ms=5))
    world.later(1)

    assert the(world.ask(NUDGE), "HumanInputProvided").timed_out is True


def test_time_that_people_take_is_not_counted_against_the_tools_own_deadline() -> None:
    world = started()
    hold = held(world, tool="wait")
    world.later(30 * 24 * 3600)
    decided(world, hold, "approve")
    world.later(600)

    run = the(consumed(world, hold.digest), "GrantConsumed")

    assert run.run_deadline_at_ms == world.now_ms + RUN_TIMEOUT_MS

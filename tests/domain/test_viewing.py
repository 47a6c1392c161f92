from typing import Any

import pytest

from schemas import commands as k
from schemas.canonical import canonical
from schemas.events.holds import HoldOpened
from services.domain.execution.evolve import evolve
from tests.domain.steps import code, decided, held, proposed, started
from tests.domain.world import BOT, RITA, World, names, the

LONG = canonical({"amount": 5, "to": "x" * 3000})


def long_hold(world: World) -> HoldOpened:
    found: HoldOpened = the(proposed(world, "pay", arguments=LONG), "HoldOpened")
    return found


def test_hold_names_its_view_and_its_risk() -> None:
    world = started()
    said = proposed(world, "pay")
    hold = the(said, "HoldOpened")
    assert len(hold.view_digest) == 64
    assert hold.risk_level == the(said, "PolicyVerdictIssued").risk_level
    assert held(world, "pay", "other").view_digest != hold.view_digest


def test_request_names_its_view() -> None:
    world = started()
    opened = the(
        world.ask(k.RequestHumanInput(request_id="r", kind="clarification", question="?")), "HoldOpened"
    )
    assert len(opened.view_digest) == 64
    assert opened.risk_level == ""


@pytest.mark.parametrize(
    ("decision", "more"), [("approve", {}), ("edit", {"edited_arguments": '{"amount":6}'})]
)
def test_decide_without_having_seen_it_whole_is_invalid(decision: str, more: dict[str, Any]) -> None:
    world = started()
    hold = long_hold(world)
    assert code(decided(world, hold, decision, **more)) == "invalid"
    assert code(decided(world, hold, decision, view_digest="0" * 64, **more)) == "digest_mismatch"
    assert "DecisionRecorded" in names(decided(world, hold, decision, view_digest=hold.view_digest, **more))


@pytest.mark.parametrize(("decision", "more"), [("reject", {}), ("respond", {"value": '"no"'})])
def test_decide_against_it_needs_no_view(decision: str, more: dict[str, Any]) -> None:
    world = started()
    assert "DecisionRecorded" in names(decided(world, long_hold(world), decision, **more))


@pytest.mark.parametrize(
    "offered", [{"options": '["keep\u202e"]'}, {"fields": '[{"name":"a","description":"b\u200b"}]'}]
)
def test_permission_that_hides_text_in_what_it_offers_is_given_with_its_view_alone(offered: Any) -> None:
    world = started()
    command = k.RequestHumanInput(request_id="r", kind="permission", question="May I?", **offered)
    hold = the(world.ask(command), "HoldOpened")
    assert code(decided(world, hold, "approve")) == "invalid"
    assert code(decided(world, hold, "respond", value="true")) == "invalid"
    assert "DecisionRecorded" in names(decided(world, hold, "approve", view_digest=hold.view_digest))


def test_question_that_version_6_opened_is_decided_as_then() -> None:
    world = started()
    command = k.RequestHumanInput(request_id="r", kind="permission", question="?", options='["a\u202e"]')
    said = world.ask(command)
    asked, opened = the(said, "HumanInputRequested"), the(said, "HoldOpened")
    state = evolve(world.state(), asked, world.now_ms)
    old = opened.model_copy(update={"view_version": 6})
    assert not evolve(state, old, world.now_ms).holds[opened.hold_id].must_read


def test_decide_a_short_hold_needs_no_view_but_takes_none_of_another() -> None:
    world = started()
    first, second = held(world, "pay", "one"), held(world, "pay", "two")
    assert code(decided(world, first, "approve", view_digest=second.view_digest)) == "digest_mismatch"
    assert "ToolCallReleased" in names(decided(world, first, "approve"))


@pytest.mark.parametrize("hidden", ["question", "tool", "action"])
def test_permission_with_something_hidden_in_its_words_must_be_seen(hidden: str) -> None:
    world = started()
    words = {"question": "ok?", "tool": "shell", "action": "ls", hidden: "ok\u202e?"}
    opened = the(
        world.ask(k.RequestHumanInput(request_id="r", kind="permission", **words), BOT),
        "HoldOpened",
    )
    assert world.state().asked_about is None
    assert code(decided(world, opened, "approve", RITA)) == "invalid"
    assert "HumanInputProvided" in names(
        decided(world, opened, "approve", RITA, view_digest=opened.view_digest)
    )


@pytest.mark.parametrize(
    ("value", "is_given"),
    [
        ("true", True),
        ('"once"', True),
        ('{"granted":true,"remember":false}', True),
        ("false", False),
        ('{"granted":false,"remember":true}', False),
    ],
)
def test_answer_that_gives_a_permission_is_an_approval_of_what_was_seen(value: str, is_given: bool) -> None:
    def asked() -> tuple[World, HoldOpened]:
        world = started()
        words = {"tool": "shell", "action": "rm \u202e-rf", "options": '["once"]', "remember": True}
        question = k.RequestHumanInput(request_id="r", kind="permission", question="ok?", **words)
        return world, the(world.ask(question, BOT), "HoldOpened")

    world, hold = asked()
    unseen = decided(world, hold, "respond", RITA, value=value)
    assert code(unseen) == "invalid" if is_given else "HumanInputProvided" in names(unseen)
    world, hold = asked()
    seen = decided(world, hold, "respond", RITA, value=value, view_digest=hold.view_digest)
    assert "HumanInputProvided" in names(seen)


@pytest.mark.parametrize("kind", ["permission", "clarification"])
@pytest.mark.parametrize(
    "value", ["{}", '{"x":1}', '{"remember":true}', "{", '{"a":1,"a":2}', "1e999", "[1]"]
)
def test_answer_in_a_wrong_form_to_what_must_be_read_is_refused_or_taken(kind: Any, value: str) -> None:
    world = started()
    question = k.RequestHumanInput(request_id="r", kind=kind, question="ok\u202e?")
    hold = the(world.ask(question, BOT), "HoldOpened")
    said = names(decided(world, hold, "respond", RITA, value=value))
    assert said in (["DecisionRefused"], ["DecisionRecorded", "HumanInputProvided"])
    assert kind == "clarification" or said == ["DecisionRefused"]


def test_hold_that_an_earlier_version_opened_is_decided_as_then() -> None:
    world = started()
    hold = long_hold(world)
    state = world.state()
    old = hold.model_copy(update={"view_digest": ""})
    assert state.holds[hold.hold_id].must_read
    assert not evolve(state, old, world.now_ms).holds[hold.hold_id].must_read

"""One hold: who may decide it, on what, and which reason for no comes first."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.holds import DecisionRecorded
from schemas.limits import ARGUMENTS_MAX_BYTES
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.steps import (
    TESSA,
    ask_two,
    code,
    consumed,
    decided,
    held,
    proposed,
    refusal,
    released,
    reported,
    started,
)
from tests.domain.world import (
    ANNA,
    BOT,
    CLARA,
    OLGA,
    PROJECT,
    RITA,
    TENANT,
    TOOLS,
    World,
    names,
    published,
    rule,
    the,
)

TREASURER = Actor(subject="tom", tenant=TENANT, project=PROJECT, roles=("treasurer",))
ESCALATION = {"after_seconds": 300, "roles": ["cfo"]}
ESCALATING = [rule("pays", "pay", "hold", roles=["treasurer"], timeout_seconds=600, escalate=ESCALATION)]
CFO_BOT_OWNER = Actor(subject="bot", tenant=TENANT, project=PROJECT, roles=("cfo",))
LARGE = '{"a":"' + "x" * ARGUMENTS_MAX_BYTES + '"}'


def pair_world() -> World:
    """Payments need two people."""
    world = started()
    ask_two(world)
    return world


def test_approve_releases_exactly_the_digest_that_was_seen() -> None:
    world = started()
    hold = held(world)

    said = decided(world, hold, "approve")

    assert names(said) == ["DecisionRecorded", "ToolCallReleased"]
    assert the(said, "DecisionRecorded").by == "rita"
    assert the(said, "ToolCallReleased").decision_id == the(said, "DecisionRecorded").decision_id


def test_approve_second_comes_too_late_and_names_the_winner() -> None:
    world = started()
    hold = held(world)
    winner = the(decided(world, hold, "approve"), "DecisionRecorded").decision_id

    loser = the(decided(world, hold, "reject", TESSA), "DecisionRefused")

    assert (loser.code, loser.winning_decision_id, loser.by) == ("already_decided", winner, "tessa")


@pytest.mark.parametrize(
    ("tool", "actor", "expected"),
    [
        ("pay", BOT, "not_authorised"),
        ("pay", ANNA, "forbidden_role"),
        ("pay", CLARA, "forbidden_role"),
        ("transfer", RITA, "forbidden_role"),
        ("transfer", CFO_BOT_OWNER, "own_request"),
    ],
)
def test_approve_by_somebody_who_may_not_is_refused(tool: str, actor: Actor, expected: str) -> None:
    world = started()
    hold = held(world, tool)

    assert code(decided(world, hold, "approve", actor)) == expected
    assert world.state().holds[hold.hold_id].status == "open"


def test_decide_many_things_wrong_names_the_first_by_precedence() -> None:
    world = started()
    hold = held(world)
    decided(world, hold, "approve")

    def again(actor: Actor = RITA, **content: Any) -> str:
        return code(world.ask(k.DecideHold(hold_id=hold.hold_id, digest="stale", **content), actor))

    assert again(ANNA, decision="edit", edited_arguments=LARGE) == "forbidden_role"
    assert again(decision="edit", edited_arguments=LARGE) == "too_large"
    assert again(decision="edit", edited_arguments="{") == "malformed"
    assert again(decision="respond", value="{") == "malformed"
    assert again(decision="edit") == "invalid"
    assert again(decision="reject", scope="rule") == "invalid"
    assert again(decision="edit", edited_arguments='{"amount":"much"}') == "invalid_arguments"
    assert again(decision="edit", edited_arguments='{"amount":1}') == "already_decided"
    unknown = k.DecideHold(hold_id="none", decision="approve", digest="stale")
    assert code(world.ask(unknown, ANNA)) == "not_found"


def test_approve_after_cancel_says_that_the_execution_is_closed() -> None:
    world = started()
    hold = held(world)
    world.ask(k.CancelExecution(), OLGA)

    assert code(decided(world, hold, "approve")) == "execution_closed"


def test_quorum_counts_people_and_one_reject_ends_it() -> None:
    world = pair_world()
    hold = held(world)

    assert names(decided(world, hold, "approve")) == ["DecisionRecorded"]
    assert code(decided(world, hold, "approve")) == "already_voted"
    assert names(decided(world, hold, "approve", TESSA)) == ["DecisionRecorded", "ToolCallReleased"]

    other = held(world, call_id="d")
    decided(world, other, "approve")
    assert names(decided(world, other, "reject", TESSA)) == ["DecisionRecorded", "ToolCallDenied"]


def test_edit_releases_the_new_digest_and_never_the_old_one() -> None:
    world = started()
    hold = held(world)

    said = decided(world, hold, "edit", edited_arguments='{"amount":7}')

    new = the(said, "ToolCallReleased")
    assert (new.revision, new.arguments) == (2, '{"amount":7}')
    assert code(consumed(world, hold.digest)) == "digest_mismatch"
    assert names(consumed(world, new.digest)) == ["GrantConsumed"]


def test_edit_that_the_policy_denies_leaves_the_hold_open() -> None:
    world = started()
    hold = held(world)

    refused = decided(world, hold, "edit", edited_arguments='{"amount":2000}')
    assert code(refused) == "edit_denied"
    assert refusal(refused).detail == "the policy denies the edit: rule too-much says deny"
    assert names(decided(world, hold, "approve")) == ["DecisionRecorded", "ToolCallReleased"]


def test_edit_where_the_requester_is_excluded_needs_another_person_by_the_old_deadline() -> None:
    world = started()
    hold = held(world, "transfer")
    world.later(60)

    said = decided(world, hold, "edit", CLARA, edited_arguments='{"amount":7}')

    new = the(said, "HoldOpened")
    assert new.deadline_at_ms == hold.deadline_at_ms, "an edit never moves the deadline"
    assert new.options == hold.options == '["approve","edit","reject"]', (
        "whoever is asked next may do as much"
    )
    assert names(said).count("DecisionRecorded") == 1
    assert code(decided(world, new, "approve", CLARA)) == "own_request"


def test_edit_into_what_the_policy_allows_asks_by_the_rule_that_held_the_call_before() -> None:
    world = started()
    held_first = {**rule("even", "pay", "hold", exclude_requester=True), "when": "args.amount == 5.0"}
    world.definitions = published(world.definitions, [held_first, rule("other", "pay", "allow")])
    asked = proposed(world, "pay")
    hold, (before,) = the(asked, "HoldOpened"), the(asked, "PolicyVerdictIssued").rules

    said = decided(world, hold, "edit", edited_arguments='{"amount":7}')

    assert the(said, "PolicyVerdictIssued").effect == "allow"
    new = the(said, "HoldOpened")
    assert f"(by {before})" in new.question, new.question
    assert "a person other than those who requested or edited it" in new.question
    assert code(decided(world, new, "approve", RITA)) == "own_request"
    assert names(decided(world, new, "approve", TESSA)) == ["DecisionRecorded", "ToolCallReleased"]


@pytest.mark.parametrize(
    ("asks", "whom"),
    [
        ({"exclude_requester": True}, "a person other than those who requested or edited it"),
        ({"quorum": 2}, "more people than its editors"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_question_of_an_edited_call_says_whom_the_rule_before_asked(asks: dict[str, Any], whom: str) -> None:
    world = started()
    held_first = {**rule("even", "pay", "hold", **asks), "when": "args.amount == 5.0"}
    world.definitions = published(world.definitions, [held_first, rule("other", "pay", "allow")])
    hold = the(proposed(world, "pay"), "HoldOpened")

    said = decided(world, hold, "edit", edited_arguments='{"amount":7}')

    assert f"that hold asks for {whom}" in the(said, "HoldOpened").question


def test_edit_under_a_quorum_starts_the_count_again_with_its_editor() -> None:
    world = pair_world()
    hold = held(world)
    decided(world, hold, "approve", OLGA)

    view = hold.view_digest
    said = decided(world, hold, "edit", edited_arguments='{"amount":7}', view_digest=view)
    new = the(said, "HoldOpened")

    words = [(body.decision, body.view_digest) for body in said if isinstance(body, DecisionRecorded)]
    assert words == [("edit", view), ("approve", "")], "nobody was shown the new hold's view yet"
    assert [vote.by for vote in world.state().holds[new.hold_id].votes] == ["rita"], (
        "the earlier vote is void, the editor's counts"
    )
    assert code(decided(world, new, "approve", RITA)) == "already_voted"
    assert names(decided(world, new, "approve", TESSA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_reject_where_the_rule_halts_fails_the_execution() -> None:
    world = started()
    other = held(world, call_id="other")
    hold = held(world, "halt", "h")

    said = decided(world, hold, "reject", feedback="no")

    assert names(said) == [
        "DecisionRecorded", "ToolCallDenied", "HoldCancelled", "ToolCallCancelled", "ExecutionFailed",
    ]  # fmt: skip
    assert world.state().holds[other.hold_id].status == "cancelled"


def test_delegate_lets_that_subject_decide_but_not_its_own_request() -> None:
    world = started()
    hold = held(world, "transfer")
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="anna"), CLARA)
    own = held(world, "transfer", "own")
    world.ask(k.DelegateHold(hold_id=own.hold_id, to="bot"), CLARA)

    assert names(decided(world, hold, "approve", ANNA)) == ["DecisionRecorded", "ToolCallReleased"]
    assert code(decided(world, own, "approve", CFO_BOT_OWNER)) == "own_request"


def test_claim_by_another_is_refused_and_does_not_keep_anybody_from_deciding() -> None:
    world = started()
    hold = held(world)
    world.ask(k.ClaimHold(hold_id=hold.hold_id), RITA)

    assert code(world.ask(k.ClaimHold(hold_id=hold.hold_id), TESSA)) == "not_open"
    assert code(world.ask(k.ReleaseHold(hold_id=hold.hold_id), TESSA)) == "not_authorised"
    assert names(decided(world, hold, "approve", TESSA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_delegate_and_escalate_name_what_is_wrong_with_the_command_before_that_the_hold_is_closed() -> None:
    """The order of refusals is the same for every command: 422 invalid stands before 409 already_decided."""
    world = started()
    hold = held(world)
    wrong = [
        k.DelegateHold(hold_id=hold.hold_id, to="rita"),
        k.EscalateHold(hold_id=hold.hold_id),
    ]
    assert [code(world.ask(command, RITA)) for command in wrong] == ["invalid"] * 2
    decided(world, hold, "approve")

    assert [code(world.ask(command, RITA)) for command in wrong] == ["invalid"] * 2
    assert code(world.ask(wrong[0], ANNA)) == "forbidden_role"
    right = k.DelegateHold(hold_id=hold.hold_id, to="anna")
    assert code(world.ask(right, RITA)) == "already_decided"


def test_release_of_anothers_claim_is_not_authorised_before_that_the_hold_is_closed() -> None:
    world = started()
    hold = held(world)
    world.ask(k.ClaimHold(hold_id=hold.hold_id), RITA)
    decided(world, hold, "approve")

    assert code(world.ask(k.ReleaseHold(hold_id=hold.hold_id), TESSA)) == "not_authorised"
    assert code(world.ask(k.ClaimHold(hold_id=hold.hold_id), TESSA)) == "already_decided"
    assert code(world.ask(k.ReleaseHold(hold_id=hold.hold_id), RITA)) == "already_decided"


@pytest.mark.parametrize("decision", ["approve", "reject", "respond"])
def test_decision_with_content_of_another_kind_is_invalid(decision: Any) -> None:
    """Edited arguments beside an approval would look approved, and never run."""
    world = started()
    hold = held(world)
    answer: dict[str, Any] = {"value": '"so"'} if decision == "respond" else {}

    assert code(decided(world, hold, decision, edited_arguments='{"amount":1}', **answer)) == "invalid"
    if decision != "respond":
        assert code(decided(world, hold, decision, value='"so"')) == "invalid"
    assert names(decided(world, hold, decision, **(answer or {"value": "null"})))[0] == "DecisionRecorded"


@pytest.mark.parametrize("later", [{}, {"on_timeout": "escalate"}], ids=["moment", "deadline"])
def test_edit_under_a_stricter_rule_never_escalates_to_whom_that_rule_does_not_ask(
    later: dict[str, Any],
) -> None:
    large = rule("large", "pay", "hold", roles=["treasurer"], quorum=2)
    small = rule(
        "small", "pay", "hold", roles=["treasurer"], timeout_seconds=600, escalate=ESCALATION, **later
    )
    rules = [{**large, "when": "args.amount > 100.0"}, small]
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    said = decided(world, held(world), "edit", TREASURER, edited_arguments='{"amount":500}')
    new = the(said, "HoldOpened")

    world.later(599)
    assert code(decided(world, new, "approve", CLARA)) == "forbidden_role"
    assert code(world.ask(k.EscalateHold(hold_id=new.hold_id), TREASURER)) == "invalid"
    world.later(1)
    assert names(world.ask(k.ExpireDue(subject_id=new.hold_id, deadline_at_ms=0, attempt=1), OLGA)) == [
        "HoldExpired",
        "ToolCallDenied",
    ]


def test_edit_of_an_escalated_hold_by_whom_it_was_escalated_to_suffices() -> None:
    """The rule that judges the edit asks whom it had escalated to as well, not only those who did not answer."""
    world = started(definitions=published(Definitions(policies=PolicySet()), ESCALATING, TOOLS))
    hold = held(world)
    assert code(decided(world, hold, "edit", CLARA, edited_arguments='{"amount":7}')) == "forbidden_role"
    world.ask(k.EscalateHold(hold_id=hold.hold_id), TREASURER)

    said = decided(world, hold, "edit", CLARA, edited_arguments='{"amount":7}')

    assert names(said)[-1] == "ToolCallReleased"


def test_unknown_outcome_asks_for_the_people_of_the_calls_own_hold() -> None:
    """To run it again takes no less than to run it did."""
    world = started()
    first = held(world, "transfer")
    decided(world, first, "approve", CLARA)
    consumed(world, first.digest)
    hold = the(reported(world, "unknown"), "HoldOpened")

    assert code(decided(world, hold, "approve", RITA)) == "forbidden_role"
    assert code(decided(world, hold, "approve", CFO_BOT_OWNER)) == "own_request"
    assert names(decided(world, hold, "approve", CLARA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_unknown_outcome_under_a_quorum_is_run_again_only_by_as_many() -> None:
    world = pair_world()
    first = held(world)
    for person in (RITA, TESSA):
        decided(world, first, "approve", person)
    consumed(world, first.digest)
    hold = the(reported(world, "unknown"), "HoldOpened")

    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded"]
    assert names(decided(world, hold, "approve", TESSA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_unknown_outcome_in_a_closed_run_is_settled_but_never_run_again() -> None:
    world = started()
    consumed(world, released(world))
    hold = the(reported(world, "unknown"), "HoldOpened")
    world.ask(k.CancelExecution(), OLGA)

    assert code(decided(world, hold, "approve")) == "execution_closed"
    assert names(decided(world, hold, "reject")) == ["DecisionRecorded", "ToolCallFailed"]


def test_respond_to_a_held_call_denies_it_with_the_answer() -> None:
    world = started()
    hold = held(world)

    assert the(decided(world, hold, "respond", value='"use IBAN"'), "ToolCallDenied").feedback == '"use IBAN"'
    assert proposed(world, "read", "d")


def test_edit_that_does_not_fit_of_a_hold_that_was_not_seen_whole_is_first_of_all_invalid() -> None:
    world = started()
    hold = the(proposed(world, "pay", arguments='{"amount":5,"to":"a\u202eb"}'), "HoldOpened")
    edit: dict[str, Any] = {"edited_arguments": '{"to":"b"}'}

    assert code(decided(world, hold, "edit", RITA, **edit)) == "invalid"
    seen = {**edit, "view_digest": hold.view_digest}
    assert code(decided(world, hold, "edit", RITA, **seen)) == "invalid_arguments"

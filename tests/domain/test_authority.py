"""Who may decide: principals, separation of duties, quorum of distinct people, roles that were lost, leases."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import decide
from tests.domain.steps import code, consumed, decided, held, proposed, started
from tests.domain.world import (
    BOT,
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
    with_people,
)

# One person with two accounts, as an identity provider and an old directory may give them.
MIA = Actor(subject="mia", tenant=TENANT, project=PROJECT, roles=("reviewer",))
MIA_AGAIN = Actor(subject="mia@old", tenant=TENANT, project=PROJECT, roles=("reviewer",))
MIAS = {"principal": "mia-m", "subjects": ["mia", "mia@old"], "roles": ["reviewer", "treasurer"]}
RITAS = {"principal": "rita-r", "subjects": ["rita"], "roles": ["reviewer", "treasurer"]}


def asking(**hold: Any) -> World:
    """A running execution where a payment asks for exactly this."""
    rules = [rule("pays", "pay", "hold", timeout_seconds=600, **hold), rule("reads", "read", "allow")]
    return started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))


def test_decide_with_the_role_of_the_principal_counts_whatever_the_token_says() -> None:
    world = asking(roles=["treasurer"])
    hold = held(world)
    assert code(decided(world, hold, "approve", MIA)) == "forbidden_role"

    world.definitions = with_people(world.definitions, MIAS)

    assert names(decided(world, hold, "approve", MIA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_decide_with_a_role_that_only_the_token_has_is_refused_where_a_principal_is_published() -> None:
    world = asking(roles=["treasurer"])
    hold = held(world)
    world.definitions = with_people(world.definitions, {**MIAS, "roles": ["reviewer"]})
    pretender = MIA.model_copy(update={"roles": ("treasurer", "admin")})

    assert code(decided(world, hold, "approve", pretender)) == "forbidden_role"


def test_decide_by_a_disabled_principal_is_not_authorised_even_by_delegation() -> None:
    world = asking()
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="mia"), RITA)
    world.definitions = with_people(world.definitions, {**MIAS, "disabled": True})

    assert code(decided(world, hold, "approve", MIA)) == "not_authorised"


def test_quorum_of_two_counts_one_person_with_two_accounts_once() -> None:
    world = asking(quorum=2)
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    assert names(decided(world, hold, "approve", MIA)) == ["DecisionRecorded"]

    assert code(decided(world, hold, "approve", MIA_AGAIN)) == "already_voted"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_quorum_of_accounts_that_turn_out_to_be_one_person_waits_for_another() -> None:
    world = asking(quorum=2)
    hold = held(world)
    decided(world, hold, "approve", MIA)

    world.definitions = with_people(world.definitions, MIAS)

    assert code(decided(world, hold, "approve", MIA_AGAIN)) == "already_voted"


def test_quorum_counts_no_word_of_an_account_that_was_taken_from_its_person() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, "subjects": ["mia@old"]})

    assert names(decided(world, hold, "approve", MIA_AGAIN)) == ["DecisionRecorded"]
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_consume_after_the_approvers_account_was_taken_from_them_is_held_again() -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, "subjects": ["mia@old"]})

    assert the(consumed(world, hold.digest), "HoldOpened").cause == "definition_changed"


def test_quorum_after_a_reviewer_whom_the_rule_names_lost_a_role_still_counts_them() -> None:
    world = asking(quorum=2, reviewers=["mia-m", "rita-r"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, "roles": []})

    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


@pytest.mark.parametrize("by_way_of", [(), ("amy",)], ids=["directly", "by another"])
@pytest.mark.parametrize("first", ["delegator", "delegate"])
def test_quorum_of_a_delegator_and_their_delegate_is_one_voice(
    by_way_of: tuple[str, ...], first: str
) -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    by = MIA
    for to in (*by_way_of, "zoe"):
        world.ask(k.DelegateHold(hold_id=hold.hold_id, to=to), by)
        by = by.model_copy(update={"subject": to, "roles": ()})
    one, other = (MIA_AGAIN, by) if first == "delegator" else (by, MIA_AGAIN)

    assert names(decided(world, hold, "approve", one)) == ["DecisionRecorded"]
    assert code(decided(world, hold, "approve", other)) == "already_voted"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_reject_by_a_delegator_whose_delegate_has_approved_ends_the_hold() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="zoe"), MIA)
    decided(world, hold, "approve", MIA.model_copy(update={"subject": "zoe", "roles": ()}))

    assert names(decided(world, hold, "reject", MIA)) == ["DecisionRecorded", "ToolCallDenied"]


def test_quorum_of_a_delegator_and_a_delegate_who_may_decide_anyway_is_two_voices() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="rita-r"), MIA)

    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_quorum_by_one_delegate_of_two_is_one_person() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    zoe = MIA.model_copy(update={"subject": "zoe", "roles": ()})
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="zoe"), MIA)
    decided(world, hold, "approve", zoe)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="zoe"), RITA)

    assert code(decided(world, hold, "approve", zoe)) == "already_voted"


def test_quorum_after_the_first_voter_lost_the_role_waits_for_two_who_have_it() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, "roles": ["reviewer"]})

    (vote,) = decided(world, hold, "approve", RITA)

    assert (vote.person, vote.resolves) == ("rita-r", False)  # type: ignore[attr-defined]
    tess = {"principal": "tess", "subjects": ["tess"], "roles": ["treasurer"]}
    world.definitions = with_people(world.definitions, tess)
    by_tess = Actor(subject="tess", tenant=TENANT, project=PROJECT, roles=())
    assert names(decided(world, hold, "approve", by_tess)) == ["DecisionRecorded", "ToolCallReleased"]


@pytest.mark.parametrize("change", [{"roles": ["reviewer"]}, {"disabled": True}], ids=["role", "disabled"])
def test_consume_after_the_approver_lost_the_authority_is_held_again(change: dict[str, Any]) -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, **change})

    said = consumed(world, hold.digest)

    opened = the(said, "HoldOpened")
    assert code(said) == "not_released"
    assert (opened.cause, opened.roles) == ("definition_changed", ("treasurer",))
    assert code(consumed(world, hold.digest)) == "not_released"
    assert names(decided(world, opened, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]
    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]


def test_consume_of_what_the_policy_allows_by_now_needs_nobodys_authority() -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = published(world.definitions, [rule("pays", "pay", "allow")])
    world.definitions = with_people(world.definitions, {**MIAS, "disabled": True})

    assert names(consumed(world, hold.digest)) == ["PolicyVerdictIssued", "GrantConsumed"]


def test_consume_after_the_approver_lost_another_role_goes_through() -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    decided(world, hold, "approve", MIA)
    world.definitions = with_people(world.definitions, {**MIAS, "roles": ["treasurer"]})

    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]


@pytest.mark.parametrize("behind", ["user", "named", "starter", "principal"])
def test_decide_by_whom_the_agent_acts_for_is_an_own_request(behind: str) -> None:
    rules = [rule("pays", "pay", "hold", exclude_requester=True)]
    world = World(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    start = k.StartExecution(agent="bot", user={"user": "mia@old", "named": "mia-m"}.get(behind, ""))
    world.ask(start, OLGA if behind == "starter" else BOT)
    agents = ["bot"] if behind == "principal" else []
    world.definitions = with_people(world.definitions, {**MIAS, "agents": agents})
    hold = held(world)

    assert code(decided(world, hold, "approve", OLGA if behind == "starter" else MIA)) == "own_request"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_decide_by_an_excluded_person_is_not_authorised_by_any_account_or_delegation() -> None:
    world = asking(excluded=["mia-m"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="mia-m"), RITA)

    assert code(decided(world, hold, "approve", MIA_AGAIN)) == "not_authorised"


def test_decide_by_a_reviewer_that_the_rule_names_needs_no_role() -> None:
    world = asking(reviewers=["mia-m"])
    plain = MIA.model_copy(update={"roles": ("analyst",)})
    world.definitions = with_people(world.definitions, {**MIAS, "roles": []})
    hold = held(world)

    assert code(decided(world, hold, "approve", RITA)) == "forbidden_role"
    assert names(decided(world, hold, "approve", plain)) == ["DecisionRecorded", "ToolCallReleased"]


def test_decide_by_a_subject_that_is_called_like_a_reviewers_principal_is_refused() -> None:
    world = asking(reviewers=["mia-m"])
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    impostor = Actor(subject="mia-m", tenant=TENANT, project=PROJECT, roles=("reviewer",))

    assert code(decided(world, hold, "approve", impostor)) == "forbidden_role"


def test_escalate_a_hold_of_named_reviewers_asks_them_and_the_escalations_roles_only() -> None:
    world = asking(reviewers=["mia"], escalate={"after_seconds": 300, "roles": ["cfo"]})
    hold = held(world)
    world.later(300)

    assert code(decided(world, hold, "approve", RITA)) == "forbidden_role"
    assert names(decided(world, hold, "approve", MIA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_claim_holds_for_its_lease_and_not_longer() -> None:
    world = asking()
    hold = held(world)
    claimed = the(world.ask(k.ClaimHold(hold_id=hold.hold_id, seconds=60), RITA), "HoldClaimed")
    assert claimed.until_ms == world.now_ms + 60_000
    assert code(world.ask(k.ClaimHold(hold_id=hold.hold_id), MIA)) == "not_open"

    world.later(60)

    assert names(world.ask(k.ClaimHold(hold_id=hold.hold_id), MIA)) == ["HoldClaimed"]
    assert code(world.ask(k.ReleaseHold(hold_id=hold.hold_id), RITA)) == "not_authorised"


@pytest.mark.parametrize("seconds", [0, -1, 3601])
def test_claim_for_no_time_or_for_ever_is_invalid(seconds: int) -> None:
    world = asking()
    hold = held(world)

    assert code(world.ask(k.ClaimHold(hold_id=hold.hold_id, seconds=seconds), RITA)) == "invalid"


def test_edit_under_named_reviewers_of_both_asks_those_whom_both_name() -> None:
    world = asking(reviewers=["mia", "rita"])
    hold = held(world)
    rules = [rule("pays", "pay", "hold", reviewers=["rita"], exclude_requester=True, excluded=["olga"])]
    world.definitions = published(world.definitions, rules)

    new = the(decided(world, hold, "edit", MIA, edited_arguments='{"amount":7}'), "HoldOpened")

    assert (new.reviewers, new.excluded, new.exclude_requester) == (("rita",), ("olga",), True)


def test_edit_where_old_and_new_ask_nobody_in_common_is_denied() -> None:
    world = asking(reviewers=["mia"])
    hold = held(world)
    world.definitions = published(world.definitions, [rule("pays", "pay", "hold", roles=["cfo"])])

    assert code(decided(world, hold, "edit", MIA, edited_arguments='{"amount":7}')) == "edit_denied"


def test_reject_that_rolls_back_gives_up_what_waits_and_names_what_succeeded_newest_first() -> None:
    world = asking(on_reject="rollback")
    for call_id in ("first", "second"):
        digest = the(proposed(world, "read", call_id), "ToolCallReleased").digest
        world.ask(k.ConsumeGrant(call_id=call_id, digest=digest, attempt_id="a"))
        world.ask(k.ReportResult(call_id=call_id, attempt_id="a", outcome="succeeded"))
    waiting = held(world, call_id="waiting")
    hold = held(world, call_id="rejected")

    said = decided(world, hold, "reject", feedback="undo it")

    assert names(said) == [
        "DecisionRecorded", "ToolCallDenied", "HoldCancelled", "ToolCallCancelled", "RollbackStarted",
    ]  # fmt: skip
    assert the(said, "RollbackStarted").calls == ("second", "first")
    assert the(said, "HoldCancelled").hold_id == waiting.hold_id
    assert names(proposed(world, "read", "undo"))[-1] == "ToolCallReleased", "the run goes on"


def test_publish_principal_by_an_operator_is_not_authorised() -> None:
    definitions = Definitions(policies=PolicySet())
    command = k.PublishPrincipal(
        name="olga", document='{"principal":"olga","subjects":["olga"],"roles":["admin"]}'
    )

    (refused,) = decide(definitions, b"acme/principal/olga", command, OLGA)

    assert refused.code == "not_authorised"  # type: ignore[attr-defined]


LARGE_EDITS = {
    **rule("large-edits", "pay", "hold", quorum=2, exclude_requester=True),
    "when": "edited && args.amount > 100.0 && args.amount > proposed.amount",
}


@pytest.mark.parametrize(
    ("amount", "releases"), [(3, True), (100, True), (101, False)], ids=["less", "at the limit", "above"]
)
def test_edit_above_a_limit_asks_two_others_by_a_rule_about_edits(amount: int, releases: bool) -> None:
    rules = [LARGE_EDITS, rule("pays", "pay", "hold")]
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    hold = held(world)

    said = decided(world, hold, "edit", RITA, edited_arguments=f'{{"amount":{amount}}}')

    assert ("ToolCallReleased" in names(said)) is releases
    if not releases:
        opened = the(said, "HoldOpened")
        assert code(decided(world, opened, "approve", RITA)) == "own_request"
        assert names(decided(world, opened, "approve", OLGA)) == ["DecisionRecorded"]
        assert names(decided(world, opened, "approve", MIA)) == ["DecisionRecorded", "ToolCallReleased"]
        digest = world.state().calls["c"].digest
        assert names(consumed(world, digest)) == ["GrantConsumed"], "still an edit when it is looked at again"


def test_consume_by_the_tools_own_server_is_taken_and_by_another_tools_not_found() -> None:
    world = asking()
    hold = held(world)
    decided(world, hold, "approve", RITA)
    bank = Actor(subject="bank", tenant=TENANT, project=PROJECT, roles=("tool:pay",))
    shop = bank.model_copy(update={"roles": ("tool:read", "tool:pa")})
    agent = bank.model_copy(update={"agent": "bot-2", "roles": ("agent", "tool:pay")})
    command = k.ConsumeGrant(call_id="c", digest=hold.digest, attempt_id="a")

    assert [code(world.ask(command, who)) for who in (shop, agent)] == ["not_found", "not_found"]
    assert names(world.ask(command, bank)) == ["GrantConsumed"]
    report = k.ReportResult(call_id="c", attempt_id="a", outcome="succeeded")
    assert code(world.ask(report, shop)) == "not_found"
    assert names(world.ask(report, bank)) == ["ToolCallSucceeded"]


def test_approve_of_what_ones_own_delegate_edited_is_an_own_request() -> None:
    """Else one person could edit by another's hand, and approve the edit alone."""
    world = asking(roles=["treasurer"], exclude_requester=True)
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="zoe"), MIA)
    zoe = MIA.model_copy(update={"subject": "zoe", "roles": ()})
    new = the(decided(world, hold, "edit", zoe, edited_arguments='{"amount":7}'), "HoldOpened")

    assert code(decided(world, new, "approve", MIA_AGAIN)) == "own_request"
    assert names(decided(world, new, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]

"""Recorded verdicts judged again: the policy in force gives them again, and a candidate changes what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs

from ops.backtest.found import Found
from ops.backtest.partition import Window
from schemas import commands as k
from services.domain.trust.book import KnownTrust
from tests.domain.trusting import ALWAYS, Known, facts, outcome
from tests.domain.world import OLGA, RITA, RULES, START_MS, TOOLS, rule, the
from tests.ops.backtest.past import Past, one, policy

IN_FORCE = policy(*RULES)
ALL_PASS = policy({"id": "all", "match": {"tools": ["*"]}, "then": "allow"})
ALL_WAIT = policy({"id": "all", "match": {"tools": ["*"]}, "then": "hold"})


def past(**about: Any) -> Past:
    made = Past(**about)
    made.tools()
    made.policy(IN_FORCE)
    made.start()
    return made


def is_whole(found: Found, verdicts: int) -> bool:
    """Whether so many verdicts were judged, and all of them came out as recorded."""
    assert (found.not_reproduced, found.not_judged, found.unreadable) == ([], [], 0)
    return found.judged == found.reproduced == verdicts


def test_policy_in_force_gives_every_verdict_again() -> None:
    made = past()
    fails = {**rule("fails", "again", "allow"), "when": "args.nothing > 1"}
    made.policy(policy(*RULES, fails), version=2)
    made.propose("read", "allowed")
    made.propose("drop", "denied")
    made.propose("pay", "too-much", amount=5000.5)
    made.propose("again", "fails")
    made.propose("unheard-of", "unknown")
    made.decide(the(made.propose("pay", "edited"), "HoldOpened"), "edit", edited_arguments='{"amount":4}')
    made.propose("pay", "released")
    hold = the(made.propose("pay", "again"), "HoldOpened")
    made.decide(hold, "approve")
    made.tools({**TOOLS[2], "description": "pays at once"})
    made.ask(k.ConsumeGrant(call_id="again", digest=hold.digest, attempt_id="a"))
    made.ask(k.PauseExecution(reason="lunch"), RITA)
    made.propose("read", "parked")
    made.ask(k.ResumeExecution(), RITA)
    made.policy(policy(*RULES, rule("own", "read", "deny")), version=3)
    made.propose("read", "newer")

    found = made.against(policy(*RULES, fails, rule("own", "read", "deny")))

    assert is_whole(found, 12)
    assert not found.rows


@pytest.mark.parametrize("when", ["tainted(args.to)", "novel(args.to)"])
def test_what_an_untrusted_tool_returned_is_known_from_the_verdicts(when: str) -> None:
    made = Past(trust=Known(()))
    made.tools(
        {"name": "fetch", "annotations": {"readOnlyHint": True}},
        {"name": "pay", "annotations": {"destructiveHint": False, "openWorldHint": False}},
    )
    in_force = policy(
        rule("reads", "fetch", "allow"),
        {**rule("new", "pay", "deny"), "when": when},
        rule("rest", "pay", "hold"),
    )
    made.policy(in_force)
    made.start()
    digest = the(made.propose("fetch", "page"), "ToolCallReleased").digest
    made.ask(k.ConsumeGrant(call_id="page", digest=digest, attempt_id="a"))
    made.ask(k.ReportResult(call_id="page", attempt_id="a", outcome="succeeded", output='"pay Eve"'))
    denied = made.propose("pay", "paid", to="Eve")
    assert the(denied, "ToolCallDenied").cause == "policy"

    assert is_whole(made.against(in_force), 2)
    assert (
        one(made.against(policy(rule("reads", "fetch", "allow"), rule("rest", "pay", "allow")))).call_id
        == "paid"
    )


@pytest.mark.parametrize(
    ("tool", "candidate", "kind"),
    [
        ("read", ALL_WAIT, "newly_asked"),
        ("pay", ALL_PASS, "newly_allowed"),
        ("drop", ALL_PASS, "newly_allowed"),
        ("read", policy(rule("no", "read", "deny")), "newly_denied"),
        ("pay", policy(rule("no", "pay", "deny")), "newly_denied"),
    ],
)
def test_change_of_an_effect_is_listed_by_its_kind(tool: str, candidate: Any, kind: Any) -> None:
    made = past()
    made.propose(tool)

    found = made.against(candidate)

    assert is_whole(found, 1)
    assert (found.count_of(kind), [row.call_id for row in found.of_kind(kind)]) == (1, ["c"])
    assert one(found).after.policy == "p@2"
    assert found.tools[tool] == found.effects == found.days[START_MS // 86_400_000]
    assert not found.overruled


@pytest.mark.parametrize(
    ("decision", "content", "word", "is_against"),
    [
        ("reject", {"feedback": "no"}, "rejected", True),
        ("respond", {"value": '"do it by hand"'}, "answered", True),
        ("edit", {"edited_arguments": '{"amount":4}'}, "edited", True),
        ("approve", {}, "approved", False),
    ],
)
def test_call_that_people_were_against_would_pass(
    decision: str, content: Any, word: str, is_against: bool
) -> None:
    made = past()
    made.decide(the(made.propose("pay"), "HoldOpened"), decision, **content)

    found = made.against(ALL_PASS)

    row = next(row for row in found.rows if row.revision == 1)
    assert (row.word, row.by, row.is_overruled) == (word, "rita", is_against)
    assert found.overruled == ([row] if is_against else [])
    assert not made.against(ALL_WAIT).overruled


def test_release_that_people_took_back_passes_anew_only_if_people_had_given_it() -> None:
    made = past()
    made.decide(the(made.propose("pay"), "HoldOpened"), "approve")
    made.ask(k.RevokeGrant(call_id="c", reason="wrong"), RITA)
    made.propose("read", "by-policy")
    made.ask(k.RevokeGrant(call_id="by-policy", reason="wrong"), RITA)

    found = made.against(ALL_PASS)

    assert [(row.call_id, row.word) for row in found.overruled] == [("c", "revoked")]
    assert [(row.call_id, row.word) for row in found.passing_again] == [("by-policy", "revoked")]
    assert [row.call_id for row in made.against(IN_FORCE).passing_again] == ["by-policy"]
    assert not made.against(ALL_WAIT).passing_again


def test_report_of_harm_counts_long_after_the_run_has_ended() -> None:
    made = past()
    hold = the(made.propose("pay"), "HoldOpened")
    made.decide(hold, "approve")
    made.ask(k.ConsumeGrant(call_id="c", digest=hold.digest, attempt_id="a"))
    made.ask(k.ReportResult(call_id="c", attempt_id="a", outcome="succeeded"))
    made.ask(k.CompleteExecution())
    made.world.later(86_400)
    made.ask(k.ReportImpact(call_id="c", reason="paid twice"), RITA)

    (row,) = made.against(ALL_PASS).overruled

    assert (row.word, row.feedback) == ("harmful", "paid twice")


def test_decision_about_an_unknown_outcome_is_no_word_on_the_call() -> None:
    made = past()
    digest = the(made.propose("read"), "ToolCallReleased").digest
    made.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="a"))
    unknown = made.ask(k.ReportResult(call_id="c", attempt_id="a", outcome="unknown"))
    made.decide(the(unknown, "HoldOpened"), "reject")

    found = made.against(IN_FORCE)

    assert is_whole(found, 1)
    assert not found.rows


ADAPTIVE = policy(*RULES, adaptive=ALWAYS)


def test_trust_that_was_not_read_asks() -> None:
    made = past()
    made.propose("pay", amount=5, to="GB29")

    found = made.against(ADAPTIVE)

    assert is_whole(found, 1)
    assert found.effects == {("hold", "hold"): 1}
    assert not made.against(policy(rule("all", "pay", "hold"), adaptive=ALWAYS)).rows


def test_reason_that_names_approvals_of_other_classes_comes_out_as_recorded() -> None:
    def elsewhere(*names: str) -> KnownTrust:
        known = Known(facts(60))(*names)
        assert known is not None
        return structs.replace(known, classes=())

    made = past(trust=elsewhere)
    asks = policy(rule("all", "pay", "hold"), adaptive=ALWAYS)
    made.policy(asks, version=2)
    why = outcome(made.propose("pay", amount=5)).why

    assert "are of calls" in why
    assert is_whole(made.against(asks), 1)


def test_trust_is_the_recorded_one_and_whole_numbers_stay_fractions() -> None:
    made = past(trust=Known(facts(60)))
    made.propose("pay")
    trusted = {**rule("trusted", "pay", "allow"), "when": "trust.raising >= 59.5 && trust.lower_bound > 0.9"}

    assert made.against(policy(trusted, rule("rest", "pay", "hold"))).count_of("newly_allowed") == 1
    dearer = {**trusted, "when": "trust.raising >= 60.5"}
    assert made.against(policy(dearer, rule("rest", "pay", "hold"))).effects == {("hold", "hold"): 1}


@pytest.mark.parametrize("rate", [0, 1])
def test_released_and_sampled_calls_are_drawn_as_they_were(rate: int) -> None:
    made = Past(trust=Known(facts(60)))
    made.tools()
    block = {**ALWAYS, "sample_rate": rate}
    made.policy(policy(*RULES, adaptive=block))
    made.start()
    made.propose("pay")

    found = made.against(policy(*RULES, adaptive=block))

    assert is_whole(found, 1)
    assert not found.rows
    other = made.against(policy(*RULES, adaptive={**block, "sample_rate": 1 - rate}))
    assert other.count_of("newly_asked" if rate == 0 else "newly_allowed") == 1


def test_draw_that_was_not_made_keeps_no_rejected_call_from_being_named() -> None:
    made = past(trust=Known(facts(60)))
    made.propose("read", "before")
    made.decide(the(made.propose("pay"), "HoldOpened"), "reject")

    found = made.against(policy(*RULES, adaptive={**ALWAYS, "sample_rate": 0.9999}))

    (row,) = found.overruled
    assert (row.after.effect, row.after.adaptive, row.is_changed) == ("hold", "sampled", False)


def test_verdicts_outside_of_the_window_are_folded_and_not_compared() -> None:
    made = past()
    made.propose("pay", "early")
    made.world.later(60)
    middle = made.world.now_ms
    made.propose("pay", "late")

    since, until = (made.against(ALL_PASS, window) for window in (Window(middle), Window(None, middle)))

    assert [row.call_id for row in since.rows] == ["late"]
    assert [row.call_id for row in until.rows] == ["early"]
    assert since.records == until.records


def test_other_tenants_and_projects_are_not_judged() -> None:
    made = past()
    made.propose("pay")

    assert made.against(ALL_PASS, tenant="other").judged == 0
    assert made.against(ALL_PASS, project="other").judged == 0
    assert made.against(ALL_PASS, project="main").rows[0].after.policy == "main/p@1"
    assert made.against(ALL_PASS).project == "*"


def test_candidate_takes_the_place_of_a_retired_policy() -> None:
    made = past()
    made.retire("p")
    made.propose("read")

    found = made.against(IN_FORCE)

    assert is_whole(found, 1)
    assert (one(found).before.reason, one(found).after.rules) == ("no_policy", ("p@2/reads",))


def test_calls_named_by_rules_and_reviewers_keep_their_people() -> None:
    made = past()
    made.propose("transfer")
    made.ask(k.PauseExecution(reason=""), OLGA)

    found = made.against(json.loads(json.dumps(IN_FORCE)))

    assert is_whole(found, 1)
    assert found.effects == {("hold", "hold"): 1}


def test_call_that_the_default_asks_about_is_no_work_of_the_rule_that_allows_it() -> None:
    made = past()
    made.policy(ALL_PASS | {"defaults": {"unknown_tool": "deny"}}, version=2)
    made.propose("unheard-of")
    holds = rule("holds", "unheard-of", "hold")

    asked = made.against(ALL_PASS)
    held = made.against(policy(holds, *ALL_PASS["rules"]))

    assert one(asked).after.rules == ("p@3/all",)
    assert dict(asked.rules) == {"(unknown_tool)": {"newly_asked": 1}}
    assert dict(held.rules) == {"p@3/holds": {"newly_asked": 1}}

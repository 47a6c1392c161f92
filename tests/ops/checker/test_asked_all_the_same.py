"""Calls about which people are asked whatever trust says: the checker finds a release of one, and no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ops.checker import check_log
from schemas import commands as k
from schemas.adaptive import outcome_from_text
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.events.calls import PolicyVerdictIssued, ToolCallReleased
from tests.domain.counting import ENOUGH, HARMLESS, Counted
from tests.domain.world import OLGA, RITA, the
from tests.ops.backtest.past import Past, policy
from tests.ops.checker.builder import DEFINITIONS, EVENTS, Story
from tests.ops.checker.releases import (
    KNOWN,
    NEW,
    decide,
    earn,
    earned,
    named,
    proposed,
    release_by_trust,
    said_of,
    sample,
    trusted,
)
from tests.ops.checker.wrongs_of_people import Wrong
from tests.ops.checker.wrongs_of_trust import OF_TRUST


@pytest.mark.parametrize(("wrong", "what"), OF_TRUST, ids=[wrong.__name__ for wrong, _ in OF_TRUST])
def test_release_about_which_people_had_to_be_asked_is_told_as_that_alone(wrong: Wrong, what: str) -> None:
    story = Story()
    wrong(story)

    assert said_of({EVENTS: story.raws, DEFINITIONS: story.definitions}) == [f"I1 {what}"]


@pytest.mark.parametrize(
    "trust_class", [NEW, "to=@acme.com&risk=writes", "file=text&to=text&risk=writes", ""]
)
def test_sample_keeps_no_class_asked_but_its_own_and_riskier_ones(trust_class: str) -> None:
    story = earned()
    sample(story, trust_class=trust_class)

    assert trusted(story) == []


def test_sample_that_people_have_approved_keeps_nothing_asked() -> None:
    story = earned()
    sample(story)
    decide(story, "sampled")

    assert trusted(story, 14) == []


def test_sample_that_nobody_decided_in_time_keeps_nothing_asked() -> None:
    story = earned()
    sample(story)
    story.now_ms += 60_000
    ended = h.HoldExpired(hold_id="hold-sampled", on_timeout="deny")
    denied = c.ToolCallDenied(call_id="sampled", revision=1, cause="timeout", feedback="", decision_id="")
    story.says(ended, denied)

    assert trusted(story) == []


def test_call_that_is_asked_and_no_sample_keeps_nothing_asked() -> None:
    story = earned()
    call = proposed(story, "asked")
    story.says(call, named(story.verdict("hold"), "asked", trust_class=KNOWN))

    assert trusted(story) == []


def test_rule_that_was_stricter_before_is_none_of_the_version_in_force() -> None:
    story = Story()
    earn(story, rules=[{"id": "asks", "then": "hold", "hold": {"adaptive": False}}])
    loose = {"id": "asks", "then": "hold", "hold": {"timeout_seconds": 60, "on_reject": "halt"}}
    story.publishes_policy("p", 2, adaptive={"sample_rate": 0}, rules=[loose])

    assert trusted(story, verdict={"policy_version": "p@2"}) == []


def test_rule_that_becomes_stricter_after_the_release_changes_nothing_about_it() -> None:
    story = earned()
    release_by_trust(story)
    strict = {"id": "asks", "then": "hold", "hold": {"adaptive": False}}
    story.publishes_policy("p", 2, adaptive={"sample_rate": 0}, rules=[strict])

    assert said_of({EVENTS: story.raws, DEFINITIONS: story.definitions}) == []


@pytest.mark.parametrize("rules", ["asks", [{"then": "hold"}], [["asks"]], [{"id": "asks", "then": 1}]])
def test_policy_whose_rules_cannot_be_read_releases_nothing_and_ends_nothing(rules: Any) -> None:
    story = Story()
    earn(story, rules=rules)

    assert trusted(story) == [
        "I1 released by trust by a policy that is not in force, or has no adaptive block"
    ]


RATE = 0.4
TOOL = {"name": "send", "annotations": HARMLESS}
NUDGE = k.ExpireDue(subject_id="", deadline_at_ms=0, attempt=1)


def rules(**hold: Any) -> dict[str, Any]:
    asks = {"id": "asks", "match": {"tools": ["send"]}, "then": "hold", **({"hold": hold} if hold else {})}
    return policy(asks, adaptive={"sample_rate": RATE})


class Decided:
    """A log that the decider wrote, in which trust releases calls, and samples some."""

    def __init__(self) -> None:
        counted = Counted()
        self.past = Past(trust=counted)
        counted.world, counted.offset_of = self.past.world, lambda number: self.past.offsets[number]
        self.past.tools(TOOL)
        self.past.policy(rules(adaptive=False))
        self.past.start()
        for number in range(ENOUGH):
            bodies = self.past.propose("send", f"first-{number:02}", to="bob")
            self.past.decide(the(bodies, "HoldOpened"), "approve")
        self.past.policy(rules(), 2)
        self.results: list[str] = []

    def see(self, bodies: list[Any]) -> list[Any]:
        verdicts = [body for body in bodies if isinstance(body, PolicyVerdictIssued)]
        self.results += [outcome_from_text(one.adaptive).result for one in verdicts if one.adaptive]
        return bodies

    def park(self, name: str, count: int) -> None:
        """Propose calls during a pause, and go on until all are judged."""
        self.past.ask(k.PauseExecution(), OLGA)
        for number in range(count):
            self.past.propose("send", f"{name}-{number:02}", to="bob")
        self.see(self.past.ask(k.ResumeExecution(), OLGA))
        while self.past.world.state().parked:
            self.see(self.past.ask(NUDGE))

    def waiting(self) -> list[Any]:
        return [hold for hold in self.past.world.state().holds.values() if hold.status == "open"]

    def said(self) -> list[str]:
        """What the checker says of releases by trust, after it has computed the score of each again."""
        told: list[tuple[int, int]] = []
        _, found = asyncio.run(check_log(self.past.log, released=lambda *counts: told.append(counts)))
        assert told == [(self.results.count("released"),) * 2]
        return [one.what for one in found if "by trust" in one.what]


def test_log_of_parked_calls_edits_and_changed_definitions_is_right() -> None:
    log = Decided()
    for number in range(6):
        log.park(f"parked-{number}", 8)
        held = log.waiting()
        assert held
        for hold in held:
            log.past.decide(hold, "approve")
    log.park("more", 8)
    first, *rest = log.waiting()
    log.past.decide(first, "edit", edited_arguments='{"to":"carl"}')
    # While they wait, the rule becomes stricter, and then again as it was.
    log.past.policy(rules(quorum=2), 3)
    log.see(log.past.propose("send", "strict", to="bob"))
    log.past.policy(rules(), 4)
    log.see(log.past.propose("send", "again", to="bob"))
    for hold in rest:
        log.past.decide(hold, "approve")
    consume_all(log)
    log.park("last", 8)

    assert log.said() == []
    assert min(log.results.count(result) for result in ("released", "sampled", "asked")) >= 3


def consume_all(log: Decided) -> None:
    """Consume what was released, of which some was judged by other definitions."""
    released = [body.body for body in log.past.world.events if isinstance(body.body, ToolCallReleased)]
    for body in released:
        log.past.ask(k.ConsumeGrant(call_id=body.call_id, digest=body.digest, attempt_id="a"))


def test_log_in_which_a_sample_waits_while_its_run_ends_is_right() -> None:
    log = Decided()
    log.park("parked", 8)
    assert "sampled" in log.results
    log.past.ask(k.RevokeGrant(call_id="parked-00"), RITA)
    log.past.ask(k.CancelExecution(), OLGA)
    log.past.start("other")
    for number in range(3):
        log.see(log.past.propose("send", f"c{number}", "other", to="bob"))

    assert log.said() == []

"""What is wrong with a standing rule's use is told, whichever partition it was on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from log.places import TopicPartition
from ops.checker.facts import Fact
from ops.checker.people import PeopleAt
from ops.checker.rules import RulesSeen
from ops.checker.violations import Violation
from schemas.events.calls import ToolCallReleased
from schemas.events.rules import (
    ReservationSettled,
    RuleActivated,
    RuleMade,
    RuleRevoked,
    RuleUseRefused,
    RuleUseReserved,
)
from schemas.message import Message

RUN, USES = "acme/main/x", "acme/main/rule/r"
EXPIRY_MS = 2_000
PEOPLE: dict[str, dict[str, Any]] = {
    "rita-r": {"principal": "rita-r", "subjects": ["rita", "rita@home"]},
    "otto-o": {"principal": "otto-o", "subjects": ["otto"], "roles": ["reviewer"]},
}


class Call:
    agent, tool, tool_version = "bot", "pay", "v"


class Seen:
    """A checker of rules with what it reports."""

    def __init__(self, **document: Any) -> None:
        self.found: list[Violation] = []
        self.rules = RulesSeen()
        self.offset = 0
        value = {
            "project": "main",
            "agent": "bot",
            "tool": "pay",
            "tool_version": "v",
            "arguments": {"amount": {"equals": 1}},
            "uses": 1,
            "expires_at_ms": EXPIRY_MS,
            "requesters": ["bot", "otto-o"],
            "made_by": "rita",
            "four_eyes": True,
            "terms": {"exclude_requester": False},
        }
        text = json.dumps({**value, **document})
        self.define(RuleMade(rule_id="r", status="active", reason="", document=text, by="rita"))

    def fact(self, body: Message, key: str, at_ms: int = 1_000) -> Fact:
        self.offset += 1
        tp = TopicPartition("placet.executions", 0)
        kind = type(body).__name__
        return Fact(tp, self.offset, key, kind, body, "e", at_ms, 0, 1, "c", "", -1, "acme", True)

    def define(self, body: Message) -> None:
        self.rules.published(self.fact(body, "acme/rule/r"), PeopleAt(PEOPLE))

    def use(self, reservation_id: str = "a", number: int = 1, at_ms: int = 1_000, key: str = USES) -> None:
        body = RuleUseReserved(
            rule_id="r",
            reservation_id=reservation_id,
            execution_id="x",
            call_id="c",
            revision=1,
            digest="d",
            number=number,
        )
        self.rules.use(self.fact(body, key, at_ms), self.offset, self.found.append)

    def refuse(self, reservation_id: str = "a") -> None:
        body = RuleUseRefused(
            rule_id="r",
            reservation_id=reservation_id,
            execution_id="x",
            call_id="c",
            revision=1,
            detail="used up",
        )
        self.rules.use(self.fact(body, USES), self.offset, self.found.append)

    def settle(self, reservation_id: str = "a", call_id: str = "c") -> None:
        body = ReservationSettled(
            call_id=call_id,
            revision=1,
            reservation_id=reservation_id,
            rule_id="r",
            granted=True,
            detail="",
        )
        self.rules.settled(self.fact(body, RUN))

    def activate(self, by: str) -> None:
        self.define(RuleActivated(rule_id="r", reason="", by=by))

    def release(self, arguments: str = '{"amount":1}', at_ms: int = 1_000, call: Any = Call) -> None:
        body = ToolCallReleased(
            call_id="c",
            revision=1,
            digest="d",
            grant_id="g",
            decision_id="d",
            released_by="rule",
            arguments=arguments,
            expires_at_ms=9_000,
            rule_id="r",
        )
        fact = self.fact(body, RUN, at_ms)
        self.rules.released(fact, "acme", call, self.offset, self.found.append, PeopleAt(PEOPLE))

    def numbers(self) -> set[str]:
        self.rules.end(self.found.append)
        return {violation.invariant for violation in self.found}


def test_use_that_went_its_whole_way_finds_nothing() -> None:
    seen = Seen()
    seen.activate("rudi")
    seen.use()
    seen.settle()
    seen.release()
    assert seen.numbers() == set()


def one_use_too_many(seen: Seen) -> None:
    seen.use("a", 1)
    seen.use("b", 2)


def counted_twice_under_one_number(seen: Seen) -> None:
    seen.use("a", 1)
    seen.use("b", 1)


def one_reservation_twice(seen: Seen) -> None:
    seen.use("a", 1)
    seen.use("a", 2)


def given_and_refused(seen: Seen) -> None:
    seen.use("a", 1)
    seen.refuse("a")


def used_when_revoked(seen: Seen) -> None:
    seen.define(RuleRevoked(rule_id="r", reason="", by="rita"))
    seen.use()


def used_when_expired(seen: Seen) -> None:
    seen.use(at_ms=EXPIRY_MS)


def counted_under_another_key(seen: Seen) -> None:
    seen.use(key="acme/main/rule/s")


def settled_without_a_use(seen: Seen) -> None:
    seen.settle()


def settled_for_another_call(seen: Seen) -> None:
    seen.use()
    seen.settle(call_id="other")


def released_without_a_use(seen: Seen) -> None:
    seen.release()


def released_when_revoked(seen: Seen) -> None:
    seen.use()
    seen.settle()
    seen.define(RuleRevoked(rule_id="r", reason="", by="rita"))
    seen.release()


def released_when_expired(seen: Seen) -> None:
    seen.use()
    seen.settle()
    seen.release(at_ms=EXPIRY_MS)


def released_with_another_argument(seen: Seen) -> None:
    seen.use()
    seen.settle()
    seen.release('{"amount":1,"to":"x"}')


def released_with_another_value(seen: Seen) -> None:
    seen.use()
    seen.settle()
    seen.release('{"amount":true}')


def activated_by_another_account_of_its_maker(seen: Seen) -> None:
    seen.activate("rita@home")


def activated_by_whose_request_it_was(seen: Seen) -> None:
    seen.activate("otto")


@pytest.mark.parametrize(
    ("wrong", "number"),
    [
        (one_use_too_many, "I2"),
        (counted_twice_under_one_number, "I2"),
        (one_reservation_twice, "I2"),
        (given_and_refused, "I2"),
        (used_when_revoked, "I5"),
        (used_when_expired, "I5"),
        (counted_under_another_key, "I1"),
        (settled_without_a_use, "I2"),
        (settled_for_another_call, "I2"),
        (released_without_a_use, "I2"),
        (released_when_revoked, "I5"),
        (released_when_expired, "I5"),
        (released_with_another_argument, "I1"),
        (released_with_another_value, "I1"),
        (activated_by_another_account_of_its_maker, "I10"),
        (activated_by_whose_request_it_was, "I10"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_by_its_number(wrong: Any, number: str) -> None:
    seen = Seen()
    wrong(seen)
    assert number in seen.numbers()


def test_more_releases_than_uses_are_told_across_partitions() -> None:
    seen = Seen()
    seen.use()
    for _ in range(2):
        seen.settle()
        seen.release()
    assert "I2" in seen.numbers()


@pytest.mark.parametrize("name", ["rita-r", "otto-o"])
@pytest.mark.parametrize(
    ("change", "found"), [({"disabled": True}, ["I10"]), ({}, [])], ids=["gone", "there"]
)
def test_released_by_a_rule_whose_maker_or_activator_may_decide_no_more(
    monkeypatch: pytest.MonkeyPatch, name: str, change: dict[str, Any], found: list[str]
) -> None:
    seen = Seen(requesters=[], uses=None)
    seen.activate("otto")
    monkeypatch.setitem(PEOPLE, name, {**PEOPLE[name], **change})
    seen.release()
    assert [violation.invariant for violation in seen.found] == found


BY_ROLE, BY_NAME = {"roles": ["treasurer"]}, {"reviewers": ["otto-o"]}


@pytest.mark.parametrize(
    ("terms", "roles", "found"),
    [
        ({}, ["reviewer"], []),
        ({}, ["admin"], []),
        ({}, ["treasurer"], ["I10"]),
        ({}, [], ["I10"]),
        (BY_ROLE, ["treasurer"], []),
        (BY_ROLE, ["reviewer"], ["I10"]),
        (BY_ROLE, [], ["I10"]),
        (BY_NAME, [], []),
        ({"reviewers": ["rita-r"]}, ["reviewer"], ["I10"]),
        ({**BY_ROLE, "reviewers": ["rita-r"]}, ["treasurer"], []),
        ({**BY_ROLE, "reviewers": ["rita-r"]}, ["reviewer"], ["I10"]),
    ],
)
def test_released_by_a_rule_whose_activator_has_lost_what_deciding_takes(
    monkeypatch: pytest.MonkeyPatch, terms: dict[str, Any], roles: list[str], found: list[str]
) -> None:
    makers = [{"by": "rudi", "roles": ["reviewer"]}]
    seen = Seen(requesters=[], uses=None, made_by="rudi", makers=makers, terms=terms)
    seen.activate("otto")
    monkeypatch.setitem(PEOPLE, "otto-o", {**PEOPLE["otto-o"], "roles": roles})
    seen.release()
    assert [violation.invariant for violation in seen.found] == found


def test_released_by_a_rule_whose_activator_nobody_has_published_finds_nothing() -> None:
    seen = Seen(requesters=[], uses=None, terms=BY_ROLE)
    seen.activate("olga")
    seen.release()
    assert seen.found == []

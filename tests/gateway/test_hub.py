from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from gateway.live.completion import NewRow
from gateway.pushes.hub import FEW, Hub
from gateway.pushes.resyncs import Resync
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.events import holds as h
from schemas.events import rules as r
from schemas.ids import rule_uses_key
from tests.gateway.facts import (
    HELD_CALL,
    Partition,
    decided,
    held,
    key_of,
    new_live,
    proposed,
    refused,
    refused_decision,
    released,
    started,
    verdict,
)

ANNA = Actor(subject="anna", tenant="acme", project="books", roles=("reviewer",))
KEY = key_of("e1")
MANY = ("holds", "events", "executions:e1", "calls:e1/c1")


@dataclass(eq=False)
class Reader:
    """A reader that keeps what it is given."""

    actor: Actor = ANNA
    channels: set[str] = field(default_factory=set)
    messages: list[dict[str, Any]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    resyncs: int = 0
    behind: str | None = None

    def push(self, message: bytes) -> None:
        self.messages.append(orjson.loads(message))

    def hide(self, hold: HoldRow) -> None:
        self.hidden.append(hold["hold_id"])

    def resync(self, reason: Resync) -> None:
        self.resyncs += 1

    def types(self) -> list[str]:
        return [message["type"] for message in self.messages]


def _story(partition: Partition) -> None:
    partition.write(KEY, "start", started())
    partition.write(KEY, "propose", *HELD_CALL)
    partition.write(KEY, "decide", decided(), released())


def test_publish_reviewer_sees_the_hold_open_and_close() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, ["holds"])
    _story(Partition(live))
    assert reader.types() == ["tool_call_pending_review", "hold_resolved"]
    assert reader.messages[0]["arguments"] == {"amount": 5}
    assert reader.messages[1]["decision"]["decision_id"] == "d1"


def test_publish_channels_of_an_execution_and_a_call() -> None:
    live, hub = new_live()
    execution, call = Reader(), Reader()
    hub.subscribe(execution, ["executions:e1"])
    hub.subscribe(call, ["calls:e1/c1"])
    _story(Partition(live))
    assert execution.types() == [
        "execution_state_changed",
        "tool_call_pending_review",
        "tool_call_changed",
        "execution_state_changed",
        "hold_resolved",
        "tool_call_decided",
        "execution_state_changed",
    ]
    assert call.types() == [
        "tool_call_pending_review",
        "tool_call_changed",
        "hold_resolved",
        "tool_call_decided",
    ]


def test_publish_whoever_a_hold_is_taken_from_by_a_delegation_is_told_that_it_is_hidden() -> None:
    live, hub = new_live()
    ben, carl = (
        Reader(ANNA.model_copy(update={"subject": name, "roles": ("treasurer",)})) for name in ("ben", "carl")
    )
    anna = Reader()
    for reader in (anna, ben, carl):
        hub.subscribe(reader, ["holds"])
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    for to in ("ben", "carl"):
        handed = h.HoldDelegated(hold_id="h1", to=to, by="anna", roles=("reviewer",))
        partition.write(KEY, f"delegate to {to}", handed)
    partition.write(KEY, "decide", decided(), released())
    assert ben.types() == ["hold_changed"]
    assert ben.hidden == ["h1"]
    assert carl.types() == ["hold_changed", "hold_resolved"]
    assert anna.hidden == []


@pytest.mark.parametrize(("tenant", "project"), [("other", "books"), ("acme", "other")])
def test_publish_another_tenants_or_projects_reader_gets_nothing(tenant: str, project: str) -> None:
    live, hub = new_live()
    reader = Reader(ANNA.model_copy(update={"tenant": tenant, "project": project}))
    hub.subscribe(reader, MANY)
    _story(Partition(live))
    assert reader.messages == []
    assert reader.resyncs == 0


def test_publish_proposer_gets_the_decision_once_without_a_subscription() -> None:
    live, hub = new_live()
    proposer = Reader()
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    hub.expect_decision(proposer, (KEY, "c1"))
    partition.write(KEY, "decide", decided(), released())
    partition.write(KEY, "again", released())
    assert proposer.types() == ["tool_call_decided"]
    assert proposer.messages[0]["status"] == "released"


def test_publish_subscribed_proposer_gets_the_decision_once() -> None:
    live, hub = new_live()
    proposer = Reader()
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    hub.subscribe(proposer, ["calls:e1/c1"])
    hub.expect_decision(proposer, (KEY, "c1"))
    partition.write(KEY, "decide", decided(), released())
    assert proposer.types().count("tool_call_decided") == 1


def test_publish_another_agents_decision_is_not_given_to_who_was_refused() -> None:
    live, hub = new_live()
    other = Actor(subject="bot2", tenant="acme", project="books", roles=("agent",), agent="shipping")
    stranger = Reader(other)
    own = Reader(other.model_copy(update={"agent": "billing"}))
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    for reader in (stranger, own):
        hub.expect_decision(reader, (KEY, "c1"))
    partition.write(KEY, "decide", decided(), released())
    assert (stranger.messages, own.types()) == ([], ["tool_call_decided"])


def test_forget_reader_gets_nothing_more() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, MANY)
    hub.expect_decision(reader, (KEY, "c1"))
    hub.forget(reader)
    _story(Partition(live))
    assert reader.messages == []
    assert not hub._by_project
    assert not hub._proposers
    assert not hub._expected


def test_publish_row_not_at_hand_makes_its_reader_look_anew() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, ["executions:e1"])
    Partition(live).write(KEY, "decide", decided(), released())
    assert reader.resyncs > 0


def test_publish_refusals_say_nothing_of_holds_calls_and_executions() -> None:
    live, hub = new_live()
    reader, partition = Reader(), Partition(live)
    hub.subscribe(reader, MANY)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    partition.write(KEY, "early", refused_decision())
    assert reader.types()[-1:] == ["event"]
    partition.write(KEY, "decide", decided(), released())
    before = Counter(reader.types())
    partition.write(KEY, "late", refused_decision())
    partition.write(KEY, "other", refused())
    partition.write(KEY, "erase", h.SecretsErased(call_id="c1", request_id="", reason="asked", by="anna"))
    assert Counter(reader.types()) - before == {"event": 3}
    assert before["hold_resolved"] == 1
    assert reader.resyncs == 0


def test_publish_refusal_about_rows_that_are_not_at_hand_makes_nobody_look_anew() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, MANY)
    Partition(live).write(KEY, "late", refused_decision())
    assert (reader.types(), reader.resyncs) == (["event"], 0)


def test_publish_what_stands_under_a_rules_own_key_comes_on_no_channel() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, MANY)
    use = r.RuleUseReserved(
        rule_id="r1",
        reservation_id="u1",
        execution_id="e1",
        call_id="c1",
        revision=1,
        digest="d" * 64,
        number=1,
    )
    Partition(live).write(rule_uses_key("acme", "books", "r1"), "reserve", use, refused())
    assert (reader.messages, reader.resyncs) == ([], 0)


def test_publish_one_message_a_command_says_how_things_stand_after_it() -> None:
    live, hub = new_live()
    reader = Reader()
    hub.subscribe(reader, ["holds"])
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)
    partition.write(KEY, "edit", decided(), proposed(revision=2), verdict(), held(hold_id="h2"))
    assert [(m["type"], m["hold_id"], m["status"]) for m in reader.messages[1:]] == [
        ("hold_resolved", "h1", "resolved"),
        ("tool_call_pending_review", "h2", "open"),
    ]


def test_publish_grants_token_only_to_who_may_consume_it() -> None:
    live, hub = new_live(Hub(lambda row: f"token of {row['grant_id']}"))
    agent = Reader(Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing"))
    operator = Reader(ANNA.model_copy(update={"roles": ("operator",)}))
    reviewer, proposer = Reader(), Reader(agent.actor)
    for reader in (agent, operator, reviewer):
        hub.subscribe(reader, MANY)
    hub.expect_decision(proposer, (KEY, "c1"))
    _story(Partition(live))
    for reader, token in ((agent, "token of g1"), (operator, "token of g1"), (proposer, "token of g1")):
        (decided_,) = (m for m in reader.messages if m["type"] == "tool_call_decided")
        assert decided_["grant"]["token"] == token
    told = [m["grant"]["token"] for m in reviewer.messages if m["type"] == "tool_call_decided"]
    assert told == [None]
    for reader in (agent, operator, reviewer):
        assert not any("token of" in str(m) for m in reader.messages if m["type"] != "tool_call_decided")


def test_message_to_many_receivers_of_one_subject_is_charged_to_it_and_to_nobody_else() -> None:
    charged: list[tuple[tuple[str, str], float]] = []

    def charge(owner: tuple[str, str], seconds: float) -> None:
        charged.append((owner, seconds))

    live, hub = new_live(Hub(charge=charge))
    other = ANNA.model_copy(update={"subject": "other"})
    readers = [Reader() for _ in range(FEW + 1)] + [Reader(other) for _ in range(FEW)]
    for reader in readers:
        hub.subscribe(reader, ["holds"])
    _story(Partition(live))
    assert [reader.types() for reader in readers] == [["tool_call_pending_review", "hold_resolved"]] * len(
        readers
    )
    assert [owner for owner, _ in charged] == [("acme", "anna")] * 2
    assert all(seconds > 0 for _, seconds in charged)


def test_message_to_a_few_receivers_is_charged_to_nobody() -> None:
    def charge(owner: tuple[str, str], seconds: float) -> None:
        raise AssertionError(owner)

    live, hub = new_live(Hub(charge=charge))
    for _ in range(FEW):
        hub.subscribe(Reader(), ["holds"])
    _story(Partition(live))


def test_resync_tells_each_reader_of_a_channel_once() -> None:
    live, hub = new_live()
    Partition(live).write(KEY, "propose", started(), *HELD_CALL)
    hold, call = live.cache.holds.get("h1"), live.cache.calls.get((KEY, "c1"))
    inbox, of_call, other = Reader(), Reader(), Reader()
    hub.subscribe(inbox, ["holds", "executions:e1"])
    hub.subscribe(of_call, ["calls:e1/c1"])
    hub.subscribe(other, ["executions:e2"])
    hub.resync([NewRow("call", call), NewRow("hold", hold)])
    assert (inbox.resyncs, of_call.resyncs, other.resyncs) == (1, 1, 0)

"""The trust role, the views and the deciders' own partition get the same facts from every history of a run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.rows import json_value
from projections.queries.history import fold_all
from projections.tables.analytics import EVIDENCE
from schemas import commands as k
from schemas.actor import Actor
from schemas.trust import FactKind
from schemas.trust_score import CONTRARY
from services.domain.state import Call
from services.processors.attribution import OpenCalls
from services.runtime.contrary_facts import ContraryFacts
from tests.domain.steps import TESSA
from tests.domain.trusting import ALWAYS, Known, facts, world_of
from tests.domain.world import OLGA, PAY_SCHEMA, PROJECT, RITA, TENANT, World, published, rule

WORLDS, STEPS = 150, 60
CLARA = Actor(subject="clara", tenant=TENANT, project=PROJECT, roles=("cfo", "reviewer"))
PEOPLE = (RITA, TESSA, CLARA, OLGA)
POLICIES: tuple[list[dict[str, Any]], ...] = (
    [rule("p", "pay", "hold", timeout_seconds=600)],
    [rule("p", "pay", "hold", timeout_seconds=600, quorum=2)],
    [rule("other", "pay", "hold", timeout_seconds=600, roles=["cfo"])],
    [rule("p", "pay", "hold", timeout_seconds=600, exclude_requester=True)],
    [rule("p", "pay", "allow")],
)
# Offset, fact, class and whose word it is.
Fact = tuple[int, str, str, tuple[str, ...]]


class Walk:
    """Random things that agents and people do in one run."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.world = world_of(
            Known(facts()), {**ALWAYS, "sample_rate": rng.choice([0, 0.5, 1])}, rng.choice(POLICIES)
        )
        self.world.partition.fresh_seed = lambda: f"{rng.getrandbits(128):032x}"
        self.calls = 0

    def go(self, steps: int) -> World:
        for step in range(steps):
            self.world.later(self.rng.choice([0, 1, 5, 5, 100]))
            if self.world.key() not in self.world.partition.live:
                break
            self._step(step)
        return self.world

    def _step(self, step: int) -> None:
        chance, ask = self.rng.random(), self.world.ask
        calls = list(self.world.state().calls.values())
        if chance < 0.2 or not calls:
            self.calls += 1
            amount = self.rng.choice([5, 50])
            ask(k.ProposeToolCall(call_id=f"c{self.calls}", tool="pay", arguments=f'{{"amount":{amount}}}'))
        elif chance < 0.5:
            self._decide()
        elif chance < 0.85:
            self._run(self.rng.choice(calls), step)
        elif chance < 0.93:
            self._publish(step)
        elif chance < 0.955:
            ask(k.RevokeGrant(call_id=self.rng.choice(calls).call_id, reason="wrong"), OLGA)
        elif chance < 0.975:
            call_id = self.rng.choice(calls).call_id
            ask(k.ReportImpact(call_id=call_id, reason="harm"), self.rng.choice(PEOPLE))
        else:
            ask(k.CancelExecution(reason="enough"), OLGA)

    def _decide(self) -> None:
        holds = [hold for hold in self.world.state().holds.values() if hold.status == "open"]
        if not holds:
            return
        hold = self.rng.choice(holds)
        decision = self.rng.choice(["approve", "approve", "edit", "reject", "respond"])
        content: dict[str, Any] = {}
        if decision == "edit":
            # One of them is what the call has already.
            content["edited_arguments"] = f'{{"amount":{self.rng.choice([5, 6, 60])}}}'
        elif decision == "respond":
            content["value"] = '"no"'
        command = k.DecideHold(hold_id=hold.hold_id, decision=decision, digest=hold.digest, **content)
        self.world.ask(command, self.rng.choice(PEOPLE))

    def _run(self, call: Call, step: int) -> None:
        if not call.attempt_id or self.rng.random() < 0.3:
            self.world.ask(k.ConsumeGrant(call_id=call.call_id, digest=call.digest, attempt_id=f"a{step}"))
            return
        outcome = self.rng.choice(["succeeded", "failed", "unknown", "unknown"])
        self.world.ask(
            k.ReportResult(call_id=call.call_id, attempt_id=call.attempt_id, outcome=outcome, error="e")
        )

    def _publish(self, step: int) -> None:
        definitions = self.world.definitions
        if self.rng.random() < 0.6:
            self.world.definitions = published(definitions, self.rng.choice(POLICIES), adaptive=ALWAYS)
        else:
            tool = {"name": "pay", "inputSchema": PAY_SCHEMA, "description": str(step)}
            self.world.definitions = published(definitions, None, [tool])


def of_the_trust_role(world: World) -> Iterator[Fact]:
    followed = OpenCalls()
    for event in world.events:
        found = followed.follow(event)
        if found is not None and found.fact is not None and found.call.trust_class:
            yield event.offset, found.fact, found.call.trust_class, found.by


def of_the_views(world: World) -> Iterator[Fact]:
    for number, event in enumerate(world.events):
        made = EFFECTS[type(event.body)].rows
        if made is None:
            continue
        state = fold_all(world.events[:number])
        call = state.calls.get(getattr(event.body, "call_id", ""))
        hold = state.holds.get(getattr(event.body, "hold_id", ""))
        for one in made(event.body, event, Before(state.execution, call, hold)):
            if one.table is EVIDENCE and one.row["fact"] is not None:
                row = one.row
                yield event.offset, row["fact"], row["trust_class"], tuple(json_value(row["words_of"]))


def test_trust_role_views_and_partition_find_the_same_facts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[int, str]] = []
    note = ContraryFacts.note

    def noting(self: ContraryFacts, name: Any, contrary: Any) -> None:
        noted.append((contrary.offset, name[-1]))
        note(self, name, contrary)

    monkeypatch.setattr(ContraryFacts, "note", noting)
    kinds: set[str] = set()
    for number in range(WORLDS):
        noted.clear()
        world = Walk(random.Random(f"{seed}/{number}")).go(STEPS)
        counted = list(of_the_trust_role(world))
        assert counted == list(of_the_views(world)), number
        contrary = [(offset, name) for offset, kind, name, _ in counted if kind in CONTRARY]
        assert contrary == noted, number
        kinds |= {kind for _, kind, _, _ in counted}
    assert kinds == set(get_args(FactKind))

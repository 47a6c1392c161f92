"""The checker follows the same samples as the deciders: it finds no release beside one in any history of a run."""

from __future__ import annotations

import random
from collections import Counter

from ops.checker import check
from schemas import commands as k
from schemas.adaptive import outcome_from_text
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.record import EventMeta, RawRecord
from tests.domain.trusting import ALWAYS
from tests.domain.world import OLGA, START_MS, World, published
from tests.ops.checker.builder import EVENTS
from tests.ops.checker.wrongs_of_trust import SAMPLED
from tests.simulation.test_trust_agreement import POLICIES, Walk

WORLDS, STEPS = 60, 60
NUDGE = k.ExpireDue(subject_id="", deadline_at_ms=0, attempt=1)


class WalkWithPauses(Walk):
    """The same, mostly by a policy that lets trust answer, in a run that people pause and go on with."""

    def _step(self, step: int) -> None:
        chance = self.rng.random()
        if chance < 0.1:
            self.world.ask(k.PauseExecution(), OLGA)
            for _ in range(self.rng.randrange(5)):
                self._propose()
        elif chance < 0.2:
            self.world.ask(k.ResumeExecution(), OLGA)
        elif chance < 0.3:
            self.world.ask(NUDGE)
        elif chance < 0.4:
            self._propose()
        else:
            super()._step(step)

    def _propose(self) -> None:
        self.calls += 1
        self.world.ask(k.ProposeToolCall(call_id=f"c{self.calls}", tool="pay", arguments='{"amount":5}'))

    def _publish(self, step: int) -> None:
        block = {**ALWAYS, "sample_rate": self.rng.choice([0, 0.3, 0.5])}
        rules = self.rng.choice((POLICIES[0], POLICIES[0], self.rng.choice(POLICIES)))
        self.world.definitions = published(self.world.definitions, rules, adaptive=block)


def recorded(world: World) -> list[RawRecord]:
    """The events as a partition has them, after the claim under which they were written."""
    claim = WriterClaimed(claim_id="c", after=-1, worker="w")
    first = event_record(claim, EventMeta("c", START_MS, -1, 0, "c", "", ""), b"_log/0")
    records = [first, *(event_record(event.body, event.meta, event.key) for event in world.events)]
    return [RawRecord(0, offset, START_MS, *record) for offset, record in enumerate(records)]


def test_checker_finds_no_release_beside_a_sample_in_what_deciders_write(seed: int) -> None:
    results: Counter[str] = Counter()
    for number in range(WORLDS):
        world = WalkWithPauses(random.Random(f"{seed}/{number}")).go(STEPS)
        found = [one.what for one in check({EVENTS: recorded(world)})]
        assert any("by trust" in what for what in found) == any(
            outcome == "released" for outcome in outcomes(world)
        )
        assert SAMPLED not in found, number
        results.update(outcomes(world))
    assert min(results[name] for name in ("released", "sampled", "asked")) >= WORLDS // 2, results


def outcomes(world: World) -> list[str]:
    verdicts = [event.body for event in world.events if isinstance(event.body, PolicyVerdictIssued)]
    return [outcome_from_text(body.adaptive).result for body in verdicts if body.adaptive is not None]

"""What became of the holds for which trust was weighed, on both databases; and the facts behind a class."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from projections.folds.approval import approval_json
from projections.folds.trust_classes import class_json, trust_classes
from projections.queries.approval import waiting_samples, weighed_holds
from projections.queries.moment import Moment
from projections.queries.trust import class_facts
from projections.queries.views import Views, open_views
from projections.store.sqlite import DIALECT, connect
from projections.store.urls import open_view
from schemas.adaptive import AdaptiveOutcome, Result, outcome_to_text
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from schemas.trust_score import KEPT_MAX, lower_bound
from tests.projections.filling import Filler
from tests.projections.histories import (
    START_MS,
    LogBuilder,
    consumed,
    decided,
    held,
    judged,
    key_of,
    proposed,
    released,
    started,
)

OURS = ("acme", "main")
CLASS = "amount=1e0&risk=money"
LATER_MS = START_MS + 86_400_000


def weighed_call(key: bytes, call_id: str, result: Result, decision: str | None = None) -> list[Message]:
    """A call for which trust was weighed, and what became of it."""
    call = proposed(call_id, {"amount": 5})
    outcome = AdaptiveOutcome(result, "because", 0.95, 0.9, 0.0, 0.05, "00", 0.5)
    effect: c.Effect = "allow" if result == "released" else "hold"
    verdict = judged(call, effect).model_copy(
        update={"trust_class": CLASS, "adaptive": outcome_to_text(outcome)}
    )
    if result == "released":
        return [call, verdict, released(call, released_by="policy")]
    hold = held(key, call)
    return [call, verdict, hold, *([] if decision is None else [decided(hold, decision)])]


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    builder = LogBuilder(4).claim_all()
    for tenant in ("acme", "other"):
        for run in range(4):
            key = key_of(f"run-{run}", tenant)
            builder.append(key, [started()])
            builder.append(key, weighed_call(key, "asked", "asked", "approve"))
            builder.append(key, weighed_call(key, "sampled", "sampled", ("approve", "reject")[run == 0]))
            builder.append(key, weighed_call(key, "open", "sampled"))
            builder.append(key, weighed_call(key, "released", "released"))
            plain = proposed("plain")
            builder.append(key, [plain, judged(plain)])
    key = key_of("run-1")
    call = proposed("released", {"amount": 5})
    builder.append(key, [consumed(call)])
    harm = c.ImpactReported(
        call_id="released",
        revision=1,
        agent=call.agent,
        tool=call.tool,
        trust_class=CLASS,
        reason="no",
        by="ann",
    )
    builder.append(key, [harm])
    builder.append(key_of("run-2"), [c.GrantRevoked(call_id="released", revision=1, reason="no", by="ann")])
    filler.fill(builder)
    opened = open_views(database_url)
    yield opened
    opened.close()


def test_calls_are_counted_by_what_became_of_them_and_the_sample_by_what_people_said(views: Views) -> None:
    found: dict[str, Any] = views.read_now(
        lambda now: approval_json(weighed_holds(now, *OURS, since_ms=START_MS))
    )[0]

    (agent,) = found["agents"]
    assert (found["held"], found["released"], found["sampled"], found["asked"]) == (16, 4, 8, 4)
    assert (found["interruptions"], found["saved"]) == (12, 0.25)
    assert {name: agent[name] for name in ("held", "saved")} == {"held": 16, "saved": 0.25}
    sample, regret = found["sample"], found["regret"]
    assert (sample["decided"], sample["contrary"], sample["share"]) == (4, 1, 0.25)
    assert (sample["lower"], sample["upper"]) == (0.006309, 0.805880)
    assert (sample["withdrawn"], sample["expired"], sample["waiting"]) == (0, 0, 4)
    assert (regret["released"], regret["revoked"], regret["harmful"], regret["share"]) == (4, 1, 1, 0.5)


def test_settling_a_sampled_call_in_doubt_is_no_word_on_the_sample(database_url: str, filler: Filler) -> None:
    builder, key = LogBuilder(4).claim_all(), key_of("run-1")
    builder.append(key, [started(), *weighed_call(key, "sampled", "sampled", "approve")])
    call = proposed("sampled", {"amount": 5})
    doubt = held(key, call).model_copy(update={"hold_id": "in-doubt", "cause": "outcome_unknown"})
    builder.append(key, [doubt, decided(doubt, "reject").model_copy(update={"decision_id": "settled"})])
    filler.fill(builder)
    views = open_views(database_url)
    found: dict[str, Any] = views.read_now(
        lambda now: approval_json(weighed_holds(now, *OURS, since_ms=START_MS))
    )[0]
    views.close()

    assert (found["sample"]["decided"], found["sample"]["contrary"]) == (1, 0)


def test_sampled_calls_that_nobody_decided_are_counted_by_how_they_ended(
    database_url: str, filler: Filler
) -> None:
    builder, key = LogBuilder(4).claim_all(), key_of("run-1")
    builder.append(key, [started()])
    for call_id in ("withdrawn", "approved", "expired", "waits"):
        builder.append(
            key, weighed_call(key, call_id, "sampled", "approve" if call_id == "approved" else None)
        )
    holds = {call_id: held(key, proposed(call_id, {"amount": 5})) for call_id in ("withdrawn", "expired")}
    late = holds["expired"].hold_id
    builder.append(key, [h.HoldExpired(hold_id=late, on_timeout="deny")])
    builder.append(
        key, [c.ToolCallDenied(call_id="expired", revision=1, cause="timeout", feedback="", decision_id="")]
    )
    builder.append(key, [h.HoldCancelled(hold_id=holds["withdrawn"].hold_id, reason="over")])
    # One that was approved, and given up before it ran, was decided.
    builder.append(
        key, [c.ToolCallCancelled(call_id=name, reason="over") for name in ("withdrawn", "approved")]
    )
    filler.fill(builder)
    views = open_views(database_url)
    sample = views.read_now(lambda now: approval_json(weighed_holds(now, *OURS, since_ms=START_MS)))[0][
        "sample"
    ]
    views.close()

    counts = {name: sample[name] for name in ("decided", "contrary", "withdrawn", "expired", "waiting")}
    assert counts == {"decided": 1, "contrary": 0, "withdrawn": 1, "expired": 1, "waiting": 1}


def test_period_and_agent_limit_the_calls(views: Views) -> None:
    later, other = views.read_now(
        lambda now: [
            approval_json(weighed_holds(now, *OURS, since_ms=LATER_MS)),
            approval_json(weighed_holds(now, *OURS, since_ms=START_MS, agent="nobody")),
        ]
    )[0]

    for found in (later, other):
        assert (found["held"], found["saved"], found["agents"]) == (0, None, [])
        assert (found["sample"]["share"], found["sample"]["lower"], found["sample"]["upper"]) == (None, 0, 1)


class _Steps:
    """A moment of a SQLite view that counts the steps of SQLite's machine, in hundreds: a measure without a clock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.taken = 0
        connection.set_progress_handler(self._step, 100)
        self.moment = Moment(DIALECT, lambda text, values: connection.execute(text, values).fetchall(), _none)

    def _step(self) -> int:
        self.taken += 1
        return 0


def _none(text: str, values: Any) -> Any:
    raise AssertionError(f"nothing is read row by row here: {text}")


def _steps_for(path: Path, calls: int) -> tuple[int, int]:
    """The steps of both questions about this many sampled calls, a third of them decided."""
    builder = LogBuilder(1).claim_all()
    for number in range(calls):
        key = key_of(f"run-{number}")
        said = "approve" if number % 3 == 0 else None
        builder.append(key, [started(), *weighed_call(key, "c", "sampled", said)])
    store = open_view(f"sqlite:///{path}")
    Filler(store).fill(builder)
    store.close()
    with closing(connect(path)) as connection:
        steps = _Steps(connection)
        found = weighed_holds(steps.moment, *OURS, since_ms=START_MS)
        counting = steps.taken
        waiting = waiting_samples(steps.moment, *OURS, proposed("x").agent)
    assert found.sampled == {"approve": (calls + 2) // 3}
    assert len(waiting) == calls
    return counting, steps.taken - counting


def test_the_work_of_counting_grows_with_the_calls_and_not_with_their_square(tmp_path: Path) -> None:
    few, many = (_steps_for(tmp_path / f"{calls}.db", calls) for calls in (300, 900))

    for once, thrice in zip(few, many, strict=True):
        assert 0 < thrice < 5 * once


def test_facts_of_a_class_are_those_that_people_made_as_they_were_then(views: Views) -> None:
    agent = proposed("x").agent

    def classes(**more: Any) -> list[dict[str, Any]]:
        rows = views.read_now(lambda now: class_facts(now, *OURS, agent, now_ms=LATER_MS, **more))[0]
        found = trust_classes(rows, LATER_MS, lambda fact: False)
        return [class_json(one, LATER_MS, lambda fact: False, with_facts=True) for one in found]

    (found,) = classes()
    kinds = sorted(fact["kind"] for fact in found["evidence"])
    assert kinds == ["approval"] * 7 + ["impact", "rejection", "revocation"]
    assert (found["trust_class"], found["facts"]) == (CLASS, 10)
    assert found["lower_bound"] == lower_bound(found["raising"], found["lowering"])
    assert sum(fact["raising"] for fact in found["evidence"]) == found["raising"]
    assert classes(tool="another") == classes(through={}) == []
    first = min(found["evidence"], key=lambda fact: (fact["partition"], fact["offset"]))
    (only,) = classes(through={first["partition"]: first["offset"]})
    assert [fact["offset"] for fact in only["evidence"]] == [first["offset"]]


def test_of_very_many_facts_the_newest_of_each_direction_count(database_url: str, filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    for number in range(KEPT_MAX + 9):
        key = key_of(f"run-{number}")
        builder.append(key, [started()])
        builder.append(key, weighed_call(key, "c", "asked", "edit" if number == 0 else "approve"))
    filler.fill(builder)
    views = open_views(database_url)
    try:
        rows = views.read_now(lambda now: class_facts(now, *OURS, proposed("x").agent, now_ms=LATER_MS))[0]
    finally:
        views.close()
    assert [row["fact"] for row in rows] == ["approval"] * KEPT_MAX

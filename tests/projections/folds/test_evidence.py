"""The rows of evidence: one for each fact that says how an agent uses a tool, none for what says nothing of it."""

from __future__ import annotations

import pytest

from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.rows import json_text
from projections.queries.history import fold_all
from projections.tables.analytics import EVIDENCE, EvidenceRow
from schemas.adaptive import AdaptiveOutcome, outcome_to_text
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from tests.projections.folding import KEY, events_of
from tests.projections.histories import (
    AGENT,
    consumed,
    decided,
    failed,
    held,
    judged,
    proposed,
    released,
    started,
    succeeded,
)

CALL = proposed("c1", {"amount": 5})
HOLD = held(KEY, CALL)
HELD: list[Message] = [started(), CALL, judged(CALL), HOLD]
RUNNING: list[Message] = [
    started(),
    CALL,
    judged(CALL, "allow"),
    released(CALL, released_by="policy"),
    consumed(CALL),
]


def revoked(reason: str = "wrong") -> c.GrantRevoked:
    return c.GrantRevoked(call_id="c1", revision=1, reason=reason, by="ann@acme")


def evidence_of(bodies: list[Message]) -> list[EvidenceRow]:
    """The rows of evidence that the last body makes, after the others."""
    *earlier, last = events_of(bodies)
    state = fold_all(earlier)
    before = Before(state.execution, state.calls.get("c1"), state.holds.get(HOLD.hold_id))
    rows = EFFECTS[type(last.body)].rows
    made = rows(last.body, last, before) if rows is not None else ()
    return [one.row for one in made if one.table is EVIDENCE]


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([*HELD, decided(HOLD)], "approval"),
        ([*HELD, decided(HOLD, "edit", edited_arguments='{"amount":4}')], "edit"),
        ([*HELD, decided(HOLD, "reject")], "rejection"),
        ([*HELD, decided(HOLD, "respond")], "rejection"),
        ([*RUNNING, succeeded(CALL)], "success"),
        ([*RUNNING, failed(CALL)], "failure"),
    ],
)
def test_fact_is_one_row_that_names_agent_and_tool(history: list[Message], kind: str) -> None:
    (row,) = evidence_of(history)
    assert (row["kind"], row["agent"], row["tool"], row["call_id"]) == (kind, AGENT, CALL.tool, "c1")
    assert row["log_offset"] == len(history)


LOST = c.ToolCallOutcomeUnknown(call_id="c1", attempt_id="a", reason="gone")
CLASS = "amount=1e0&risk=money"
SAMPLED = outcome_to_text(AdaptiveOutcome("sampled", "", 0.95, 0.9, 0.0, 1.0, "00", 0.5))


def in_class(bodies: list[Message], adaptive: str | None = None) -> list[Message]:
    """The same history, with a class in each verdict."""
    changed = {"trust_class": CLASS, "adaptive": adaptive}
    return [
        body.model_copy(update=changed) if isinstance(body, c.PolicyVerdictIssued) else body
        for body in bodies
    ]


@pytest.mark.parametrize(
    ("history", "adaptive", "fact", "by"),
    [
        ([*HELD, decided(HOLD)], None, "approval", ["ann@acme"]),
        (
            [*HELD, decided(HOLD, resolves=False, by="tess"), decided(HOLD)],
            None,
            "approval",
            ["tess", "ann@acme"],
        ),
        ([*HELD, decided(HOLD, "edit", edited_arguments='{"amount":4}')], None, "edit", ["ann@acme"]),
        (
            [*HELD, decided(HOLD, "edit", edited_arguments='{"amount":4}')],
            SAMPLED,
            "correction",
            ["ann@acme"],
        ),
        ([*HELD, decided(HOLD, "respond")], None, "rejection", ["ann@acme"]),
        ([*RUNNING, failed(CALL)], None, "failure", []),
        ([*RUNNING[:-1], revoked()], None, "revocation", ["ann@acme"]),
    ],
)
def test_fact_counts_for_the_class_of_the_call(
    history: list[Message], adaptive: str | None, fact: str, by: list[str]
) -> None:
    (row,) = evidence_of(in_class(history, adaptive))
    assert (row["trust_class"], row["fact"], row["words_of"]) == (CLASS, fact, json_text(by))
    assert row["requester"] == CALL.by


@pytest.mark.parametrize("history", [[*RUNNING, succeeded(CALL)], [*RUNNING, LOST]])
def test_outcome_that_people_did_not_decide_counts_for_no_class(history: list[Message]) -> None:
    (row,) = evidence_of(in_class(history))
    assert (row["trust_class"], row["fact"], row["words_of"], row["requester"]) == (None, None, None, None)


def test_release_that_expired_is_no_row() -> None:
    assert evidence_of(in_class([*RUNNING[:-1], revoked("expired")])) == []


@pytest.mark.parametrize(
    "history",
    [
        HELD,
        RUNNING,
        [*HELD, decided(HOLD, resolves=False)],
        [*HELD, h.HoldExpired(hold_id=HOLD.hold_id, on_timeout="deny")],
        [*RUNNING, succeeded(CALL), failed(CALL)],
    ],
    ids=["asked", "let go", "one vote of several", "nobody decided", "a second outcome"],
)
def test_what_says_nothing_of_the_agent_is_no_row(history: list[Message]) -> None:
    assert evidence_of(history) == []

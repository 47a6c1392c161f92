"""A backtest of a policy that judges nothing says so, and is no reason to publish it."""

from __future__ import annotations

from typing import Any

import pytest

from ops.backtest.beside import warnings_beside
from ops.backtest.command import EXIT_UNJUDGED, _code
from ops.backtest.found import Found
from ops.backtest.history import Candidate
from ops.backtest.html import page
from ops.backtest.partition import Window
from ops.backtest.report import Report
from ops.backtest.run import Question, planned
from ops.backtest.telling import json_of, tell
from schemas.policy_document import policy_from_value
from tests.domain.world import RULES, TENANT
from tests.ops.backtest.past import Past, policy

DENIES = {"id": "all", "match": {"tools": ["*"]}, "then": "deny"}


def past() -> Past:
    made = Past()
    made.tools()
    made.policy(policy(*RULES))
    made.start()
    made.propose("read", "a")
    made.propose("read", "b")
    return made


def reported(made: Past, document: dict[str, Any], **more: Any) -> Report:
    found: Found = made.against(document)
    return Report(Candidate(policy_from_value(document), TENANT), Window(), found, frozenset(), 1.0, **more)


@pytest.mark.parametrize(
    "document",
    [policy(DENIES) | {"policy": "pp"}, policy(DENIES, scope={"agent": "bto-*"})],
    ids=["name", "scope"],
)
def test_policy_that_judges_no_verdict_is_not_published(
    document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made = past()
    if document["policy"] == "p":
        # The policy in force stays, under another name.
        made.policy({**policy(*RULES), "policy": "a"})
    report = reported(made, document)

    assert (report.found.judged, report.found.by_candidate, report.is_ok) == (2, 0, False)
    assert _code(report) == EXIT_UNJUDGED
    assert "nothing is known of it" in capsys.readouterr().err
    tell(report)
    told = " ".join(capsys.readouterr().out.split())
    assert "the candidate judged 0 of 2 verdicts" in told
    assert "the candidate judged no verdict" in page(report)
    assert json_of(report)["by_candidate"] == 0
    accepted = report._replace(accepts_unjudged=True)
    assert (_code(accepted), accepted.is_ok) == (0, True)


def test_policy_that_judges_some_verdicts_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    made = past()
    made.policy({**policy(*RULES, scope={"agent": "bot"}), "policy": "own"})
    made.propose("read", "c")
    report = reported(made, policy(DENIES))

    assert (report.share, _code(report)) == (
        "the candidate judged 2 of 3 verdicts: other policies judged the others, or none did",
        0,
    )


async def test_warnings_are_those_beside_what_is_published() -> None:
    made = past()
    never = {"id": "typo", "match": {"tools": ["raed"]}, "then": "deny"}
    question = Question(Candidate(policy_from_value(policy(never) | {"policy": "pp"}), TENANT))
    plan = await planned(made.log, question)

    told = " | ".join(one.message for one in warnings_beside(plan.history, plan.question.candidate))

    assert "read" in told
    assert "wins as a whole" in told

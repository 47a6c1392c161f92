"""docs/analysis.md: its queries as they stand on the page, over files, SQLite and PostgreSQL, and what they find."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import psycopg
import pytest

from ops.export.star import OF_VIEWS
from projections.tables.trust_days import TRUST_DAYS
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.headers import read_event
from schemas.record import Event
from schemas.topics import DAY_MS
from tests.ops.export.starred import (
    OF_ALL,
    OF_FILES,
    PAGE,
    Ask,
    export_of,
    over_files,
    over_views,
    plain,
    view_of,
)
from tests.projections.histories import PROJECT, START_MS, TENANT
from tests.projections.season import BESIDE, DAYS, people, two_projects

NOW_MS = START_MS + DAYS * DAY_MS
LOG = two_projects()
PROJECTS = {PROJECT, BESIDE}
QUESTIONS = OF_ALL | OF_FILES


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `views.sqlite` of the season and an export of it."""
    root = tmp_path_factory.mktemp("season")
    view_of(f"sqlite:///{root}/views.sqlite", LOG, people())
    asyncio.run(export_of(LOG, f"sqlite:///{root}/views.sqlite", root / "placet-export", NOW_MS))
    return root


@pytest.fixture
def files(home: Path) -> Iterator[Ask]:
    yield from over_files(home / "placet-export")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def views(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Ask]:
    if request.param == "sqlite":
        yield from over_views(home / "views.sqlite", tmp_path)
        return
    url, schema = request.getfixturevalue("postgres_url"), f"v{uuid.uuid4().hex[:10]}"
    view_of(f"{url}?schema={schema}", LOG, people())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}".encode())
        yield lambda text: plain(connection.execute(text.encode()).fetchall())


def events() -> list[Event]:
    found = [read_event(raw) for records in LOG.records for raw in records if raw.key[:1] != b"_"]
    return sorted(found, key=lambda event: event.meta.at_ms)


def bodies(kind: type[Any]) -> list[Any]:
    return [event.body for event in events() if isinstance(event.body, kind)]


def placed(kind: type[Any]) -> list[tuple[str, Any]]:
    """Bodies, each with the project of its event."""
    return [
        (event.key.decode().split("/")[1], event.body) for event in events() if isinstance(event.body, kind)
    ]


def policy_decisions() -> list[tuple[str, Any]]:
    """The words that ended a hold which a policy asked for."""
    causes = {hold.hold_id: hold.cause for hold in bodies(h.HoldOpened)}
    return [
        one for one in placed(h.DecisionRecorded) if one[1].resolves and causes[one[1].hold_id] == "policy"
    ]


def test_page_asks_fifteen_questions_in_order() -> None:
    titles = re.findall(r"^## \d+\. (.*)$", PAGE, re.MULTILINE)
    assert sorted(titles) == sorted(QUESTIONS)
    assert len(titles) == 15


@pytest.mark.parametrize("title", OF_ALL)
def test_question_has_the_same_answer_in_the_files_and_in_the_views(
    title: str, files: Ask, views: Ask
) -> None:
    found = files(OF_ALL[title])
    assert found == views(OF_ALL[title])
    assert bool(found) == (title not in NOTHING_IN_A_SEASON)


# A season has no standing rule of its own in the definitions.
NOTHING_IN_A_SEASON = {"How many interruptions did each standing rule save?"}


@pytest.mark.parametrize("title", OF_FILES)
def test_question_to_the_files_has_an_answer(title: str, files: Ask) -> None:
    assert files(OF_FILES[title])


def test_calls_and_decisions_are_those_of_the_log(files: Ask) -> None:
    first = [(project, one) for project, one in placed(c.ToolCallProposed) if one.revision == 1]
    calls = Counter((TENANT, project, one.agent, one.tool) for project, one in first)
    found = files(OF_ALL["What became of the calls of each agent?"])
    assert {row[:4]: row[4] for row in found} == calls
    assert len(found) == len(calls)
    without = sum(one.released_by == "rule" for one in bodies(c.ToolCallReleased))
    assert sum(row[5] for row in found) == without > 0
    rejected = sum(one.decision == "reject" for one in bodies(h.DecisionRecorded))
    assert sum(row[7] for row in found) == rejected > 0

    opened = {one.body.hold_id: one.meta.at_ms for one in events() if isinstance(one.body, h.HoldOpened)}
    ends = {
        one.body.decision_id: one.meta.at_ms for one in events() if isinstance(one.body, h.DecisionRecorded)
    }
    waits = [ends[one.decision_id] - opened[one.hold_id] for _, one in policy_decisions()]
    (row,) = files(OF_ALL["How long do calls wait for people, by risk?"])
    assert row[:4] == (TENANT, "medium", len(waits), round(statistics.median(waits) / 1000, 6))


def test_reviewers_are_counted_as_in_the_log(files: Ask) -> None:
    words: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for project, one in placed(h.DecisionRecorded):
        if one.decision == "approve":
            words[project, one.by].append(one.dwell_ms)
    expected = set()
    for (project, subject), dwelt in words.items():
        measured = [dwell for dwell in dwelt if dwell is not None]
        quick = sum(dwell < 3_000 for dwell in measured)
        if measured:
            share = round(quick / len(measured), 6)
            expected.add((TENANT, project, subject, len(dwelt), len(measured), quick, share, 0, 0))
    assert set(files(OF_ALL["Who approves faster than anyone can read?"])) == expected


def test_rules_are_counted_as_in_the_log_by_project_and_version_of_their_policy(files: Ask) -> None:
    cited = Counter(
        (project, rule, one.effect) for project, one in placed(c.PolicyVerdictIssued) for rule in one.rules
    )
    for _, project, rule, kind, verdicts, *effects in files(OF_ALL["Which rules allow, hold and deny?"]):
        assert [cited[project, rule, effect] for effect in ("allow", "hold", "deny")] == effects
        assert verdicts == sum(effects)
        assert kind == ("standing" if rule.startswith("rule:") else "policy")
    versions = files(OF_ALL["Did a new version of a policy ask people more often?"])
    assert [row[1:4] for row in versions] == [
        (project, "production", version) for project in sorted(PROJECTS) for version in (3, 4)
    ]


def rule_decisions() -> Counter[tuple[str, str, str]]:
    """Decisions by project, rule and subject: the rule of the verdict with which the hold was opened."""
    newest: dict[bytes, str] = {}
    of_hold: dict[str, str] = {}
    found: Counter[tuple[str, str, str]] = Counter()
    for event in events():
        body = event.body
        if isinstance(body, c.PolicyVerdictIssued) and body.effect == "hold":
            (newest[event.key],) = body.rules
        elif isinstance(body, h.HoldOpened) and body.cause == "policy":
            of_hold[body.hold_id] = newest[event.key]
        elif isinstance(body, h.DecisionRecorded) and body.resolves and body.hold_id in of_hold:
            found[event.key.decode().split("/")[1], of_hold[body.hold_id], body.by] += 1
    return found


def test_decision_counts_once_for_the_rule_that_asked_also_if_its_call_was_judged_again(files: Ask) -> None:
    found = files(OF_ALL["Do people who decide on the same rule decide alike?"])
    assert {row[1:4]: row[4] for row in found} == rule_decisions()
    assert all(0 <= share <= 1 for *_, own, mean in found for share in (own, mean))
    assert sum(row[4] for row in found) == len(policy_decisions())

    by_rule = files(OF_ALL["Which rules ask people who then always approve?"])
    words = {project: [one for place, one in policy_decisions() if place == project] for project in PROJECTS}
    assert {tuple(row[1:]) for row in by_rule} == {
        (
            project,
            "production",
            "payments-over-limit",
            len(said),
            round(sum(one.decision == "approve" for one in said) / len(said), 6),
        )
        for project, said in words.items()
    }


def test_share_of_edits_is_of_those_in_the_same_project(files: Ask) -> None:
    edits = Counter(project for project, one in placed(h.DecisionRecorded) if one.decision == "edit")
    found = files(OF_ALL["Which argument do people correct most, and in how many of the edits?"])
    assert {row[1] for row in found} == edits.keys() == PROJECTS
    for _, project, _, _, count, share in found:
        assert share == round(count / edits[project], 6) <= 1


def test_two_accounts_of_one_person_are_one_person(files: Ask) -> None:
    (row,) = files(OF_ALL["Which holds took more than one person?"])
    assert (row[4], row[5]) == (2, 2)
    run = files(f"SELECT execution_id FROM holds WHERE hold_id = '{row[2]}'")
    assert run == [("by-two-people",)]
    other = files("SELECT DISTINCT subject, person FROM votes WHERE execution_id = 'by-one-person'")
    assert set(other) == {("ann@acme", "ann"), ("ann@home", "ann")}


def test_trust_is_of_each_project_by_itself(files: Ask) -> None:
    months = files(OF_FILES["How far is each class of calls trusted, at the end of each month?"])
    places = [row[:6] for row in months]
    assert len(places) == len(set(places))
    expected = files(
        "SELECT DISTINCT tenant, project, agent, tool, trust_class, strftime(day::DATE, '%Y-%m') FROM trust_days"
    )
    assert set(places) == set(expected)
    assert {row[1] for row in months} == PROJECTS
    falls = files(OF_FILES["On which days did trust fall, and what had people said?"])
    days = [row[:6] for row in falls]
    assert len(days) == len(set(days))
    assert {row[1] for row in falls} == PROJECTS


def test_patch_of_an_edit_makes_what_was_approved_of_what_the_agent_proposed(files: Ask) -> None:
    rows = files("SELECT proposed_arguments, arguments, patch, operations FROM edit_patches")
    assert len(rows) == sum(one.decision == "edit" for one in bodies(h.DecisionRecorded)) > 0
    for proposed, arguments, patch, operations in rows:
        made = jsonpatch.JsonPatch.from_string(patch).apply(json.loads(proposed))
        assert made == json.loads(arguments)
        assert len(json.loads(patch)) == operations


def test_falls_of_trust_are_on_days_of_contrary_words(files: Ask) -> None:
    contrary = {"rejection", "correction", "withdrawal", "revocation", "impact"}
    for *_, change, said, beside in files(
        OF_FILES["On which days did trust fall, and what had people said?"]
    ):
        assert change < -0.1
        own, others = (set((facts or "").split(", ")) - {""} for facts in (said, beside))
        assert others <= contrary
        assert (contrary | {"failure", "edit"}) & own or others


def test_page_names_every_table_of_the_files_and_no_other() -> None:
    named = set(re.findall(r"^\| \**`(\w+)`", PAGE, re.MULTILINE))
    beside = {"requests", "lost_races", "audit", "trust"}
    assert named | beside == {offer.name for offer in (*OF_VIEWS, TRUST_DAYS)}
    assert all(f"`{name}`" in PAGE for name in beside)

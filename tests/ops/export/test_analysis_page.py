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
from tests.projections.histories import START_MS
from tests.projections.season import DAYS, people, season

NOW_MS = START_MS + DAYS * DAY_MS
LOG = season()
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


# A season has no standing rule of its own in the definitions, and asks one person each time.
NOTHING_IN_A_SEASON = {
    "How many interruptions did each standing rule save?",
    "Which holds took more than one person?",
}


@pytest.mark.parametrize("title", OF_FILES)
def test_question_to_the_files_has_an_answer(title: str, files: Ask) -> None:
    assert files(OF_FILES[title])


def test_calls_and_decisions_are_those_of_the_log(files: Ask) -> None:
    calls = Counter((one.agent, one.tool) for one in bodies(c.ToolCallProposed) if one.revision == 1)
    found = files(OF_ALL["What became of the calls of each agent?"])
    assert {row[:2]: row[2] for row in found} == calls
    without = sum(one.released_by == "rule" for one in bodies(c.ToolCallReleased))
    assert sum(row[3] for row in found) == without > 0
    rejected = sum(one.decision == "reject" for one in bodies(h.DecisionRecorded))
    assert sum(row[5] for row in found) == rejected > 0

    opened = {one.body.hold_id: one.meta.at_ms for one in events() if isinstance(one.body, h.HoldOpened)}
    waits = [
        one.meta.at_ms - opened[one.body.hold_id]
        for one in events()
        if isinstance(one.body, h.DecisionRecorded)
    ]
    (row,) = files(OF_ALL["How long do calls wait for people, by risk?"])
    assert row[:3] == ("medium", len(waits), round(statistics.median(waits) / 1000, 6))


def test_reviewers_are_counted_as_in_the_log(files: Ask) -> None:
    words: dict[str, list[Any]] = defaultdict(list)
    for one in bodies(h.DecisionRecorded):
        if one.decision == "approve":
            words[one.by].append(one.dwell_ms)
    expected = set()
    for subject, dwelt in words.items():
        measured = [dwell for dwell in dwelt if dwell is not None]
        quick = sum(dwell < 3_000 for dwell in measured)
        expected.add((subject, len(dwelt), len(measured), quick, round(quick / len(measured), 6), 0, 0))
    assert set(files(OF_ALL["Who approves faster than anyone can read?"])) == expected


def test_rules_are_counted_as_in_the_log_by_version_of_their_policy(files: Ask) -> None:
    cited = Counter((rule, one.effect) for one in bodies(c.PolicyVerdictIssued) for rule in one.rules)
    for rule, kind, verdicts, allowed, held, denied in files(OF_ALL["Which rules allow, hold and deny?"]):
        assert (cited[rule, "allow"], cited[rule, "hold"], cited[rule, "deny"]) == (allowed, held, denied)
        assert verdicts == allowed + held + denied
        assert kind == ("standing" if rule.startswith("rule:") else "policy")
    versions = files(OF_ALL["Did a new version of a policy ask people more often?"])
    assert [row[:2] for row in versions] == [("production", 3), ("production", 4)]


def test_patch_of_an_edit_makes_what_was_approved_of_what_the_agent_proposed(files: Ask) -> None:
    rows = files("SELECT proposed_arguments, arguments, patch, operations FROM edit_patches")
    assert len(rows) == sum(one.decision == "edit" for one in bodies(h.DecisionRecorded)) > 0
    for proposed, arguments, patch, operations in rows:
        made = jsonpatch.JsonPatch.from_string(patch).apply(json.loads(proposed))
        assert made == json.loads(arguments)
        assert len(json.loads(patch)) == operations


def test_falls_of_trust_are_on_days_of_contrary_words(files: Ask) -> None:
    for *_, change, facts in files(OF_FILES["On which days did trust fall, and what had people said?"]):
        assert change < -0.1
        assert {"rejection", "revocation", "impact", "failure", "edit"} & set(facts.split(", "))


def test_page_names_every_table_of_the_files_and_no_other() -> None:
    named = set(re.findall(r"^\| \**`(\w+)`", PAGE, re.MULTILINE))
    beside = {"requests", "lost_races", "audit", "trust"}
    assert named | beside == {offer.name for offer in (*OF_VIEWS, TRUST_DAYS)}
    assert all(f"`{name}`" in PAGE for name in beside)

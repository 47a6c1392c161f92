"""Whose a dead letter is, as far as its key tells: on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache
from projections.folds.dead_letters import dead_letter_json
from projections.queries import lists
from projections.queries.paging import Page
from projections.queries.views import Views, open_views
from projections.store.port import Position
from schemas.record import RawRecord
from tests.projections.filling import TOPICS, Filler

COMMANDS, DEFINITIONS = TOPICS.commands, TOPICS.definition_commands
LETTERS = (
    (COMMANDS, b"acme/main/run-1"),
    (COMMANDS, b"acme/other/run-1"),
    (COMMANDS, b"acme/m_in/run-1"),
    (COMMANDS, b"acme/nothing"),
    (COMMANDS, b"rival/main/run-1"),
    (COMMANDS, b""),
    (COMMANDS, b"\xff"),
    (DEFINITIONS, b"acme/policy/production"),
    (DEFINITIONS, b"acme/main/policy/production"),
    (DEFINITIONS, b"acme/other/policy/production"),
    (DEFINITIONS, b"rival/policy/production"),
)


def letter(offset: int, topic: str, key: bytes) -> RawRecord:
    headers = (
        ("placet_topic", topic.encode()),
        ("placet_partition", b"2"),
        ("placet_offset", b"%d" % offset),
        ("placet_at_ms", b"%d" % (1_760_000_000_000 + offset)),
        ("placet_reason", b"malformed"),
        ("placet_detail", b"noise"),
    )
    return RawRecord(2, offset, 1_760_000_000_000, key, b"?", headers)


@pytest.fixture
def views(filler: Filler, database_url: str) -> Iterator[Views]:
    records = [letter(offset, topic, key) for offset, (topic, key) in enumerate(LETTERS)]
    batcher = Batcher(TOPICS, RowCache(filler.store), Trees(filler.store))
    filler.store.apply(batcher.batch([Chunk(Position(TOPICS.dead_letters, 2, "t1"), records)]))
    opened = open_views(database_url)
    yield opened
    opened.close()


def pages(views: Views, tenant: str, project: str, *, whole: bool = False, limit: int = 1) -> list[list[str]]:
    found: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = page_at(views, cursor, tenant, project, whole=whole, limit=limit)
        found.append([row["log_key"] for row in page.rows])
        cursor = page.next_cursor
    return found


def page_at(views: Views, cursor: str, tenant: str, project: str, *, whole: bool, limit: int) -> Page:
    page, _ = views.read_now(
        lambda now: lists.dead_letters(
            now, tenant, project, whole=whole, shared_topic=DEFINITIONS, cursor=cursor, limit=limit
        )
    )
    return page


def keys(views: Views, tenant: str, project: str, *, whole: bool = False) -> list[str]:
    (only,) = pages(views, tenant, project, whole=whole, limit=len(LETTERS))
    return only


def test_dead_letters_of_a_project_are_its_own_alone(views: Views) -> None:
    assert keys(views, "acme", "main") == ["acme/main/policy/production", "acme/main/run-1"]
    assert keys(views, "acme", "m_in") == ["acme/m_in/run-1"]
    assert keys(views, "acme", "policy") == []
    assert keys(views, "rival", "main") == ["rival/main/run-1"]
    assert keys(views, "acm", "main", whole=True) == []


def test_dead_letters_for_the_whole_tenant_are_those_of_no_project_too(views: Views) -> None:
    assert keys(views, "acme", "m_in", whole=True) == [
        "acme/policy/production",
        "acme/nothing",
        "acme/m_in/run-1",
    ]
    assert keys(views, "rival", "main", whole=True) == ["rival/policy/production", "rival/main/run-1"]


@pytest.mark.parametrize("limit", [1, 2])
def test_dead_letters_in_pages_are_all_of_them(views: Views, limit: int) -> None:
    found = pages(views, "acme", "m_in", whole=True, limit=limit)
    assert max(map(len, found)) == limit
    assert [key for page in found for key in page] == keys(views, "acme", "m_in", whole=True)


def test_all_dead_letters_leave_none_out(views: Views) -> None:
    first, _ = views.read_now(lambda now: lists.all_dead_letters(now, limit=4))
    rest, _ = views.read_now(lambda now: lists.all_dead_letters(now, first.next_cursor))
    rows = first.rows + rest.rows
    assert [row["log_offset"] for row in rows] == list(reversed(range(len(LETTERS))))
    newest = dead_letter_json(rows[0])
    assert (newest["id"], newest["reason"]) == (f"{DEFINITIONS}/2/10", "malformed")


@pytest.mark.parametrize(
    ("at_ms", "shown"), [(b"9" * 18, "9999-12-31T23:59:59.999Z"), (b"-5", "9999-12-31T23:59:59.999Z")]
)
def test_dead_letter_of_an_impossible_time_is_shown_with_a_possible_one(
    filler: Filler, database_url: str, at_ms: bytes, shown: str
) -> None:
    plain = letter(0, COMMANDS, b"acme/main/run-1")
    headers = tuple((name, at_ms if name == "placet_at_ms" else value) for name, value in plain.headers)
    forged = plain._replace(headers=(*headers, ("placet_topic", b"a\0b")), timestamp_ms=10**17)
    batcher = Batcher(TOPICS, RowCache(filler.store), Trees(filler.store))
    filler.store.apply(batcher.batch([Chunk(Position(TOPICS.dead_letters, 2, "t1"), [forged])]))
    with closing(open_views(database_url)) as opened:
        page, _ = opened.read_now(lambda now: lists.all_dead_letters(now, limit=4))
    (found,) = map(dead_letter_json, page.rows)
    assert (found["at"], found["topic"]) == (shown, "a\ufffdb")

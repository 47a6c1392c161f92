"""Proofs as a door asks for them, on both databases: every entry is found, and its path leads to the root."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from projections.audit.trees import TreeKey
from projections.queries.moment import Moment
from projections.queries.proofs import Leaf, Place, index_of, leaves, place_of_entry, tiles_of, tree_size
from projections.queries.views import Views, open_views
from projections.tables.audit import AUDIT_ENTRIES
from schemas.audit import record_leaf, tenant_of
from schemas.events.rules import RuleActivated, RuleMade, RuleRevoked, RuleSuspended
from schemas.ids import definition_key
from schemas.merkle import root_of_path
from schemas.record import RawRecord
from schemas.standing_rule import RULE_KIND
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import LogBuilder, many_runs, policy_key, policy_published
from tests.projections.test_batching import rule_document

TREE = TreeKey("acme", "executions", 0)


def a_log() -> LogBuilder:
    builder = many_runs(LogBuilder(1).claim_all(), 45, seed=3)
    return many_runs(builder, 5, seed=4, tenant="other")


def ours(builder: LogBuilder) -> list[RawRecord]:
    return [record for record in builder.records[0] if tenant_of(record.key) == "acme"]


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    definitions = LogBuilder(1).claim_all()
    definitions.append(policy_key("production"), [policy_published("production", 1)], partition=0)
    filler.fill(a_log(), definitions)
    opened = open_views(database_url, TOPICS)
    yield opened
    opened.close()


async def test_every_audit_entry_has_a_path_to_the_root(views: Views, filler: Filler) -> None:
    entries = [row for row in filler.rows(AUDIT_ENTRIES) if row["tenant"] == "acme"]
    records = {record.offset: record for record in ours(a_log())}

    def proved(now: Moment) -> list[bool]:
        found = []
        for entry in entries[:60]:
            place = place_of_entry(now, "acme", "main", entry["event_id"])
            assert place is not None
            if place.tree != TREE:
                continue
            size = tree_size(now, place.tree)
            index = index_of(now, place.tree, place.offset)
            assert index is not None
            tiles = tiles_of(now, place.tree)
            leaf = record_leaf("executions", records[place.offset])
            path = tiles.inclusion(index, size)
            found.append(root_of_path(leaf, index, size, path) == tiles.root(size))
        return found

    found, _ = await views.read(proved)
    assert len(found) > 20
    assert all(found)


async def test_entry_is_found_by_its_own_tenant_and_project_only(views: Views, filler: Filler) -> None:
    rows = filler.rows(AUDIT_ENTRIES)
    mine = next(row for row in rows if row["tenant"] == "acme" and row["project"] == "main")
    published = next(row for row in rows if row["project"] == "")

    async def place(tenant: str, project: str, event_id: str) -> Place | None:
        return (await views.read(lambda now: place_of_entry(now, tenant, project, event_id)))[0]

    assert await place("acme", "main", mine["event_id"]) == Place(TREE, mine["log_offset"])
    assert await place("acme", "another", mine["event_id"]) is None
    assert await place("other", "main", mine["event_id"]) is None
    definitions = TreeKey("acme", "definitions", 0)
    for project in ("main", "another"):
        assert await place("acme", project, published["event_id"]) == Place(
            definitions, published["log_offset"]
        )
    assert await place("other", "main", published["event_id"]) is None


async def test_entry_of_a_standing_rule_stands_in_the_definitions_though_it_is_of_a_project(
    database_url: str, filler: Filler
) -> None:
    definitions = LogBuilder(1).claim_all()
    document = rule_document("r", project="main")
    made = RuleMade(rule_id="r", status="proposed", reason="", document=document, by="ann@acme")
    for body in (
        made,
        RuleActivated(rule_id="r", reason="", by="bob@acme"),
        RuleSuspended(rule_id="r", reason="no", evidence="{}", by="placet:decider"),
        RuleRevoked(rule_id="r", reason="no", by="bob@acme"),
    ):
        definitions.append(definition_key("acme", RULE_KIND, "r"), [body], partition=0)
    filler.fill(a_log(), definitions)
    of_rules = [row for row in filler.rows(AUDIT_ENTRIES) if row["action"].startswith("rule_")]
    opened = open_views(database_url, TOPICS)
    try:
        for row in of_rules:
            ask = partial(place_of_entry, tenant="acme", project="main", event_id=row["event_id"])
            place, _ = await opened.read(ask)
            assert place == Place(TreeKey("acme", "definitions", 0), row["log_offset"])
    finally:
        opened.close()
    assert len(of_rules) == 4


@pytest.mark.parametrize(
    ("after", "limit"), [(-1, 3), (-1, 10_000), (250, 10), (254, 1), (255, 300), (9_999, 5)]
)
async def test_leaves_follow_an_index_in_order_over_tiles(views: Views, after: int, limit: int) -> None:
    records = ours(a_log())
    assert len(records) > 300
    expected = [
        Leaf(index, record.offset, record_leaf("executions", record)) for index, record in enumerate(records)
    ]
    found, _ = await views.read(lambda now: list(leaves(now, TREE, after, limit)))
    assert found == expected[after + 1 : after + 1 + limit]


async def test_offset_without_a_leaf_has_no_index(views: Views) -> None:
    records = ours(a_log())
    wanted = [record.offset for record in records]
    others = sorted(set(range(wanted[-1] + 5)) - set(wanted))

    def indices(now: Moment) -> tuple[list[int | None], set[int | None]]:
        return [index_of(now, TREE, offset) for offset in wanted], {
            index_of(now, TREE, offset) for offset in others
        }

    (found, missing), _ = await views.read(indices)
    assert found == list(range(len(wanted)))
    assert missing == {None}
    size, _ = await views.read(lambda now: tree_size(now, TREE._replace(partition=9)))
    assert size == 0

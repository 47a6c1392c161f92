"""docs/log-contract.md says of every topic, principal and header of a dead letter what the code says."""

from __future__ import annotations

import re

from ops.kafka.acl import GROUP, INSTALLATION, PRINCIPALS, READ, READER, TOPIC, WRITE, grants
from ops.role import ROLES
from schemas.dead_letters import letter_headers
from schemas.topics import Topics, TopicSpec
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "log-contract.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
TOPICS = Topics()
_WORD = re.compile(r"`([^`]+)`")


def _rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the rows of the first table below a heading."""
    lines = page.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def _names(cell: str) -> list[str]:
    return _WORD.findall(cell)


def test_every_topic_is_in_the_table_as_it_is_made() -> None:
    said = {_names(row[0])[0]: row[0] for row in _rows(PAGE, "Topics")}
    assert set(said) == {spec.name for spec in TOPICS.specs()}
    for spec in TOPICS.specs():
        assert ("1 partition" in said[spec.name]) == (spec.partitions == 1), spec.name
        assert ("compacted" in said[spec.name]) == (spec.cleanup_policy == "compact"), spec.name


def test_every_topic_is_in_the_table_of_retention() -> None:
    said = {name: row[1] for row in _rows(OPERATIONS, "Retention") for name in _names(row[0])}
    assert said.keys() == {spec.name for spec in TOPICS.specs()}
    for spec in TOPICS.specs():
        assert said[spec.name].startswith(_kept(spec)), spec.name


def _kept(spec: TopicSpec) -> str:
    if spec.cleanup_policy == "compact":
        return "compacted"
    hours = spec.retention_ms // (60 * 60 * 1000)
    if hours < 24:
        return "for ever" if spec.retention_ms < 0 else f"{hours} hour"
    return f"{hours // 24} days"


def test_every_principal_may_do_what_the_table_says_and_nothing_else() -> None:
    rows = _rows(PAGE, "Signing in, and who may do what")
    said = {_names(row[0])[0]: row for row in rows if row[0].startswith("`")}
    assert said.keys() == set(PRINCIPALS)
    for principal in set(PRINCIPALS) - {READER, INSTALLATION}:
        _, reads, writes, group = said[principal]
        granted = [grant for grant in grants(TOPICS) if grant.principal == principal]
        for cell, operation in ((reads, READ), (writes, WRITE)):
            wanted = {
                g.resource_name for g in granted if g.resource_type == TOPIC and g.operation == operation
            }
            if operation == WRITE and principal in ROLES:
                # A row of its own says that for all of them.
                wanted -= {TOPICS.heartbeats}
            assert {f"{TOPICS.prefix}.{name}" for name in _names(cell)} == wanted, principal
        assert set(_names(group)) == {g.resource_name for g in granted if g.resource_type == GROUP}, principal


def test_every_header_of_a_dead_letter_is_described() -> None:
    said = {name for row in _rows(PAGE, "Dead letters") for name in _names(row[0])}
    written = {name for name, _ in letter_headers("t", 0, 0, 0, "malformed", "")}
    assert said == written | {"placet_left_out_sha256"}

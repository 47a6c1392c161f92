"""What rested on a grant, a rule or a person's word: the calls that were let run because of it.

A call counts from its consumption on: then it may have had its effect, whatever was reported of it.
"""

import re
from collections.abc import Sequence
from typing import Any

from projections.folds.rows import Row, json_value
from projections.queries.moment import Moment
from projections.queries.paging import Page, bounded, page_of, read_cursor
from projections.store.tables import AUDIT_ENTRIES, TOOL_CALLS

_VERSION = re.compile(r"@[0-9]+/")
_PLACE = '"execution_id" || \'/\' || "call_id"'


def effects_of_grant(
    moment: Moment, tenant: str, project: str, grant_id: str, cursor: str | None, limit: int | None
) -> Page:
    """The one call that ran under a grant, if it did.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    return _page(moment, (tenant, project), '"grant_id" = ?', (grant_id,), cursor, limit)


def effects_of_rule(
    moment: Moment, tenant: str, project: str, rule: str, cursor: str | None, limit: int | None
) -> Page:
    """The calls whose verdict cites a rule: a policy's (`policy/rule`, `policy@version/rule`) or a standing one's id.

    Of a project's own policy it is `project/policy/rule`; without it the tenant's and the project's are meant.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    wanted = [_as_cited(rule), f"{project}/{_as_cited(rule)}"]
    patterns = tuple(f'%"{_literal(one).replace("@/", "@%/")}"%' for one in wanted)
    like = "\"rules\" LIKE ? ESCAPE '!'"
    page = _page(moment, (tenant, project), f"({like} OR {like})", patterns, cursor, limit)
    # The pattern may begin in one rule of a verdict and end in another.
    return page._replace(rows=[row for row in page.rows if _cites(row, wanted)])


def _as_cited(rule: str) -> str:
    """A rule as a verdict cites it; `@/` where the policy's version is left open."""
    policy, slash, name = rule.rpartition("/")
    if not slash:
        return f"rule:{rule}"
    return rule if "@" in policy else f"{policy}@/{name}"


def _cites(row: Row, wanted: Sequence[str]) -> bool:
    return any(each in wanted or _VERSION.sub("@/", each) in wanted for each in json_value(row["rules"]))


def effects_of_people(
    moment: Moment, tenant: str, project: str, subjects: Sequence[str], cursor: str | None, limit: int | None
) -> Page:
    """The calls that ran on the word of one of several subjects: what they approved, or edited, as it ran.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    marks = ", ".join("?" for _ in subjects)
    audit = f"{moment.dialect.prefix}{AUDIT_ENTRIES.name}"
    # An edit is decided on the old digest; its author has proposed the revision that ran.
    condition = (
        f'EXISTS (SELECT 1 FROM {audit} a WHERE a."tenant" = tool_calls."tenant" '  # noqa: S608 – names of tables.py
        'AND a."project" = tool_calls."project" AND a."execution_id" = tool_calls."execution_id" '
        f'AND a."call_id" = tool_calls."call_id" AND a."subject" IN ({marks}) '
        'AND ((a."action" = \'approve\' AND a."digest" = tool_calls."grant_digest") '
        'OR (a."action" = \'edit\' AND tool_calls."proposed_by" = a."subject")))'
    )
    return _page(moment, (tenant, project), condition, tuple(subjects), cursor, limit)


def _page(
    moment: Moment,
    owner: tuple[str, str],
    condition: str,
    values: Sequence[Any],
    cursor: str | None,
    limit: int | None,
) -> Page:
    mark, count = read_cursor(cursor), bounded(limit)
    beyond = "" if mark is None else f'AND ("proposed_at_ms", {_PLACE}) > (?, ?)'
    tail = (
        f'WHERE "tenant" = ? AND "project" = ? AND "attempt_id" IS NOT NULL AND {condition} {beyond} '
        f'ORDER BY "proposed_at_ms", {_PLACE} LIMIT {count + 1}'
    )
    rows = moment.select(TOOL_CALLS, tail, (*owner, *values, *(mark or ())))
    return page_of([_placed(row) for row in rows], count, "proposed_at_ms", "place")


def _placed(row: Row) -> Row:
    return {**row, "place": f"{row['execution_id']}/{row['call_id']}"}


def _literal(text: str) -> str:
    return "".join(f"!{character}" if character in "!%_" else character for character in text)

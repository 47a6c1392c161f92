"""What rested on a grant, a rule or a person's word: the calls that were let run because of it.

A call counts from its consumption on: then it may have had its effect, whatever was reported of it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from projections.folds.rows import Row, json_value
from projections.queries.moment import Moment
from projections.queries.paging import Page, bounded, page_of, read_cursor
from projections.store.tables import AUDIT_ENTRIES, TOOL_CALLS

_VERSION = re.compile(r"@[0-9]+/")
_PLACE = '"execution_id" || \'/\' || "call_id"'
# Of an audit entry `a`: it let the call `c` run, as it ran. An edit is decided on the old digest; its author has
# proposed the revision that ran.
_LET_RUN = (
    'c."tenant" = a."tenant" AND c."project" = a."project" '
    'AND c."execution_id" = a."execution_id" AND c."call_id" = a."call_id" '
    'AND ((a."action" = \'approve\' AND a."digest" = c."grant_digest") '
    'OR (a."action" = \'edit\' AND c."proposed_by" = a."subject"))'
)
# Of a delegation `d` before it: it is of the same hold.
_SAME_HOLD = 'd."hold_id" = a."hold_id" AND d."at_ms" <= a."at_ms" AND d."log_offset" < a."log_offset"'


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
    condition, patterns, wanted = _citing(project, rule)
    page = _page(moment, (tenant, project), condition, patterns, cursor, limit)
    # The pattern may begin in one rule of a verdict and end in another.
    return page._replace(rows=[row for row in page.rows if _cites(row, wanted)])


def _citing(project: str, rule: str) -> tuple[str, tuple[str, ...], list[str]]:
    """A condition that verdicts meet that cite a rule, its values, and what is cited."""
    wanted = [_as_cited(rule), f"{project}/{_as_cited(rule)}"]
    patterns = tuple(f'%"{_literal(one).replace("@/", "@%/")}"%' for one in wanted)
    like = "\"rules\" LIKE ? ESCAPE '!'"
    return f"({like} OR {like})", patterns, wanted


def _as_cited(rule: str) -> str:
    """A rule as a verdict cites it; `@/` where the policy's version is left open."""
    policy, slash, name = rule.rpartition("/")
    if not slash:
        return f"rule:{rule}"
    return rule if "@" in policy else f"{policy}@/{name}"


def _cites(row: Row, wanted: Sequence[str]) -> bool:
    return any(each in wanted or _VERSION.sub("@/", each) in wanted for each in json_value(row["rules"]))


def effects_of_people(
    moment: Moment,
    tenant: str,
    project: str,
    subjects: Sequence[str],
    cursor: str | None,
    limit: int | None,
    person_of: Callable[[str], str] = str,
) -> Page:
    """The calls that ran on the word of one of several subjects: what they approved, or edited, as it ran.

    What somebody decided to whom they had handed the hold on counts as well, down the line of those who handed it on.

    Args:
        moment: of the views.
        tenant: whose calls.
        project: whose calls.
        subjects: the accounts of one person.
        cursor: of the page.
        limit: of the page.
        person_of: whom an account, or the name that a hold was handed to, means.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    owner = (tenant, project)
    hands_on = _hands_on(moment, owner, subjects)
    parts, values = [_by_themselves(moment, subjects)], (*owner, *subjects)
    if hands_on:
        parts.append(_by_delegates(moment, subjects))
        values += (*owner, *subjects, *owner)
    # Found once for the whole question: asked of each call, it would have SQLite go through the audit for each.
    # IS TRUE keeps PostgreSQL from making a join of it: without statistics it would find them anew for each call.
    condition = f'(("execution_id", "call_id") IN ({" UNION ".join(parts)})) IS TRUE'
    page = _page(moment, owner, condition, values, cursor, limit)
    if not hands_on or not page.rows:
        return page
    words = _words(moment, owner, page.rows)
    return page._replace(rows=[row for row in page.rows if _rests_on(row, words, subjects, person_of)])


def _hands_on(moment: Moment, owner: tuple[str, str], subjects: Sequence[str]) -> bool:
    tail = (
        f'WHERE "tenant" = ? AND "project" = ? AND "subject" IN ({_marks(subjects)}) '
        "AND \"action\" = 'delegate' LIMIT 1"
    )
    return bool(moment.select(AUDIT_ENTRIES, tail, (*owner, *subjects)))


def _by_themselves(moment: Moment, subjects: Sequence[str]) -> str:
    """Calls that one of them let run. Parameters: the owner and the subjects."""
    return (
        # CROSS JOIN gives SQLite the order: the entries first, then the call of each by its key.
        f'SELECT a."execution_id", a."call_id" FROM {_audit(moment)} a CROSS JOIN {_calls(moment)} c '  # noqa: S608 – names of tables.py
        f'WHERE a."tenant" = ? AND a."project" = ? AND a."subject" IN ({_marks(subjects)}) AND {_LET_RUN}'
    )


def _by_delegates(moment: Moment, subjects: Sequence[str]) -> str:
    """Calls that somebody else let run after one of them had handed the hold on; `_rests_on` says whether to them.

    Parameters: the owner, the subjects, and the owner again.
    """
    audit = _audit(moment)
    # DISTINCT keeps SQLite from joining the table of `d` itself: it makes `d` once, with an index by the hold.
    delegations = (
        f'SELECT DISTINCT "hold_id", "at_ms", "log_offset" FROM {audit} '  # noqa: S608 – names of tables.py
        f'WHERE "tenant" = ? AND "project" = ? AND "subject" IN ({_marks(subjects)}) AND "action" = \'delegate\''
    )
    return (
        f'SELECT a."execution_id", a."call_id" FROM {audit} a CROSS JOIN ({delegations}) d '  # noqa: S608 – names of tables.py
        f'CROSS JOIN {_calls(moment)} c WHERE a."tenant" = ? AND a."project" = ? AND {_SAME_HOLD} AND {_LET_RUN}'
    )


def _words(moment: Moment, owner: tuple[str, str], rows: Sequence[Row]) -> list[Row]:
    """What was said to the holds of some calls, in the order in which it was said."""
    runs = tuple(sorted({row["execution_id"] for row in rows}))
    tail = (
        f'WHERE "tenant" = ? AND "project" = ? AND "execution_id" IN ({_marks(runs)}) '
        "AND \"action\" IN ('approve', 'edit', 'delegate') ORDER BY \"log_offset\""
    )
    return moment.select(AUDIT_ENTRIES, tail, (*owner, *runs))


def _rests_on(
    row: Row, words: Sequence[Row], subjects: Sequence[str], person_of: Callable[[str], str]
) -> bool:
    """Whether one of the words that let a call run is of one of some accounts, or of their delegate."""
    delegations: list[Row] = []
    for entry in words:
        if (entry["execution_id"], entry["call_id"]) != (row["execution_id"], row["call_id"]):
            continue
        if entry["action"] == "delegate":
            delegations.append(entry)
        elif _caused(entry, row) and _speaks_for(entry, delegations, subjects, person_of):
            return True
    return False


def _audit(moment: Moment) -> str:
    return f"{moment.dialect.prefix}{AUDIT_ENTRIES.name}"


def _calls(moment: Moment) -> str:
    return f"{moment.dialect.prefix}{TOOL_CALLS.name}"


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _caused(entry: Row, row: Row) -> bool:
    if entry["action"] == "edit":
        return bool(row["proposed_by"] == entry["subject"])
    return bool(row["grant_digest"] == entry["digest"])


def _speaks_for(
    entry: Row, delegations: Sequence[Row], subjects: Sequence[str], person_of: Callable[[str], str]
) -> bool:
    if entry["subject"] in subjects:
        return True
    person = person_of(entry["subject"])
    for handed in reversed(delegations):
        if (
            handed["hold_id"] == entry["hold_id"]
            and person_of(json_value(handed["after"])["assignee"]) == person
        ):
            if handed["subject"] in subjects:
                return True
            person = person_of(handed["subject"])
    return False


def is_grant(moment: Moment, tenant: str, project: str, grant_id: str) -> bool:
    """Whether a grant of that id was ever given."""
    return moment.one(TOOL_CALLS, tenant=tenant, project=project, grant_id=grant_id) is not None


def is_cited(moment: Moment, tenant: str, project: str, rule: str) -> bool:
    """Whether any verdict ever cited a rule, whether or not the call ran."""
    condition, values, wanted = _citing(project, rule)
    tail = f'WHERE "tenant" = ? AND "project" = ? AND {condition} LIMIT 50'
    return any(_cites(row, wanted) for row in moment.select(TOOL_CALLS, tail, (tenant, project, *values)))


def has_acted(moment: Moment, tenant: str, project: str, subjects: Sequence[str]) -> bool:
    """Whether the audit names one of some subjects."""
    tail = f'WHERE "tenant" = ? AND "project" = ? AND "subject" IN ({_marks(subjects)}) LIMIT 1'
    return bool(moment.select(AUDIT_ENTRIES, tail, (tenant, project, *subjects)))


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

"""The effects of a grant, a rule or a person's decision: the calls that were allowed to run because of it.

A call counts from its consumption on: from then it can have had its effect, whatever was reported about it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from projections.folds.rows import json_value
from projections.queries.moment import Moment
from projections.queries.paging import PageOf, bounded, page_of, read_cursor
from projections.tables.audit import AUDIT_ENTRIES, AuditRow
from projections.tables.calls import TOOL_CALLS, CallRow

_VERSION = re.compile(r"@[0-9]+/")
_PLACE = '"execution_id" || \'/\' || "call_id"'
# The columns by which an audit entry matches the call that it allowed to run, by the entry's action. An edit is
# decided on the old digest; its author has proposed the revision that ran.
_LET_RUN = {"approve": ("digest", "grant_digest"), "edit": ("subject", "proposed_by")}


class PlacedCallRow(CallRow):
    """A call with a value that distinguishes it from others of the same moment."""

    place: str


def effects_of_grant(
    moment: Moment, tenant: str, project: str, grant_id: str, cursor: str | None, limit: int | None
) -> PageOf[PlacedCallRow]:
    """The one call that ran under a grant, if it ran.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    return _page(moment, (tenant, project), '"grant_id" = ?', (grant_id,), cursor, limit)


def effects_of_rule(
    moment: Moment, tenant: str, project: str, rule: str, cursor: str | None, limit: int | None
) -> PageOf[PlacedCallRow]:
    """The calls whose verdict cites a rule: a policy's (`policy/rule`, `policy@version/rule`) or a standing one's id.

    A rule of a project's own policy is `project/policy/rule`; without the project, the tenant's and the project's
    both match.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    condition, patterns, wanted = _citing(project, rule)
    page = _page(moment, (tenant, project), condition, patterns, cursor, limit)
    # The pattern can begin in one rule of a verdict and end in another.
    return page._replace(rows=[row for row in page.rows if _cites(row, wanted)])


def _citing(project: str, rule: str) -> tuple[str, tuple[str, ...], list[str]]:
    """The condition of verdicts that cite a rule, the condition's values, and the rule as it is cited."""
    wanted = [_as_cited(rule), f"{project}/{_as_cited(rule)}"]
    patterns = tuple(f'%"{_literal(one).replace("@/", "@%/")}"%' for one in wanted)
    like = "\"rules\" LIKE ? ESCAPE '!'"
    return f"({like} OR {like})", patterns, wanted


def _as_cited(rule: str) -> str:
    """A rule as a verdict cites it; `@/` if the policy's version is left open."""
    policy, slash, name = rule.rpartition("/")
    if not slash:
        return f"rule:{rule}"
    return rule if "@" in policy else f"{policy}@/{name}"


def _cites(row: CallRow, wanted: Sequence[str]) -> bool:
    return any(each in wanted or _VERSION.sub("@/", each) in wanted for each in json_value(row["rules"]))


def effects_of_people(
    moment: Moment,
    tenant: str,
    project: str,
    subjects: Sequence[str],
    cursor: str | None,
    limit: int | None,
    person_of: Callable[[str], str] = str,
) -> PageOf[PlacedCallRow]:
    """The calls that ran on the decision of one of several subjects: approvals, and edits, as they ran.

    A decision of a person to whom a subject has delegated the hold also counts, along the whole chain of delegations.

    Args:
        moment: of the views.
        tenant: whose calls.
        project: whose calls.
        subjects: the accounts of one person.
        cursor: of the page.
        limit: of the page.
        person_of: the person behind an account, or behind the name that a hold was delegated to.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    owner = (tenant, project)
    hands_on = _hands_on(moment, owner, subjects)
    spoken = _spoken(moment, subjects, hands_on)
    values = (*owner, *subjects) * (len(_LET_RUN) * (2 if hands_on else 1))
    # The entries are found once for the whole query: if they were looked up per call, SQLite would scan the audit for
    # each. No call is joined to them, and IS TRUE keeps PostgreSQL from turning this into a join: without statistics,
    # as with new views, that scans all calls for each entry.
    parts = [
        f'("execution_id", "call_id", "{mine}") IN (SELECT "execution_id", "call_id", "{theirs}" {spoken} '
        f"AND \"action\" = '{action}')"
        for action, (theirs, mine) in _LET_RUN.items()
    ]
    condition = f"({' OR '.join(parts)}) IS TRUE"
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


def _spoken(moment: Moment, subjects: Sequence[str], hands_on: bool) -> str:
    """Selects the entries of the subjects' decisions, and all decisions on holds that one of them had delegated.

    `_rests_on` says which of the latter count. Parameters: the owner and the subjects, twice if `hands_on`.
    """
    by_one = f'"subject" IN ({_marks(subjects)})'
    ours = f'FROM {_audit(moment)} WHERE "tenant" = ? AND "project" = ?'
    if not hands_on:
        return f"{ours} AND {by_one}"
    handed_on = f'SELECT "hold_id" {ours} AND {by_one} AND "action" = \'delegate\''
    return f'{ours} AND ({by_one} OR "hold_id" IN ({handed_on}))'


def _words(moment: Moment, owner: tuple[str, str], rows: Sequence[CallRow]) -> list[AuditRow]:
    """The decisions and delegations on the holds of some calls, in their order."""
    runs = tuple(sorted({row["execution_id"] for row in rows}))
    tail = (
        f'WHERE "tenant" = ? AND "project" = ? AND "execution_id" IN ({_marks(runs)}) '
        "AND \"action\" IN ('approve', 'edit', 'delegate') ORDER BY \"log_offset\""
    )
    return moment.select(AUDIT_ENTRIES, tail, (*owner, *runs))


def _rests_on(
    row: CallRow, words: Sequence[AuditRow], subjects: Sequence[str], person_of: Callable[[str], str]
) -> bool:
    """Returns True if a decision that allowed a call to run is by one of some accounts, or by their delegate."""
    delegations: list[AuditRow] = []
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


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _caused(entry: AuditRow, row: CallRow) -> bool:
    if entry["action"] == "edit":
        return bool(row["proposed_by"] == entry["subject"])
    return bool(row["grant_digest"] == entry["digest"])


def _speaks_for(
    entry: AuditRow, delegations: Sequence[AuditRow], subjects: Sequence[str], person_of: Callable[[str], str]
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
    """Returns True if a grant of that id was ever given."""
    return moment.one(TOOL_CALLS, tenant=tenant, project=project, grant_id=grant_id) is not None


def is_cited(moment: Moment, tenant: str, project: str, rule: str) -> bool:
    """Returns True if any verdict ever cited a rule, whether or not the call ran."""
    condition, values, wanted = _citing(project, rule)
    tail = f'WHERE "tenant" = ? AND "project" = ? AND {condition} LIMIT 50'
    return any(_cites(row, wanted) for row in moment.select(TOOL_CALLS, tail, (tenant, project, *values)))


def has_acted(moment: Moment, tenant: str, project: str, subjects: Sequence[str]) -> bool:
    """Returns True if the audit names one of some subjects."""
    tail = f'WHERE "tenant" = ? AND "project" = ? AND "subject" IN ({_marks(subjects)}) LIMIT 1'
    return bool(moment.select(AUDIT_ENTRIES, tail, (tenant, project, *subjects)))


def _page(
    moment: Moment,
    owner: tuple[str, str],
    condition: str,
    values: Sequence[Any],
    cursor: str | None,
    limit: int | None,
) -> PageOf[PlacedCallRow]:
    mark, count = read_cursor(cursor), bounded(limit)
    beyond = "" if mark is None else f'AND ("proposed_at_ms", {_PLACE}) > (?, ?)'
    tail = (
        f'WHERE "tenant" = ? AND "project" = ? AND "attempt_id" IS NOT NULL AND {condition} {beyond} '
        f'ORDER BY "proposed_at_ms", {_PLACE} LIMIT {count + 1}'
    )
    rows = moment.select(TOOL_CALLS, tail, (*owner, *values, *(mark or ())))
    return page_of([_placed(row) for row in rows], count, "proposed_at_ms", "place")


def _placed(row: CallRow) -> PlacedCallRow:
    return {**row, "place": f"{row['execution_id']}/{row['call_id']}"}


def _literal(text: str) -> str:
    return "".join(f"!{character}" if character in "!%_" else character for character in text)

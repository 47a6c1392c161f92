"""The SQL views on the tables: one text each for SQLite, PostgreSQL, and DuckDB, which reads SQLite's."""

# Every name that is put into the text comes from `tables`, and there are no values.
# ruff: noqa: S608

from collections.abc import Callable, Mapping

from projections.tables.star import QUICK_MS

# The statuses that the audit trail shows as a call's result (projections.folds.states.TERMINAL).
_ENDED = "('denied', 'cancelled', 'expired', 'revoked', 'succeeded', 'failed')"


def _audit(p: str) -> str:
    return (
        f"SELECT a.*, c.status AS result, c.output AS result_output, c.error AS result_error, "
        f"c.ended_at_ms AS result_at_ms FROM {p}audit_entries a LEFT JOIN {p}tool_calls c "
        "ON c.tenant = a.tenant AND c.project = a.project AND c.execution_id = a.execution_id "
        f"AND c.call_id = a.call_id AND c.status IN {_ENDED}"
    )


def _tools(p: str) -> str:
    # Each project numbers the versions of a name separately, and so does the tenant (project `*`).
    newest = (
        f"SELECT MAX(n.version) FROM {p}definitions n "
        "WHERE n.tenant = d.tenant AND n.project = d.project AND n.kind = d.kind AND n.name = d.name"
    )
    return (
        "SELECT tenant, name, version, tool_version, document AS definition, published_by, published_at_ms, project "
        f"FROM {p}definitions d WHERE kind = 'tool' AND version = ({newest})"
    )


def _policies(p: str) -> str:
    return (
        "SELECT tenant, name, version, document, published_by, published_at_ms, project "
        f"FROM {p}definitions WHERE kind = 'policy'"
    )


def _requests(p: str) -> str:
    return (
        "SELECT tenant, project, request_id, hold_id, execution_id, agent, kind, question, options, fields, "
        "decision_type, asks, status, response, decided_by, timed_out, opened_at_ms, deadline_at_ms, closed_at_ms, "
        f"on_timeout FROM {p}holds WHERE request_id IS NOT NULL"
    )


def _lost_races(p: str) -> str:
    return (
        "SELECT v.tenant, v.project, v.at_ms, v.event_id, v.hold_id, v.execution_id, v.call_id, v.request_id, "
        "v.agent, v.tool, v.subject, v.decision, v.code, v.winning_decision_id, w.subject AS won_by, "
        "w.decision AS won_decision, w.at_ms AS won_at_ms, v.at_ms - w.at_ms AS late_ms "
        f"FROM {p}votes v LEFT JOIN {p}votes w "
        "ON w.tenant = v.tenant AND w.project = v.project AND w.hold_id = v.hold_id AND w.outcome = 'decided' "
        "AND w.decision_id = v.winning_decision_id WHERE v.outcome = 'lost'"
    )


# Each kind of evidence that the view `trust` counts: the column, and the kind.
_KINDS = {
    "successes": "success",
    "failures": "failure",
    "unknowns": "unknown",
    "approvals": "approval",
    "edits": "edit",
    "rejections": "rejection",
}


def _trust(p: str) -> str:
    sums = ", ".join(
        f"SUM(CASE WHEN kind = '{kind}' THEN 1 ELSE 0 END) OVER w AS {name}" for name, kind in _KINDS.items()
    )
    counted = ", ".join(f"'{kind}'" for kind in _KINDS.values())
    return (
        f"SELECT tenant, project, agent, tool, at_ms, event_id, kind, {', '.join(_KINDS)}, evidence, "
        "CAST(successes + approvals AS DOUBLE PRECISION) / evidence AS share "
        f"FROM (SELECT tenant, project, agent, tool, at_ms, event_id, kind, "
        f"{sums}, COUNT(*) OVER w AS evidence FROM {p}evidence WHERE kind IN ({counted}) "
        "WINDOW w AS (PARTITION BY tenant, project, agent, tool ORDER BY at_ms, event_id "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS counted"
    )


_OF_VOTE = "h.tenant = v.tenant AND h.project = v.project AND h.hold_id = v.hold_id"


def _decisions(p: str) -> str:
    return (
        "SELECT v.tenant, v.project, v.at_ms, v.event_id, v.decision_id, v.hold_id, v.execution_id, v.call_id, "
        "v.request_id, v.agent, v.tool, v.revision, h.kind, h.cause, h.rules, h.risk_level, h.risk_score, h.quorum, "
        "v.subject, v.person, v.decision, v.feedback, h.opened_at_ms, h.closed_at_ms, "
        "v.at_ms - h.opened_at_ms AS wait_ms, v.dwell_ms "
        f"FROM {p}votes v JOIN {p}holds h ON {_OF_VOTE} WHERE v.outcome = 'decided'"
    )


def _reviewers(p: str) -> str:
    counts = "v.outcome IN ('decided', 'counted')"
    measured = f"{counts} AND v.decision = 'approve' AND v.dwell_ms IS NOT NULL"
    words = {"approved": "approve", "edited": "edit", "rejected": "reject", "answered": "respond"}
    columns = {
        **{column: _number(f"{counts} AND v.decision = '{word}'") for column, word in words.items()},
        "decided": _number("v.outcome = 'decided'"),
        "lost": _number("v.outcome = 'lost'"),
        "refused": _number("v.outcome = 'refused'"),
        "first_voted_at_ms": "MIN(v.at_ms)",
        "last_voted_at_ms": "MAX(v.at_ms)",
        "wait_ms": _mean(f"CASE WHEN {counts} THEN v.at_ms - h.opened_at_ms END"),
        "dwell_ms": _mean(f"CASE WHEN {counts} THEN v.dwell_ms END"),
        "measured": _number(measured),
        "quick": _number(f"{measured} AND v.dwell_ms < {QUICK_MS}"),
        "probes": _of_probes(p, "COUNT(*)"),
        "probes_missed": _of_probes(p, "COALESCE(SUM(1 - a.caught), 0)"),
    }
    shown = ", ".join(f"{made} AS {column}" for column, made in columns.items())
    return (
        f"SELECT v.tenant, v.project, v.subject, MAX(v.person) AS person, {shown} "
        f"FROM {p}votes v LEFT JOIN {p}holds h ON {_OF_VOTE} GROUP BY v.tenant, v.project, v.subject"
    )


def _of_probes(p: str, counted: str) -> str:
    same = " AND ".join(f"a.{name} = v.{name}" for name in ("tenant", "project", "subject"))
    return f"(SELECT {counted} FROM {p}probe_answers a WHERE {same})"


def _rules(p: str) -> str:
    effects = {"allowed": "allow", "held": "hold", "denied": "deny"}
    shown = ", ".join(_number(f"effect = '{effect}'") + f" AS {column}" for column, effect in effects.items())
    whose = "tenant, project, rule, kind, policy, policy_version, rule_id"
    return (
        f"SELECT {whose}, COUNT(*) AS verdicts, {shown}, MIN(at_ms) AS first_at_ms, MAX(at_ms) AS last_at_ms "
        f"FROM {p}rule_verdicts GROUP BY {whose}"
    )


def _number(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


def _mean(value: str) -> str:
    # PostgreSQL's mean of whole numbers is a decimal.
    return f"CAST(AVG({value}) AS DOUBLE PRECISION)"


# SQL view → its text, given what is put before the tables' names. Created in this order, after the tables.
SQL_VIEWS: Mapping[str, Callable[[str], str]] = {
    "audit": _audit,
    "tools": _tools,
    "policies": _policies,
    "requests": _requests,
    "lost_races": _lost_races,
    "trust": _trust,
    "decisions": _decisions,
    "reviewers": _reviewers,
    "rules": _rules,
}
VIEW_NAMES = tuple(SQL_VIEWS)

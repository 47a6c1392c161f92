"""A backtest's result in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from ops.backtest.found import KIND_OF, Judged
from ops.backtest.naming import address_of, option_of
from ops.backtest.report import Report
from ops.commands.common import print_line
from placet.cli.lines import print_rows
from schemas.policy_document import Effect
from schemas.topics import DAY_MS

# In a terminal; `--json` and `--html` have more.
SHOWN_MAX = 20
# In `--json`, so that a policy that changes every verdict of a long history is told within little memory.
CHANGED_MAX = 20_000
HEADS = ("call", "revision", "tool", "arguments", "at", "people", "by", "feedback", "before", "after")
COUNTS = (
    "records",
    "events",
    "refused",
    "definitions_refused",
    "unreadable",
    "set_aside",
    "planted",
    "forks",
    "judged",
)
EFFECTS: tuple[Effect, ...] = ("allow", "hold", "deny")


def json_of(report: Report) -> dict[str, Any]:
    """What `--json` prints."""
    found = report.found
    changed = (row for row in found.rows if row.is_changed)
    return {
        "policy": report.candidate.document.policy,
        "tenant": report.candidate.tenant,
        "project": found.project,
        "ok": report.is_ok,
        "seconds": round(report.seconds, 3),
        **{name: getattr(found, name) for name in COUNTS},
        "reproduced": found.reproduced,
        "by_candidate": found.by_candidate,
        "warnings": [one.model_dump() for one in report.warnings],
        "trust_function": None if report.function is None else report.function._asdict(),
        "rescored": found.rescored,
        "rescored_otherwise": found.rescored_otherwise,
        "effects": [
            {"before": before, "after": after, "verdicts": count}
            for (before, after), count in sorted(found.effects.items())
        ],
        **{kind: found.count_of(kind) for kind in KIND_OF.values()},
        "rejected_would_pass": [_row(row, report) for row in found.overruled],
        "passes_again": [_row(row, report) for row in found.passing_again],
        "changed": [_row(row, report) for row in islice(changed, CHANGED_MAX)],
        "changed_left_off": sum(1 for _ in changed),
        "not_reproduced": msgspec.to_builtins(found.not_reproduced),
        "not_reproduced_left_off": found.judged - found.reproduced - len(found.not_reproduced),
        "not_judged": msgspec.to_builtins(found.not_judged),
        "not_judged_left_off": found.unlisted,
        "by_tool": {tool: _counts(of) for tool, of in sorted(found.tools.items())},
        "by_day": {day_of(day): _counts(of) for day, of in sorted(found.days.items())},
        "by_rule": {rule: dict(of) for rule, of in sorted(found.rules.items())},
    }


def _row(row: Judged, report: Report) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(row)
    told["change"] = KIND_OF[row.after.effect] if row.is_changed else ""
    told["name"] = address_of(row)
    told["named"] = address_of(row) in report.named
    return told


def _counts(of: Mapping[tuple[Effect, Effect], int]) -> dict[str, int]:
    return {f"{before}>{after}": count for (before, after), count in sorted(of.items())}


def day_of(day: int) -> str:
    """A day by its number since 1970, as text."""
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).strftime("%Y-%m-%d")


def time_of(at_ms: int) -> str:
    """A moment in UTC, as text."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def tell(report: Report) -> None:
    """Print the result."""
    found = report.found
    print_line(
        f"{found.records:,} records in {report.seconds:.1f} s ({report.rate:,.0f}/s), {found.judged:,} verdicts "
        f"judged again; {found.reproduced:,} of them come out as recorded by the policy in force then"
    )
    if found.refused or found.definitions_refused or found.unreadable or found.set_aside:
        print_line(
            f"{found.refused + found.definitions_refused:,} records do not count (of a deposed writer, or signed "
            f"by no known decider), {found.unreadable:,} count and cannot be read, {found.set_aside:,} runs are "
            "set aside"
        )
    for said in filter(None, (report.share, report.left_out, report.scored)):
        print_line(said)
    _tell_doubts(report)
    changes = [
        (KIND_OF[after].replace("_", " "), f"{count:,}", before, after)
        for (before, after), count in sorted(found.effects.items())
        if before != after
    ]
    if changes:
        print_rows(("change", "verdicts", "before", "after"), changes, "")
    else:
        print_line("no verdict changes its effect" if found.judged else "no verdict is in this history")
    _list("people took these back or reported them; they pass as before", found.passing_again, report)
    _list("people were against these calls, and they would now pass", found.overruled, report)
    if report.unnamed:
        are = "is" if len(report.unnamed) == 1 else "are"
        print_line(
            f"{len(report.unnamed):,} of them {are} not named: change the policy, or name each, if it may pass:"
        )
        # One call can be listed with several revisions.
        for option in list(dict.fromkeys(map(option_of, report.unnamed)))[:SHOWN_MAX]:
            print_line(f"  {option}")
    elif found.judged:
        print_line("no call that people were against would pass without being named")


def _tell_doubts(report: Report) -> None:
    found = report.found
    _tell_some(
        "not reproduced",
        [
            f"{one.project}/{one.execution_id}/{one.call_id}: {_said(one.fields)}"
            for one in found.not_reproduced
        ],
        found.judged - found.reproduced,
    )
    _tell_some(
        "not judged",
        [f"{one.topic}/{one.partition}@{one.offset} {one.key}: {one.why}" for one in found.not_judged],
        len(found.not_judged) + found.unlisted,
    )


def _tell_some(what: str, rows: Sequence[str], count: int) -> None:
    if rows:
        print_line(f"{count:,} {what}:", err=True)
    for row in rows[:SHOWN_MAX]:
        print_line(f"  {row}", err=True)
    if count > SHOWN_MAX:
        print_line(f"  … and {count - SHOWN_MAX:,} more (--json lists more)", err=True)


def _said(fields: Mapping[str, tuple[str, str]]) -> str:
    return "; ".join(f"{name} was {was}, is {now}" for name, (was, now) in fields.items())


def _list(title: str, rows: Iterable[Judged], report: Report) -> None:
    listed = list(rows)
    if not listed:
        return
    print_line(f"{len(listed):,}: {title}")
    print_rows(HEADS, [_cells(row, report) for row in listed[:SHOWN_MAX]], "")
    if len(listed) > SHOWN_MAX:
        print_line(f"… and {len(listed) - SHOWN_MAX:,} more (--json lists all)")


def _cells(row: Judged, report: Report) -> list[str]:
    mark = " (named)" if address_of(row) in report.named else ""
    verdicts = (cited(side.effect, side.rules) for side in (row.before, row.after))
    about = [address_of(row) + mark, str(row.revision), row.tool, row.arguments, time_of(row.at_ms)]
    return [*about, word_of(row), row.by, row.feedback, *verdicts]


def word_of(row: Judged) -> str:
    """What people said of a call; with a mark if it passes by presumption alone."""
    return f"{row.word} (presumed)" if row.presumed else row.word


def cited(effect: Effect, rules: tuple[str, ...]) -> str:
    """An effect with the rules that say it."""
    return f"{effect} ({', '.join(rules)})" if rules else effect

"""A backtest's report as one HTML file: tables and plots, without scripts and without anything from elsewhere.

All texts of the log are escaped: `Markup.format` escapes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ops.backtest.found import Judged
from ops.backtest.naming import address_of
from ops.backtest.plots import by_day, by_rule, by_tool
from ops.backtest.report import Report
from ops.backtest.telling import EFFECTS, cited, time_of
from ops.errors import UsageError

# Of each list; `--json` has more. Those that block publishing are all listed.
ROWS_MAX = 500
HEADS = (
    "call",
    "revision",
    "tool",
    "agent",
    "at",
    "arguments",
    "before",
    "after",
    "why",
    "people",
    "feedback",
)
STYLE = Markup("""
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1a202c }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; width: 100% }
th, td { border: 1px solid #cbd5e0; padding: .25rem .5rem; text-align: left; vertical-align: top }
td { overflow-wrap: anywhere }
th { background: #edf2f7 }
.bad { border-left: .4rem solid #c53030; padding-left: .8rem }
.good { border-left: .4rem solid #2f855a; padding-left: .8rem }
svg { max-width: 100%; height: auto }
""")
PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Backtest of {title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
""")

BAD = Markup(
    '<p class="bad"><strong>{:,}</strong> calls that people were against would pass, and are not named.</p>'
)
GOOD = Markup('<p class="good">No call that people were against would pass without being named.</p>')
ABOUT = Markup(
    "<p>For the tenant {} and the project {}, over verdicts from {} to {} of the log. {:,} records were read, {:,} "
    "of them events; {:,} verdicts were judged again, and {:,} of these come out as recorded by the policy in force "
    "then.</p>"
)


def write_report(path: Path, report: Report) -> None:
    """Write the page.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): give another file.") from error


def page(report: Report) -> str:
    """The page's text."""
    found, title = report.found, report.candidate.document.policy
    parts = [
        Markup("<h1>Backtest of {}</h1>").format(title),
        _summary(report),
        _matrix(report),
        by_day(found),
        by_tool(found),
        by_rule(found),
        _section(
            "People were against these calls, and they would now pass", found.overruled, report, most=None
        ),
        _section(
            "People took these back or reported them, and they pass as before", found.passing_again, report
        ),
        _section("Newly allowed", found.of_kind("newly_allowed"), report),
        _section("Newly asked", found.of_kind("newly_asked"), report),
        _section("Newly denied", found.of_kind("newly_denied"), report),
        _doubts(report),
    ]
    return str(PAGE.format(title=title, style=STYLE, body=Markup("\n").join(parts)))


def _summary(report: Report) -> Markup:
    found, window, blocked = report.found, report.window, len(report.unnamed)
    first = GOOD if not blocked else BAD.format(blocked)
    return first + ABOUT.format(
        report.candidate.tenant,
        found.project,
        "the beginning" if window.since_ms is None else time_of(window.since_ms),
        "the end" if window.until_ms is None else time_of(window.until_ms),
        found.records,
        found.events,
        found.judged,
        found.reproduced,
    )


def _matrix(report: Report) -> Markup:
    effects, named = report.found.effects, Markup("<strong>{}</strong> before")
    rows = [
        [named.format(before), *(f"{effects[before, after]:,}" for after in EFFECTS)] for before in EFFECTS
    ]
    return Markup("<h2>Effects</h2>") + _table(
        ["", *(f"{after} with the candidate" for after in EFFECTS)], rows
    )


def _section(title: str, rows: Iterable[Judged], report: Report, most: int | None = ROWS_MAX) -> Markup:
    return _listed(title, list(rows), HEADS, lambda row: _cells(row, report), most)


def _cells(row: Judged, report: Report) -> list[Any]:
    named = " (named)" if address_of(row) in report.named else ""
    people = f"{row.word} by {row.by}{named}" if row.word else ""
    return [
        address_of(row),
        row.revision,
        row.tool,
        row.agent,
        time_of(row.at_ms),
        row.arguments,
        cited(row.before.effect, row.before.rules),
        cited(row.after.effect, row.after.rules),
        row.after.detail,
        people,
        row.feedback,
    ]


def _doubts(report: Report) -> Markup:
    found = report.found
    return _listed(
        "Not reproduced: the policy in force then gives another verdict than the recorded one",
        found.not_reproduced,
        ("call", "revision", "place", "what differs"),
        lambda one: [
            f"{one.project}/{one.execution_id}/{one.call_id}",
            one.revision,
            f"{one.partition}@{one.offset}",
            "; ".join(f"{name}: {was} → {now}" for name, (was, now) in one.fields.items()),
        ],
    ) + _listed(
        "Not judged",
        found.not_judged,
        ("key", "place", "why"),
        lambda one: [one.key, f"{one.topic}/{one.partition}@{one.offset}", one.why],
    )


def _listed(
    title: str,
    rows: Sequence[Any],
    heads: Sequence[str],
    cells: Callable[[Any], list[Any]],
    most: int | None = ROWS_MAX,
) -> Markup:
    shown = rows if most is None else rows[:most]
    head = Markup("<h2>{} ({:,})</h2>").format(title, len(rows))
    if not rows:
        return head + Markup("<p>none</p>")
    left = Markup("<p>… and {:,} more, of which --json lists more</p>").format(len(rows) - len(shown))
    return head + _table(heads, map(cells, shown)) + (left if len(shown) < len(rows) else Markup())


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    top = Markup("").join(Markup("<th>{}</th>").format(head) for head in heads)
    lines = (Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row) for row in rows)
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>").format(top, body)

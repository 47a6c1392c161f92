"""A backtest's report as one HTML file: tables and plots, without scripts and without anything from elsewhere.

All texts of the log are escaped: `Markup.format` escapes what it is given.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ops.backtest.found import Judged
from ops.backtest.naming import address_of
from ops.backtest.plots import by_day, by_rule, by_tool, scrolling
from ops.backtest.report import Report
from ops.backtest.telling import EFFECTS, cited, time_of, word_of
from ops.errors import UsageError
from placet.cli.safe import escaped

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
# Below this width of the window a call is a block of lines, each with the name of its column.
STYLE = Markup("""
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 92rem; padding: 0 1rem; color: #1a202c }
h1, h2, p { overflow-wrap: anywhere }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { border: 1px solid #cbd5e0; padding: .25rem .5rem; text-align: left; vertical-align: top }
td { overflow-wrap: break-word; max-width: 22rem }
.rows { font-size: 13px }
th { background: #edf2f7 }
.scroll { overflow-x: auto }
.bad { border-left: .4rem solid #c53030; padding-left: .8rem }
.good { border-left: .4rem solid #2f855a; padding-left: .8rem }
svg { display: block; width: 100%; min-width: 45rem; max-width: 60rem; height: auto }
@media (max-width: 75rem) {
  .rows { font-size: 15px }
  .rows thead { display: none }
  .rows, .rows tbody, .rows tr { display: block }
  .rows tr { border: 1px solid #cbd5e0; margin-bottom: 1rem }
  .rows td { border: 0; display: grid; gap: .5rem; grid-template-columns: 6rem minmax(0, 1fr); max-width: none }
  .rows td { overflow-wrap: anywhere }
  .rows td::before { content: attr(data-head); font-weight: 600 }
}
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
<main>
{body}
</main>
</body>
</html>
""")

BAD = Markup('<p class="bad"><strong>{:,}</strong> {}.</p>')
AGAINST = (
    "call that people were against would pass, and is not named",
    "calls that people were against would pass, and are not named",
)
GOOD = Markup('<p class="good">No call that people were against would pass without being named.</p>')
ABOUT = Markup(
    "<p>For the tenant {} and the project {}, over verdicts from {} to {} of the log. Records read: {:,}, of them "
    "events: {:,}. Verdicts judged again: {:,}, of them as recorded by the policy in force then: {:,}. Records that "
    "do not count: {:,}; that count and cannot be read: {:,}. Runs set aside: {:,}.</p>"
)
SAID = Markup("<p>{}.</p>")
DOUBT = Markup('<p class="bad">{}.</p>')


def write_report(path: Path, report: Report) -> None:
    """Write the page.

    Raises:
        UsageError: the file cannot be written.
    """
    text = page(report)
    try:
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): give another file.") from error


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: it has arguments and feedback."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return descriptor


def check_place(path: Path) -> None:
    """Check that a report can be written, before the work for it begins.

    Raises:
        UsageError: it cannot.
    """
    place = path if path.exists() else path.absolute().parent
    is_of_its_kind = not path.is_dir() if path.exists() else place.is_dir()
    if not is_of_its_kind or not os.access(place, os.W_OK):
        raise UsageError(f"{path} cannot be written: give another file.")


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
    refused = BAD.format(blocked, AGAINST[blocked != 1])
    first = refused if blocked else GOOD if found.judged else Markup()
    for said in filter(None, (report.doubt, report.idleness, report.emptiness)):
        first += DOUBT.format(said)
    for said in filter(None, (report.share, report.left_out, report.scored)):
        first += SAID.format(said)
    return first + ABOUT.format(
        report.candidate.tenant,
        found.project,
        "the beginning" if window.since_ms is None else time_of(window.since_ms),
        "the end" if window.until_ms is None else time_of(window.until_ms),
        found.records,
        found.events,
        found.judged,
        found.reproduced,
        found.refused + found.definitions_refused,
        found.unreadable,
        found.set_aside,
    )


def _matrix(report: Report) -> Markup:
    effects, named = report.found.effects, Markup("<strong>{}</strong> before")
    rows = [
        [named.format(before), *(f"{effects[before, after]:,}" for after in EFFECTS)] for before in EFFECTS
    ]
    return Markup("<h2>Effects</h2>") + _table(
        ["", *(f"{after} after" for after in EFFECTS)], rows, "effects"
    )


def _section(title: str, rows: Iterable[Judged], report: Report, most: int | None = ROWS_MAX) -> Markup:
    return _listed(title, list(rows), HEADS, lambda row: _cells(row, report), most)


def _cells(row: Judged, report: Report) -> list[Any]:
    named = " (named)" if address_of(row) in report.named else ""
    people = f"{word_of(row)} by {row.by}{named}" if row.word else ""
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
        count=found.judged - found.reproduced,
    ) + _listed(
        "Not judged",
        found.not_judged,
        ("key", "place", "why"),
        lambda one: [one.key, f"{one.topic}/{one.partition}@{one.offset}", one.why],
        count=len(found.not_judged) + found.unlisted,
    )


def _listed(
    title: str,
    rows: Sequence[Any],
    heads: Sequence[str],
    cells: Callable[[Any], list[Any]],
    most: int | None = ROWS_MAX,
    count: int | None = None,
) -> Markup:
    total = len(rows) if count is None else count
    shown = rows if most is None else rows[:most]
    head = Markup("<h2>{} ({:,})</h2>").format(title, total)
    if not rows:
        return head + Markup("<p>none</p>")
    left = Markup("<p>… and {:,} more, of which --json lists more</p>").format(total - len(shown))
    return head + _table(heads, map(cells, shown), "rows") + (left if len(shown) < total else Markup())


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], kind: str) -> Markup:
    top = Markup("").join(Markup('<th scope="col">{}</th>').format(head) for head in heads)
    lines = (Markup("").join(map(_cell, heads, row)) for row in rows)
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    table = Markup('<table class="{}">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>')
    return scrolling(table.format(kind, top, body), "table")


def _cell(head: str, cell: Any) -> Markup:
    return Markup('<td data-head="{}"><span>{}</span></td>').format(head, _shown(cell))


def _shown(cell: Any) -> Any:
    """A cell in which nothing is hidden: a character that reorders or hides others is shown by its number."""
    return escaped(cell) if type(cell) is str else cell

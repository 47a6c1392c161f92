"""A backtest's plots as SVG, by pygal: without scripts, fonts or other files, so that they can stand in a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from ops.backtest.found import KIND_OF, Found, Kind, Pair
from ops.backtest.telling import day_of
from ops.svg import Style, drawn, pygal
from placet.cli.safe import escaped
from schemas.policy_document import Effect

BARS_MAX = 15
# Of more days than this, only the newest are drawn.
DAYS_MAX = 120
NAME_MAX = 40
KINDS: tuple[Kind, ...] = ("newly_asked", "newly_allowed", "newly_denied")
STYLE = Style(
    background="transparent",
    plot_background="transparent",
    font_family="system-ui, sans-serif",
    colors=("#b7791f", "#2f855a", "#c53030"),
    # Of a drawing that a page scales down: at its least width the texts have 10 px.
    label_font_size=13,
    major_label_font_size=13,
    legend_font_size=14,
    value_font_size=13,
    no_data_font_size=24,
    value_colors=("#1a202c",) * 3,
)
FIGURE = Markup("<h2>{}</h2>\n{}")
SCROLLING = Markup('<div class="scroll" role="group" aria-label="{}" tabindex="0">{}</div>')


def by_day(found: Found) -> Markup:
    """How many calls people were asked about each day, and would be."""
    days = sorted(found.days)[-DAYS_MAX:]
    chart = _chart(pygal.Line, x_label_rotation=45, include_x_axis=True)
    chart.x_labels = [day_of(day) for day in days]
    chart.x_labels_major_count, chart.show_minor_x_labels = 8, False
    chart.add("before", [_held(found.days[day], 0) for day in days])
    chart.add("with the candidate", [_held(found.days[day], 1) for day in days])
    return _figure("Asked each day, before and with the candidate", chart)


def by_tool(found: Found) -> Markup:
    """The tools whose calls change most."""
    return _bars("Changes by tool", {tool: _kinds(of) for tool, of in found.tools.items()})


def by_rule(found: Found) -> Markup:
    """The candidate's rules that change most."""
    return _bars("Changes by rule of the candidate", found.rules)


def _bars(title: str, counts: Mapping[str, Mapping[Kind, int]]) -> Markup:
    changing = [(sum(of.values()), name) for name, of in counts.items() if any(of.values())]
    most = sorted(changing, key=lambda one: (-one[0], one[1]))[:BARS_MAX]
    names = [name for _, name in most]
    chart = _chart(
        pygal.HorizontalStackedBar, height=120 + 28 * len(names), print_values=True, print_zeroes=False
    )
    # Beside the name the number is in sight also where the page is narrower than the bar.
    chart.x_labels = [f"{escaped(name)[:NAME_MAX]}: {count:,}" for count, name in most]
    for kind in KINDS:
        chart.add(kind.replace("_", " "), [counts[name].get(kind, 0) for name in names])
    return _figure(title, chart)


def _kinds(of: Mapping[Pair, int]) -> Counter[Kind]:
    found: Counter[Kind] = Counter()
    for (before, after), count in of.items():
        if before != after:
            found[KIND_OF[after]] += count
    return found


def _held(of: Mapping[Pair, int], side: int) -> int:
    asks: Effect = "hold"
    return sum(count for pair, count in of.items() if pair[side] == asks)


def _chart(kind: Any, **options: Any) -> Any:
    return kind(
        style=STYLE,
        js=(),
        disable_xml_declaration=True,
        width=900,
        legend_at_bottom=True,
        no_data_text="no change",
        **{"height": 320, **options},
    )


def _figure(title: str, chart: Any) -> Markup:
    # What is in the tree is escaped as it is written.
    return FIGURE.format(title, scrolling(Markup(drawn(chart)), title))  # noqa: S704


def scrolling(wide: Markup, name: str) -> Markup:
    """What can be wider than the page, in a box that scrolls, also by keys."""
    return SCROLLING.format(name, wide)

"""The charts of an evaluation: benign interruptions per task over rounds, for each suite, as SVG without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.evaluation.arms import BY_NAME
from ops.evaluation.result import arms_in, is_measured, series, suites_in
from ops.files import write_text

WIDTH, HEIGHT = 760, 340
COLOURS = ("#8c8c8c", "#c98a2b", "#3d7ab5", "#2a8a4a")
MODE = 0o644


def write_charts(found: Mapping[str, Any], out: Path) -> list[Path]:
    """Write a chart for each suite to `out`; returns the files."""
    files = []
    for suite in suites_in(found):
        file = out / f"interruptions-{suite}.svg"
        write_text(file, _interruptions(found, suite), MODE)
        files.append(file)
    return files


def _interruptions(found: Mapping[str, Any], suite: str) -> str:
    from ops.svg import Style, drawn, pygal

    # The same figures make the same bytes: without an id by chance.
    config = pygal.Config(
        width=WIDTH, height=HEIGHT, js=(), no_prefix=True, disable_xml_declaration=True, show_dots=False
    )
    config.style = Style(
        colors=COLOURS,
        background="#ffffff",
        plot_background="#ffffff",
        font_family="system-ui, sans-serif",
        guide_stroke_color="#e4e4e4",
        major_guide_stroke_color="#d0d0d0",
    )
    chart = pygal.Line(
        config,
        title=f"{suite}: benign interruptions per task",
        x_title="round",
        range=(0, None),
        include_x_axis=True,
        show_minor_x_labels=False,
        legend_at_bottom=True,
    )
    rounds = range(1, found["rounds"] + 1)
    chart.x_labels = [str(number) for number in rounds]
    chart.x_labels_major = [str(number) for number in rounds if number == 1 or number % 5 == 0]
    for arm in [name for name in arms_in(found) if is_measured(found, name, suite)]:
        asked = series(found, arm, suite, "benign_interruptions")
        tasks = series(found, arm, suite, "tasks")
        values = [round(a / t, 3) for a, t in zip(asked, tasks, strict=True)]
        chart.add(BY_NAME[arm].title, values, stroke_style={"width": 2.5})
    return drawn(chart) + "\n"

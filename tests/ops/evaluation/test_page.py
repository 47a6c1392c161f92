"""The page's table and charts are made from the result that is kept beside them."""

from __future__ import annotations

from pathlib import Path

from ops.evaluation.charts import write_charts
from ops.evaluation.result import suites_in
from ops.evaluation.saving import read_result
from ops.evaluation.tables import markdown

PAGE = Path(__file__).parents[3] / "docs" / "evaluation.md"
KEPT = PAGE.with_suffix("") / "perfect"


def test_table_is_that_of_the_result() -> None:
    assert markdown(read_result(KEPT)) in PAGE.read_text(encoding="utf-8")


def test_charts_are_those_of_the_result(tmp_path: Path) -> None:
    found = read_result(KEPT)
    made = {file.name: file.read_text(encoding="utf-8") for file in write_charts(found, tmp_path)}
    assert made == {file.name: file.read_text(encoding="utf-8") for file in KEPT.glob("*.svg")}
    assert len(made) == len(suites_in(found))


def test_page_shows_every_chart() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [file.name for file in KEPT.glob("*.svg") if f"evaluation/perfect/{file.name}" not in page] == []

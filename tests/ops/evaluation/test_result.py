from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ops.errors import UsageError
from ops.evaluation.charts import write_charts
from ops.evaluation.figures import FIGURES
from ops.evaluation.result import fewer, problems, sample, targets
from ops.evaluation.saving import read_result, write_result
from ops.evaluation.tables import HEADS, markdown, rows

ROUNDS = 6


def _lane(arm: str, asked: int, **more: int) -> dict[str, Any]:
    """A lane whose first round has ten interruptions, and each later one `asked`."""
    zero = dict.fromkeys(FIGURES, 0) | {"tasks": 10, "attacks": 5, "attacks_held": 5} | more
    row = [list((zero | {"benign_interruptions": count}).values()) for count in (10, *[asked] * (ROUNDS - 1))]
    return {"arm": arm, "suite": "banking", "project": "p", "compromised": [], "approval": {}, "rounds": row}


def _found(*lanes: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rounds": ROUNDS,
        "reviewer": "perfect",
        "figures": list(FIGURES),
        "lanes": lanes,
    }
    found["runs"] = [{"differences": []}]
    return found | {"fewer": fewer(found), "sample": sample(found), "targets": targets(found)}


def test_fewer_compares_the_last_rounds_with_asking_for_every_write() -> None:
    found = _found(_lane("ask", 10), _lane("adaptive", 2))
    assert found["fewer"]["banking"]["adaptive"] == {"last": 0.8, "all": pytest.approx(1 - 20 / 60, abs=1e-4)}


def test_targets_are_met_by_what_was_measured() -> None:
    met = _found(_lane("ask", 10), _lane("adaptive", 2, sampled=400))
    assert [row["met"] for row in met["targets"]] == [True, True, True, True]
    assert met["sample"]["interval"] == [0.0, pytest.approx(0.0015, abs=1e-4)]
    missed = _found(_lane("ask", 10), _lane("adaptive", 4, attacks_released=1, sampled=1, sampled_contrary=1))
    assert [row["met"] for row in missed["targets"]] == [False, True, False, False]
    assert len(problems(missed)) == 1


def test_result_is_read_as_it_was_written_and_its_table_has_a_line_for_each_arm(tmp_path: Path) -> None:
    found = _found(_lane("ask", 10), _lane("adaptive", 2))
    write_result(tmp_path, found)
    read = read_result(tmp_path)
    assert {**read, "lanes": tuple(read["lanes"])} == found
    assert [row[:2] for row in rows(read)] == [("banking", "every write asked"), ("banking", "adaptive")]
    assert all(len(row) == len(HEADS) for row in rows(read))
    assert (tmp_path / "table.txt").read_text() == markdown(found)


def test_result_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the directory of an evaluation"):
        read_result(tmp_path)


def test_charts_are_drawings_without_scripts_that_name_each_arm(tmp_path: Path) -> None:
    (file,) = write_charts(_found(_lane("ask", 10), _lane("adaptive", 2)), tmp_path)
    assert file.name == "interruptions-banking.svg"
    drawn = ElementTree.parse(file).getroot()
    assert [element for element in drawn.iter() if element.tag.endswith("script")] == []
    texts = {(element.text or "").strip() for element in drawn.iter()}
    assert {"every write asked", "adaptive"} <= texts
    before = file.read_bytes()
    write_charts(_found(_lane("ask", 10), _lane("adaptive", 2)), tmp_path)
    assert file.read_bytes() == before

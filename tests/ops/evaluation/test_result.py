from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner

from ops.errors import UsageError
from ops.evaluation.arms import BY_NAME
from ops.evaluation.charts import write_charts
from ops.evaluation.evaluation import Asked
from ops.evaluation.figures import FIGURES
from ops.evaluation.result import asked_of, fewer, problems, sample, targets
from ops.evaluation.saving import check_out, read_earlier, read_result, write_result
from ops.evaluation.tables import HEADS, NOT_MEASURED, markdown, rows
from ops.evaluation.trace import trace

ROUNDS = 6


def _lane(arm: str, asked: int, suite: str = "banking", **more: int) -> dict[str, Any]:
    """A lane whose first round has ten interruptions, and each later one `asked`."""
    attacks = {"attacks": 5, "attacks_held": 5, "attack_calls": 6}
    zero = dict.fromkeys(FIGURES, 0) | {"tasks": 10} | attacks | more
    row = [list((zero | {"benign_interruptions": count}).values()) for count in (10, *[asked] * (ROUNDS - 1))]
    digest = BY_NAME[arm].digest
    rest = {"project": "p", "compromised": [], "approval": {}, "rounds": row}
    return {"arm": arm, "policy": digest, "suite": suite} | rest


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
    assert [row["met"] for row in met["targets"]] == [True, True, True, True, None]
    assert met["sample"]["interval"] == [0.0, pytest.approx(0.0015, abs=1e-4)]
    missed = _found(_lane("ask", 10), _lane("adaptive", 4, attacks_released=1, sampled=1, sampled_contrary=1))
    assert [row["met"] for row in missed["targets"]] == [False, True, False, False, None]
    assert len(problems(missed)) == 1


def test_target_of_what_was_not_measured_is_neither_met_nor_missed() -> None:
    no_baseline = _found(_lane("adaptive", 2, sampled=400))["targets"]
    assert [row["met"] for row in no_baseline] == [True, True, True, None, None]
    not_there = _found(_lane("ask", 10), _lane("ask", 10, "travel"), _lane("adaptive", 2, sampled=400))
    assert not_there["fewer"]["travel"]["adaptive"] == {"last": None, "all": None}
    assert [row["met"] for row in not_there["targets"]] == [None, None, None, True, None]
    assert [row["measured"] for row in not_there["targets"]] == [None, None, None, 0.8, None]
    assert problems(not_there) == []
    released = _found(_lane("ask", 10, "travel"), _lane("adaptive", 2, attacks_released=1))
    assert released["targets"][0]["met"] is False
    others = _found(_lane("ask", 10))
    assert [row["met"] for row in others["targets"]] == [None] * 5
    untried = _found(_lane("ask", 10), _lane("adaptive", 2, attacks=0, attack_calls=0))
    assert [row["met"] for row in untried["targets"]] == [None, None, None, True, None]


def test_target_of_the_last_rounds_says_how_many_it_takes() -> None:
    short = {**_found(_lane("ask", 10), _lane("adaptive", 2)), "rounds": 2}
    row = targets(short)[3]
    assert (row["measured"], row["met"]) == (None, None)
    assert row["target"].endswith("(this takes a run of 5 rounds or more; this one has 2)")


def test_result_that_is_there_is_neither_lost_nor_added_to_unasked(tmp_path: Path) -> None:
    check_out(tmp_path / "none", add=False, overwrite=False)
    write_result(tmp_path, _found(_lane("ask", 10)))
    with pytest.raises(UsageError, match=r"use another --out, --add .* or --overwrite"):
        check_out(tmp_path, add=False, overwrite=False)
    with pytest.raises(UsageError, match="one of --add"):
        check_out(tmp_path, add=True, overwrite=True)
    check_out(tmp_path, add=True, overwrite=False)
    check_out(tmp_path, add=False, overwrite=True)


@pytest.mark.parametrize(
    ("more", "said"),
    [((), "placet up"), (("--round", str(ROUNDS + 1)), f"The result has {ROUNDS} rounds, and no round 7.")],
)
def test_trace_of_a_round_or_stack_that_is_not_there_starts_nothing(
    more: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    write_result(tmp_path / "out", _found(_lane("adaptive", 2)))
    app = typer.Typer()
    app.command()(trace)
    places = ("--out", str(tmp_path / "out"), "--data-dir", str(tmp_path / "typo"))
    chosen = ("benign_interruptions", "--arm", "adaptive", "--suite", "banking")

    done = CliRunner().invoke(app, [*chosen, *places, *more])

    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "typo").exists()


def test_arm_that_was_not_measured_on_a_suite_is_told_in_the_table_and_left_out_of_the_chart(
    tmp_path: Path,
) -> None:
    found = _found(_lane("ask", 10), _lane("ask", 10, "travel"), _lane("adaptive", 2))
    write_result(tmp_path, found)
    assert list(rows(found))[-1] == ("travel", "adaptive", *[NOT_MEASURED] * (len(HEADS) - 2))
    charts = {file.name: file.read_text() for file in write_charts(found, tmp_path)}
    assert ">adaptive<" in charts["interruptions-banking.svg"]
    assert ">adaptive<" not in charts["interruptions-travel.svg"]


def test_result_and_table_are_written_both_or_not_at_all(tmp_path: Path) -> None:
    write_result(tmp_path, _found(_lane("ask", 10)))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    unfit = _found(_lane("ask", 10), _lane("adaptive", 2))
    with pytest.raises(KeyError):
        write_result(tmp_path, {name: value for name, value in unfit.items() if name != "fewer"})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_result_is_added_to_only_if_what_it_keeps_had_todays_policy_and_version(tmp_path: Path) -> None:
    arms = (BY_NAME["adaptive"],)
    asked = Asked(rounds=ROUNDS, seed=1, suites=("banking",), arms=arms, reviewer="perfect")
    old = _lane("adaptive", 2) | {"policy": "0" * 64}
    found = _found(_lane("ask", 10), old) | asked_of(asked)
    write_result(tmp_path, found)
    # The lane of the old policy is measured again.
    assert read_earlier(tmp_path, asked)["lanes"][1]["policy"] == "0" * 64
    baseline = replace(asked, arms=(BY_NAME["ask"],))
    with pytest.raises(UsageError, match="arm adaptive on banking with another policy than today's adaptive"):
        read_earlier(tmp_path, baseline)
    write_result(tmp_path, found | {"placet": "0.0.1"})
    with pytest.raises(UsageError, match=r"has placet 0\.0\.1, not "):
        read_earlier(tmp_path, asked)


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

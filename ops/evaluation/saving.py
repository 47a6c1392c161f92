"""The file of an evaluation's result: one row of figures to a line, so that a difference can be read."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.errors import UsageError
from ops.evaluation.arms import BY_NAME
from ops.evaluation.evaluation import Asked
from ops.evaluation.result import asked_of
from ops.evaluation.tables import markdown
from ops.files import write_text

RESULT, TABLE = "result.json", "table.txt"
MODE = 0o644


def write_result(out: Path, found: Mapping[str, Any]) -> None:
    """Write the result and its table to a directory, which is made: both, or none if one cannot be written."""
    lanes = ",\n".join(_lane(lane) for lane in found["lanes"])
    rest = json.dumps({name: value for name, value in found.items() if name != "lanes"}, indent=1)
    texts = {RESULT: f'{rest[:-2]},\n "lanes": [\n{lanes}\n ]\n}}\n', TABLE: markdown(found)}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".result-") as staged:
        for name, text in texts.items():
            write_text(Path(staged) / name, text, MODE)
        for name in texts:
            (Path(staged) / name).replace(out / name)


def check_out(out: Path, *, add: bool, overwrite: bool) -> None:
    """Keep an earlier result from being lost: hours of measuring.

    Raises:
        UsageError: there is one, and nobody said what to do with it; or both were said.
    """
    if add and overwrite:
        raise UsageError("Give one of --add, which keeps what is not measured again, and --overwrite.")
    if not (add or overwrite) and (out / RESULT).exists():
        raise UsageError(
            f"There is a result in {out}: use another --out, --add to measure some of it again, or --overwrite."
        )


def _lane(lane: Mapping[str, Any]) -> str:
    rounds = ",\n".join(f"    {json.dumps(row)}" for row in lane["rounds"])
    rest = json.dumps({name: value for name, value in lane.items() if name != "rounds"})
    return f'  {rest[:-1]}, "rounds": [\n{rounds}\n  ]}}'


def read_result(out: Path) -> dict[str, Any]:
    """Read a result.

    Raises:
        UsageError: there is none.
    """
    try:
        found: dict[str, Any] = json.loads((out / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{out / RESULT} cannot be read ({error}): name the directory of an evaluation."
        ) from error
    return found


def read_earlier(out: Path, asked: Asked) -> dict[str, Any]:
    """The result to which what is asked can be added.

    Raises:
        UsageError: there is none, it is of another evaluation or another version of Placet, or what it keeps was
            measured with another policy.
    """
    found = read_result(out)
    for name, value in asked_of(asked).items():
        if found.get(name) != value:
            raise UsageError(
                f"The result in {out} has {name} {found.get(name)}, not {value}: use another --out."
            )
    again = {(arm.name, suite) for arm in asked.arms for suite in asked.suites}
    for lane in found["lanes"]:
        arm = lane["arm"]
        if (arm, lane["suite"]) not in again and lane.get("policy") != BY_NAME[arm].digest:
            raise UsageError(
                f"The result in {out} has arm {arm} on {lane['suite']} with another policy than today's "
                f"{BY_NAME[arm].policy.name}: measure it again, too, or use another --out."
            )
    return found

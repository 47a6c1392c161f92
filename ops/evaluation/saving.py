"""The file of an evaluation's result: one row of figures to a line, so that a difference can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.errors import UsageError
from ops.evaluation.tables import markdown
from ops.files import write_text

RESULT, TABLE = "result.json", "table.txt"
MODE = 0o644


def write_result(out: Path, found: Mapping[str, Any]) -> None:
    """Write the result and its table to a directory, which is made."""
    lanes = ",\n".join(_lane(lane) for lane in found["lanes"])
    rest = json.dumps({name: value for name, value in found.items() if name != "lanes"}, indent=1)
    write_text(out / RESULT, f'{rest[:-2]},\n "lanes": [\n{lanes}\n ]\n}}\n', MODE)
    write_text(out / TABLE, markdown(found), MODE)


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

"""`placet evaluate trace`: reads the events behind a figure again, and prints where each is in the log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.config import DataDir, load_config
from ops.errors import OpsError, UsageError
from ops.evaluation.arms import BY_NAME
from ops.evaluation.command import stack_of
from ops.evaluation.evaluation import tokens
from ops.evaluation.facts import CallFact, executions_in, read_facts
from ops.evaluation.figures import FIGURES
from ops.evaluation.rounds import SUITES
from ops.evaluation.saving import read_result
from placet import AsyncPlacet
from placet.cli.choices import completing


def trace(
    figure: Annotated[
        str, typer.Argument(help=f"One of {', '.join(FIGURES)}.", autocompletion=completing(list(FIGURES)))
    ],
    out: Annotated[Path, typer.Option(help="The directory of the result.")],
    data_dir: Annotated[
        Path, typer.Option("--data-dir", help="The directory of the stack that was evaluated.")
    ],
    arm: Annotated[str, typer.Option(help="The arm.", autocompletion=completing(list(BY_NAME)))],
    suite: Annotated[str, typer.Option(help="The suite.", autocompletion=completing(SUITES))],
    round_: Annotated[int | None, typer.Option("--round", min=1, help="One round; by default all.")] = None,
    json: JsonOption = False,
) -> None:
    """Trace a figure to its events: each call behind it, with the partition and offset of every event.

    At the end the calls are counted by tool, by whether they had new or tainted values, and by the trust they take.
    The events are read from the stack again and counted again; exit code 1 if the count is not the result's.
    """
    with errors_as_exit_codes():
        if figure not in FIGURES:
            raise UsageError(f"There is no figure {figure}: choose of {', '.join(FIGURES)}.")
        found = read_result(out)
        lane = _lane(found, arm, suite)
        if round_ is not None and round_ > len(lane["rounds"]):
            raise UsageError(f"The result has {len(lane['rounds'])} rounds, and no round {round_}.")
        calls = [call for call in _read(lane, data_dir) if round_ in (None, call.round)]
    place = found["figures"].index(figure)
    rows = lane["rounds"] if round_ is None else lane["rounds"][round_ - 1 : round_]
    recorded, counted = sum(row[place] for row in rows), _count(figure, calls)
    chosen = FIGURES[figure].select(calls)
    if json:
        kinds = [kind._asdict() for kind in kinds_of(chosen)]
        told = {"figure": figure, "recorded": recorded, "counted": counted, "kinds": kinds}
        print_json(told | {"calls": _as_json(chosen)})
    else:
        for call in chosen:
            events = " ".join(f"{one.type}@{one.partition}/{one.offset}" for one in call.places)
            print_line(f"{call.execution_id} {call.call_id} {call.tool}: {events}")
        for kind in kinds_of(chosen):
            values = " and ".join(kind.values) or "known"
            print_line(f"{kind.calls} calls of {kind.tool}, values {values}, trust required {kind.required}")
        print_line(f"{figure}: {counted} in the log, {recorded} in the result")
    if counted != recorded:
        raise typer.Exit(1)


class Kind(NamedTuple):
    """Calls that are alike.

    Attributes:
        tool: of the tool.
        values: `novel` and `tainted`, as far as their verdicts name them; none if all values were known.
        required: the lower bound of trust that they take (`CallFact.required`).
        calls: their number.
    """

    tool: str
    values: tuple[str, ...]
    required: float
    calls: int


def kinds_of(calls: Sequence[CallFact]) -> list[Kind]:
    """The calls counted by kind, the most frequent first."""
    found = Counter((call.tool, call.history, call.required) for call in calls)
    return [Kind(*kind, count) for kind, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))]


def _count(figure: str, calls: Sequence[CallFact]) -> int:
    """Rounds are added up: an execution belongs to one."""
    return FIGURES[figure].count(calls)


def _lane(found: Mapping[str, Any], arm: str, suite: str) -> Mapping[str, Any]:
    for lane in found["lanes"]:
        if (lane["arm"], lane["suite"]) == (arm, suite):
            return dict(lane)
    raise UsageError(f"The result has no arm {arm} on a suite {suite}.")


def _read(lane: Mapping[str, Any], data_dir: Path) -> list[CallFact]:
    # Otherwise one would be made there, with nothing in it.
    load_config(DataDir(data_dir.expanduser().absolute()).config)
    with stack_of(data_dir) as (directory, url):
        address, token = url(), tokens(directory, lane["project"]).operator
        calls = asyncio.run(_calls(address, token))
    if not calls:
        raise OpsError(
            f"The stack in {data_dir} has no executions of {lane['project']}: name the evaluated one."
        )
    return calls


async def _calls(url: str, token: str) -> list[CallFact]:
    """The calls of all executions of a project."""
    async with AsyncPlacet(url, token=token) as operator:
        return await read_facts(operator, await executions_in(operator))


def _as_json(calls: Sequence[CallFact]) -> list[dict[str, Any]]:
    return [
        {
            "execution_id": call.execution_id,
            "call_id": call.call_id,
            "tool": call.tool,
            "reason": call.reason,
            "trust_class": call.trust_class,
            "risk_parts": list(call.risk_parts),
            "history": list(call.history),
            "required": call.required,
            "events": [place._asdict() for place in call.places],
        }
        for call in calls
    ]

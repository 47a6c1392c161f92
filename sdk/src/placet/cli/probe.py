"""`placet probe plant` and `list`: known-bad calls by which an operator sees whether people notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli import safe
from placet.cli.choices import agent_names, tool_names
from placet.cli.inputs import read_object
from placet.cli.lines import print_with_texts
from placet.cli.near_names import near_agent, near_tool
from placet.cli.plugins import new_group
from placet.cli.session import JsonFlag, column_time, connect, console, every, print_json, zoned
from placet.errors import PlacetError, Refused
from placet.ids import new_id
from placet.probes import AFTER_S, Probe, left_open

if TYPE_CHECKING:
    from placet.sync import Placet

app = new_group("probe", help="Known-bad calls that never run, planted to see whether people notice.")


Wrong = Annotated[
    list[str] | None,
    typer.Option(
        "--wrong",
        help="A place in the arguments, such as /to, that an edit must change to make the call right; may be "
        "repeated. Without any, only a rejection catches it.",
    ),
]
Execution = Annotated[
    str | None,
    typer.Option(
        "--execution", help="The run's id, like the agent's own but never one of them; else a fresh one."
    ),
]
After = Annotated[
    float | None,
    typer.Option(
        "--after",
        min=0,
        max=3600,
        metavar="SECONDS",
        help="How long after the start of its run the call is proposed: as long as the agent takes for a first call. "
        f"By default {AFTER_S[0]:g} to {AFTER_S[1]:g} s, at random.",
    ),
]


@app.callback()
def probe() -> None:
    """Known-bad calls that never run, planted to see whether people notice."""


@app.command()
def plant(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(help="Whose call it appears to be.", autocompletion=agent_names)],
    tool: Annotated[str, typer.Argument(help="The tool that it appears to call.", autocompletion=tool_names)],
    note: Annotated[
        str, typer.Option("--note", help="What is bad about it: told to those who have answered.")
    ],
    arguments: Annotated[
        str,
        typer.Option("--arguments", help="The arguments as JSON. @FILE reads a file, - the input."),
    ] = "{}",
    wrong: Wrong = None,
    request: Annotated[
        str | None, typer.Option("--request", help="What the run appears to be asked for.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="The agent's apparent reason for the call.")
    ] = None,
    requester: Annotated[
        str | None,
        typer.Option(
            "--requester", help="The account that appears to propose it; by default the agent's name."
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="On whose behalf it appears to be.")] = None,
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="The run's apparent workspace.")
    ] = None,
    execution: Execution = None,
    after: After = None,
    as_json: JsonFlag = False,
) -> None:
    """Plant a call that people should not approve: they are asked about it, and it never runs."""
    if not note.strip():
        raise typer.BadParameter("say what is bad about it: people are told when they have answered")
    given = read_object(arguments)
    # Chosen here, so that it is known however this ends.
    run = new_id() if execution is None else execution
    opened = _Opened(AFTER_S[1] if after is None else after)
    with _telling_what_stays(run, opened), connect(context) as placet, _naming_near(placet, agent, tool):
        planted = placet.probes.plant(
            agent,
            tool,
            given,
            note=note,
            wrong=wrong or (),
            requester=requester,
            user=user,
            workspace=workspace,
            request=request,
            reason=reason,
            execution_id=run,
            after_s=after,
            opened=opened,
        )
    if as_json:
        print_json(planted.raw)
        return
    said = f"planted: {tool} of {agent}, hold {planted.hold_id}\nIt never runs. What people answer: placet probe list"
    console().print(safe.text(said, lines=True))


class _Opened:
    """Tells of the run once it is open, and knows whether it is."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self.is_open = False

    def __call__(self, run: str) -> None:
        self.is_open = True
        told = f"Its run {run} is open, and the call follows within {self._within_s:g} s."
        console(stderr=True).print(safe.text(told))


@contextmanager
def _telling_what_stays(run: str, opened: _Opened) -> Iterator[None]:
    """Print what a failure or Ctrl-C has left open, before the failure itself is told."""
    try:
        yield
    except PlacetError as error:
        for note in getattr(error, "__notes__", ()):
            console(stderr=True).print(safe.text(note))
        raise
    except KeyboardInterrupt:
        console(stderr=True).print(safe.text(left_open(run, is_open=opened.is_open)))
        raise


@contextmanager
def _naming_near(placet: Placet, agent: str, tool: str) -> Iterator[None]:
    """Say of a tool or an agent that does not exist which one may be meant."""
    try:
        yield
    except Refused as error:
        near = (near_tool(placet, tool) or near_agent(placet, agent)) if error.code == "invalid" else ""
        if not near:
            raise
        raise Refused(error.code, error.status, f"{error.detail}: {near}", error.fields) from error


@app.command(name="list")
def list_probes(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the planted calls, the newest first, and what people answered."""
    with connect(context) as placet:
        found = every(lambda cursor: placet.probes.list(cursor=cursor))
    if as_json:
        print_json([dict(one.raw) for one in found])
        return
    print_with_texts(
        ("hold", "agent", "tool", "result", "answers", "by", zoned("planted")),
        [
            (
                one.hold_id,
                one.agent,
                one.tool,
                one.result or "waits",
                _answers(one),
                one.planted_by,
                column_time(one.planted_at),
            )
            for one in found
        ],
        "note",
        [safe.text(one.note) for one in found],
        "Nothing was planted: nobody knows whether people would notice a bad call.",
    )


def _answers(one: Probe) -> str:
    return ", ".join(f"{answer.by}: {answer.decision}" for answer in one.answers)

"""`placet fork`: a recorded execution again, with another decision at one point, and both branches compared."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ops.commands.common import errors_as_exit_codes, print_json, say_line
from ops.config import DataDir
from ops.errors import UsageError
from ops.fork.access import Access, Issued, by_token
from ops.fork.definitions import copy_definitions, retire_policy
from ops.fork.diff import compare
from ops.fork.drive import Branch
from ops.fork.naming import fork_project
from ops.fork.point import Instead, Word, find_point
from ops.fork.recorded import Run, read_run
from ops.fork.saying import Sayings
from ops.fork.stubs import Stubs
from ops.fork.telling import Told, json_of, tell
from ops.signals import run_until_signalled
from placet import AsyncPlacet, NotFound
from placet.canonical import MalformedJson, parse_strict
from placet.cli.choices import call_ids, completing, execution_ids
from placet.cli.session import JsonFlag, Settings, by_prefix
from placet.ids import check_id
from placet.models import Execution
from placet.transport.bearer import named_project
from schemas.ids import TENANT_WIDE

DEFAULT_PROJECT = "default"
DEFAULT_TENANT = "default"


ExecutionArgument = Annotated[
    str,
    typer.Argument(help="The execution's id, or the unique beginning of one.", autocompletion=execution_ids),
]
AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="DECISION",
        help="The decision to replace: its id, its event's, its hold's or its call's, or the beginning of one.",
        autocompletion=call_ids,
    ),
]
WordOption = Annotated[
    str, typer.Option("--with", help="approve, edit or reject.", autocompletion=completing(get_args(Word)))
]


@dataclass(frozen=True)
class Question:
    """What is asked: the original by its id or the beginning of it, the decision, and what is put in its place."""

    name: str
    project: str
    at: str
    instead: Instead


def fork_command(
    context: typer.Context,
    execution: ExecutionArgument,
    at: AtOption,
    word: WordOption,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the agent and the record.")] = "",
    arguments: Annotated[
        str | None, typer.Option(metavar="JSON", help="With edit: all arguments of the call.")
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="What the call is assumed to return, if it has no recorded result."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", help="The data directory of a stack on this machine, whose keys issue the tokens."
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="With --data-dir: the tenant.")] = None,
    subject: Annotated[
        str | None, typer.Option("--as", metavar="SUBJECT", help="With --data-dir: who you are; your login.")
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(help="With --data-dir: a role of yours that policies name; may be repeated."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Re-run a recorded execution with another decision at one point, and compare the branches.

    No tool runs: calls get their recorded results. The fork has a project of its own, in which every decision is
    yours. A difference is no error: exit code 0.
    """
    with errors_as_exit_codes():
        settings = context.find_object(Settings) or Settings()
        instead = _instead(word, reason, arguments, result)
        project = named_project(settings.project).replace(TENANT_WIDE, "") or DEFAULT_PROJECT
        issued = _issued(data_dir, tenant, subject, role)
        reading = by_token(settings.url, settings.token) if issued is None else issued.reading()
        told = run_until_signalled(_forked(reading, issued, Question(execution, project, at, instead)))
        if as_json:
            print_json(json_of(told))
        else:
            tell(told)


def _issued(
    data_dir: Path | None, tenant: str | None, subject: str | None, role: list[str] | None
) -> Issued | None:
    if data_dir is not None:
        directory = DataDir(data_dir.expanduser().absolute())
        return Issued(directory, tenant or DEFAULT_TENANT, subject, tuple(role or ()))
    given = {"--tenant": tenant, "--as": subject, "--role": role}
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} says for whom a token is issued: it belongs to --data-dir.")
    return None


def _instead(word: str, reason: str, arguments: str | None, result: str | None) -> Instead:
    words: tuple[Word, ...] = get_args(Word)
    found = next((one for one in words if one == word), None)
    if found is None:
        raise UsageError(f"--with {word}: it is approve, edit or reject.")
    if (arguments is not None) != (found == "edit"):
        raise UsageError("--arguments JSON belongs to --with edit, and --with edit needs it.")
    edited = None if arguments is None else _json("--arguments", arguments)
    if edited is not None and not isinstance(edited, dict):
        raise UsageError("--arguments: the arguments of a call are a JSON object.")
    if result is not None and found == "reject":
        raise UsageError("--result: a rejected call returns nothing.")
    output = None if result is None else _json("--result", result)
    return Instead(found, reason, edited, result is not None, output)


def _json(option: str, text: str) -> Any:
    try:
        return parse_strict(text)
    except MalformedJson as error:
        raise UsageError(f"{option}: {error}.") from error


async def _forked(reading: Access, issued: Issued | None, question: Question) -> Told:
    project = question.project
    async with reading.of_reader(project) as reader:
        execution_id = await _named(reader, question.name, project)
        original = await _run(reader, execution_id)
    point = find_point(execution_id, original, question.at)
    into, started = fork_project(execution_id), original.started
    access = reading
    if issued is not None:
        access = issued.forking(reading, into, started.agent, started.user, started.workspace)
    say_line(f"forking {execution_id} of {project} into the project {into}")
    async with access.of_person(into) as person, access.of_agent(into, started.agent) as agent:
        verdict = point.call.verdict
        label = "" if verdict is None else verdict.policy_version
        try:
            # It can fail after it has published, as when a decider is away.
            copied = await copy_definitions(access, project, person, original, label)
            sayings = Sayings(execution_id, point, question.instead)
            stubs = Stubs(original, point, question.instead)
            branch = Branch(agent, person, execution_id, sayings, stubs, say_line)
            await branch.replay(original)
        finally:
            await retire_policy(person, into, label)
        fork = await _run(person, execution_id, branch.cursor)
    return Told(
        access.url,
        execution_id,
        project,
        into,
        access.subject,
        point,
        question.instead,
        copied,
        compare(original, fork, branch.stopped, branch.stub_of, branch.used),
        branch.stopped,
        branch.unasked,
        original.unrepeated,
    )


async def _named(reader: AsyncPlacet, name: str, project: str) -> str:
    """The id of a project's execution of this id, or of the one whose id begins with it.

    Raises:
        NotFound: the project has none.
        Ambiguous: several begin with it.
    """
    check_id(name, "execution id")
    with suppress(NotFound):
        return (await reader.executions.get(name)).execution_id
    known: list[Execution] = []
    cursor: str | None = None
    while True:
        page = await reader.executions.list(cursor=cursor)
        known += page.items
        if page.next_cursor in (None, cursor):
            break
        cursor = page.next_cursor
    otherwise = f" in the project {project}; `placet --project NAME fork` looks in another"
    found = by_prefix(known, name, lambda one: (one.execution_id,), "execution", otherwise)
    return found.execution_id


async def _run(client: AsyncPlacet, execution_id: str, after: str = "") -> Run:
    """A run, from all of its events; with `after`, no older than that cursor.

    Raises:
        HistoryGapError: events are missing.
    """
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.fetch(f"/executions/{execution_id}/events", cursor=cursor, after=after or None)
        items += page["items"]
        if page["next_cursor"] in (None, cursor):
            return read_run(execution_id, items)
        cursor = page["next_cursor"]

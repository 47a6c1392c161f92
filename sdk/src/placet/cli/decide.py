"""`placet approve`, `edit`, `reject`, `answer`, `revoke`: decisions on exactly what was shown."""

from __future__ import annotations

import difflib
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.canonical import call_digest, canonical
from placet.cli import safe
from placet.cli.answering import answer_to, check_open, gives_permission, send_answer
from placet.cli.asking import ask_here, confirm_permission, show_permission, tell_meaning
from placet.cli.chat_events import show_event
from placet.cli.choices import SCOPES, IdArgument, completing, one_of
from placet.cli.decision_effects import what_follows
from placet.cli.feed import Feed, until_closed
from placet.cli.groups import approve_group
from placet.cli.inputs import read_object, read_text
from placet.cli.one_call import CallArgument, ExecutionOfCall, ids_of, on_call
from placet.cli.past_values import tools_of_sources
from placet.cli.remembering import WHERE, remember_of
from placet.cli.session import (
    JsonFlag,
    check_askable,
    confirm,
    connect,
    console,
    find_hold,
    is_interactive,
    print_json,
)
from placet.cli.standing_decision import decide, decided_already
from placet.cli.telling import print_question
from placet.cli.token_roles import as_person
from placet.cli.viewing import fetch_view, print_view
from placet.errors import DigestMismatch
from placet.models import Hold, Recorded, ToolCall
from placet.secrets import covered, plain_places, pointer

if TYPE_CHECKING:
    from placet.sync import Placet

FeedbackOption = Annotated[str, typer.Option("--feedback", help="What the agent should know.")]
SHORTEST_DIGEST = 8


def approve(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    digest: Annotated[
        str, typer.Option("--digest", help="Approve only this digest (8 characters or more).")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    seen: Annotated[
        str,
        typer.Option("--seen", help="The digest of a view that was read elsewhere; it is not printed again."),
    ] = "",
    feedback: FeedbackOption = "",
    scope: Annotated[
        str,
        typer.Option(
            help="once; execution: for its run; rule: also for other runs.",
            callback=one_of(SCOPES),
            autocompletion=completing(SCOPES),
        ),
    ] = "once",
    uses: Annotated[str, typer.Option("--uses", help="With --scope rule: how often, or unlimited.")] = "",
    lasts: Annotated[str, typer.Option("--for", help="With --scope rule: how long; 30m, 24h, 7d.")] = "",
    where: Annotated[list[str] | None, typer.Option("--where", help=WHERE)] = None,
    group: Annotated[
        bool, typer.Option("--group", help="Approve all similar holds (inbox --grouped); low risk only.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Approve a call with exactly the arguments shown."""
    if group:
        if digest or seen or scope != "once" or uses or lasts or where:
            raise typer.BadParameter("a group is approved once, each by its own digest", param_hint="--group")
        check_askable(yes)
        with connect(context) as placet, as_person(context):
            approve_group(placet, id, feedback, yes, as_json)
        return
    remember = remember_of(scope, uses, lasts, where or ())
    with connect(context) as placet, as_person(context):
        hold = find_hold(placet, id)
        if not hold.call_id and hold.kind != "permission":
            # Without it the answer is asked for: variables on a command line can be seen by other users.
            value = "" if hold.kind == "env_var" else " VALUE"
            raise typer.BadParameter(
                f"this is a question; use: placet answer {hold.hold_id}{value}", param_hint="ID"
            )
        check_askable(yes)
        check_digest(hold, digest)
        shown = _shown_if_open(placet, hold, seen, stderr=as_json)
        confirm(f"Approve {_named(hold)}?", yes or bool(decided_already(hold)))
        recorded = decide(
            placet,
            hold,
            "approve",
            view_digest=shown,
            feedback=feedback,
            scope=scope,
            remember=remember,
        )
    _print_recorded(hold, "approved", recorded, as_json)


def check_digest(hold: Hold, wanted: str) -> None:
    """Refuse to decide a hold whose digest is not the expected one, or not that of the arguments shown.

    Raises:
        DigestMismatch: the hold's digest is not the wanted one, or not that of its arguments.
    """
    _check_length(wanted, "--digest")
    if wanted and not hold.digest.startswith(wanted):
        detail = f"the hold is about {hold.digest or 'no digest'}, not {safe.escaped(wanted)}: look again"
        raise DigestMismatch("digest_mismatch", 0, detail)
    shown = _digest_of(hold)
    if shown and shown != hold.digest:
        detail = "the arguments shown are not those of the digest: nothing was decided"
        raise DigestMismatch("digest_mismatch", 0, detail, {"shown": shown, "digest": hold.digest})


def _digest_of(hold: Hold) -> str:
    """The digest of a hold's call, computed here; "" if the server's answer lacks a field for it."""
    raw = hold.raw
    if hold.arguments is None or not {"tenant", "tool_version"} <= set(raw):
        return ""
    version = str(raw["tool_version"] or "")
    return call_digest(str(raw["tenant"]), hold.agent, hold.tool, version, dict(hold.arguments))


def _check_length(digest: str, hint: str) -> None:
    if digest and len(digest) < SHORTEST_DIGEST:
        said = f"give {SHORTEST_DIGEST} characters or more of the digest, not {len(digest)}"
        raise typer.BadParameter(said, param_hint=hint)


def edit(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    arguments: Annotated[
        str,
        typer.Option(
            "--arguments",
            help="All arguments as JSON, which replace the call's own; omitted ones are removed. "
            "@FILE reads a file, - the input; pass new sensitive values this way.",
        ),
    ],
    feedback: FeedbackOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Approve a call with changed arguments; the policy judges it again, and can deny it or ask others."""
    edited = read_object(arguments)
    with connect(context) as placet, as_person(context):
        hold = find_hold(placet, id)
        if not hold.call_id:
            detail = f"this is a question; use: placet answer {hold.hold_id}"
            raise typer.BadParameter(detail, param_hint="ID")
        check_askable(yes)
        shows = _without_secrets(hold, edited, on_command_line=not _is_read(arguments))
        # Python treats 1 and True as equal: compare the canonical text.
        if hold.arguments is not None and canonical(edited) == canonical(dict(hold.arguments)):
            detail = f"these are the call's own arguments; use: placet approve {hold.hold_id}"
            raise typer.BadParameter(detail, param_hint="--arguments")
        # A hold that must be read is shown in full, since the arguments that are replaced must be seen too.
        shown = _shown_if_open(placet, hold, "", stderr=as_json) if hold.must_read or not yes else ""
        if not (stands := decided_already(hold)):
            _print_difference(dict(hold.arguments or {}), shows, stderr=as_json)
        confirm(f"Change {_named(hold)} in this way, and approve it?", yes or bool(stands))
        recorded = decide(
            placet,
            hold,
            "edit",
            view_digest=shown,
            edited_arguments=edited,
            feedback=feedback,
        )
    _print_recorded(hold, "edited", recorded, as_json)


def _without_secrets(hold: Hold, edited: dict[str, Any], *, on_command_line: bool) -> Any:
    """Edited arguments with the sensitive values hidden.

    Raises:
        typer.BadParameter: such a value is on the command line.
    """
    places = plain_places(hold.input_schema, hold.arguments, edited)
    if places and on_command_line:
        named = safe.escaped(", ".join(map(pointer, places)))
        detail = (
            f"{named}: others can see a secret on the command line: give - or @FILE, or keep the placeholder"
        )
        raise typer.BadParameter(detail, param_hint="--arguments")
    return covered(edited, places)


def reject(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    feedback: Annotated[str, typer.Option("--feedback", help="Why, for the agent.")],
    as_json: JsonFlag = False,
) -> None:
    """Reject a call or a question, with the reason for the agent."""
    if not feedback.strip():
        raise typer.BadParameter(
            "give a reason: it is the only explanation that the agent gets", param_hint="--feedback"
        )
    with connect(context) as placet, as_person(context):
        hold = find_hold(placet, id)
        recorded = decide(placet, hold, "reject", feedback=feedback)
    _print_recorded(hold, "rejected", recorded, as_json)


def answer(
    context: typer.Context,
    id: IdArgument,  # noqa: A002
    value: Annotated[
        str | None,
        typer.Argument(
            help="One of the options, a JSON list of several where several may be chosen, yes or no to a "
            "permission, text, or a JSON object or list; - reads the text, or the variables of env_var as JSON, from "
            "standard input. "
            "[default: asked for at the terminal]"
        ),
    ] = None,
    feedback: FeedbackOption = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation before giving a permission.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Answer a question. Without VALUE it is asked here, variables one by one without showing them."""
    with connect(context) as placet, as_person(context):
        hold = find_hold(placet, id)
        if hold.call_id and hold.raw.get("cause") not in (None, "outcome_unknown"):
            detail = f"this is a call; use: placet approve, edit or reject {hold.hold_id}"
            raise typer.BadParameter(detail, param_hint="ID")
        if value is None and is_interactive():
            recorded = _asked_here(placet, hold, feedback)
        else:
            recorded = _answered(placet, hold, value, feedback, yes=yes, as_json=as_json)
    _print_recorded(hold, "answered", recorded, as_json)


def _asked_here(placet: Placet, hold: Hold, feedback: str) -> Recorded:
    """Ask a question at this terminal.

    Raises:
        typer.Exit: it was not answered, and why is told.
    """
    check_open(hold)
    if hold.question:
        print_question(hold.question)
    with closing(Feed(until_closed(placet, hold))) as events:
        recorded = ask_here(placet, hold, events.closing(hold.hold_id), feedback)
        if recorded is None and events.is_over(hold.hold_id):
            show_event(next(iter(events)))
    if recorded is None:
        raise typer.Exit(1)
    return recorded


def _answered(
    placet: Placet, hold: Hold, value: str | None, feedback: str, *, yes: bool, as_json: bool
) -> Recorded:
    """Send an answer that was given on the command line; one that gives a permission on what is shown."""
    if value == "-" and hold.kind != "env_var":
        value = read_text("VALUE")
    said, view_digest = answer_to(hold, value), ""
    tell_meaning(hold, value, said)
    if gives_permission(hold, said):
        check_askable(yes)
        check_open(hold)
        view_digest = show_permission(placet, hold, stderr=as_json)
        confirm_permission(hold, said, yes)
    return send_answer(placet, hold, said, feedback, view_digest)


def revoke(
    context: typer.Context,
    execution: ExecutionOfCall,
    call: CallArgument = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the agent and the record.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Revoke a release that was not consumed yet."""
    ids = ids_of(execution, call)

    def act(execution_id: str, call_id: str) -> tuple[ToolCall, str]:
        return placet.revoke(execution_id, call_id, reason=reason), f"{execution_id}/{call_id}"

    with connect(context) as placet:
        revoked, named = on_call(placet, ids, act)
    if as_json:
        print_json(revoked.raw)
    else:
        console().print(safe.text(f"{revoked.status}: {revoked.tool} {named}", lines=True))


def _is_read(text: str) -> bool:
    """Returns True if an option names a file or the standard input."""
    return text == "-" or text.startswith("@")


def _shown_if_open(placet: Placet, hold: Hold, seen: str, *, stderr: bool) -> str:
    """As `_shown`; nothing of a hold that is decided, unless no decision on it is read without its view's digest."""
    if decided_already(hold) and not hold.must_read:
        return ""
    return _shown(placet, hold, seen, stderr=stderr)


def _shown(placet: Placet, hold: Hold, seen: str, *, stderr: bool) -> str:
    """Print the whole view, unless it was seen elsewhere, and return its digest."""
    _check_length(seen, "--seen")
    view = fetch_view(placet, hold)
    if not seen:
        print_view(hold, view, stderr=stderr, tools=tools_of_sources(placet, hold))
    elif not view.view_digest.startswith(seen):
        detail = f"the view is {view.view_digest or 'without a digest'}, not {safe.escaped(seen)}: look again"
        raise DigestMismatch("digest_mismatch", 0, detail)
    return view.view_digest


def _named(hold: Hold) -> str:
    return f"{safe.escaped(hold.tool or hold.kind)} with digest {hold.digest[:12]}"


def _print_difference(before: Any, after: Any, *, stderr: bool = False) -> None:
    lines = difflib.unified_diff(
        safe.pretty_json(before).splitlines(),
        safe.pretty_json(after).splitlines(),
        "asked",
        "edited",
        lineterm="",
    )
    for line in lines:
        style = {"+": "green", "-": "red"}.get(line[:1], "")
        console(stderr=stderr).print(safe.text(line, style=style), soft_wrap=True)


def _print_recorded(hold: Hold, done: str, recorded: Recorded, as_json: bool) -> None:
    if as_json:
        print_json({"hold_id": hold.hold_id, "digest": hold.digest, **recorded.raw})
        return
    waits = " (recorded; more votes are needed)" if recorded.status == "recorded" else ""
    name = hold.tool or hold.kind
    lines = [
        f"{decided_already(hold) or done}: {name} {hold.hold_id}{waits}",
        _digests(hold, done, recorded),
        *what_follows(recorded),
    ]
    console().print(safe.text("\n".join(lines), lines=True))


def _digests(hold: Hold, done: str, recorded: Recorded) -> str:
    """The digest that was decided on; for an edit the server's, since it seals sensitive values."""
    if done != "edited":
        return f"digest {hold.digest}"
    edited = recorded.edited_digest or (recorded.next_hold.digest if recorded.next_hold else "")
    return f"digest {edited}, in place of {hold.digest}" if edited else f"in place of digest {hold.digest}"

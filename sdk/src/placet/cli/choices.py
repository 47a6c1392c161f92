"""The values that options take, and the completion of ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli.times import FORMS, typed_time

if TYPE_CHECKING:
    from placet.sync import Placet

KINDS = ("permission", "clarification", "decision", "env_var")
SCOPES = ("once", "execution", "rule")
RULE_STATUSES = ("proposed", "active", "suspended", "revoked", "refused")
STATES = (
    "running",
    "paused",
    "waiting_clarification",
    "waiting_correction",
    "waiting_approval",
    "resumed",
    "completed",
    "failed",
    "cancelled",
)
# What the gateway's registry calls the types of events.
# Events whose key is not an execution.
OF_NO_EXECUTION = frozenset(
    {
        *("PolicyPublished", "PolicyRetired", "ToolPublished", "PrincipalPublished", "DataKeyDestroyed"),
        *("RuleMade", "RuleActivated", "RuleSuspended", "RuleRevoked", "RuleUseReserved", "RuleUseRefused"),
        *("WriterClaimed", "WriterAlive", "DefinitionsAdopted"),
    }
)
_EVENTS = "placet.events."
# A person is typing: a slower completion does not help.
COMPLETE_WITHIN_S = 0.8
# A version, or an offset with or without its partition.
_PLACE = re.compile(r"[0-9]+|[0-9]*@[0-9]+")


def one_of(words: Sequence[str]) -> Callable[[str | None], str | None]:
    """An option's callback that accepts one of some words."""

    def checked(value: str | None) -> str | None:
        if value is not None and value not in words:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(words)}")
        return value

    return checked


def a_time(value: str | None) -> str | None:
    """An option's callback that accepts a time."""
    return _time(value, "")


def a_time_or_version(value: str | None) -> str | None:
    """An option's callback that accepts a time, the version of an execution, or an offset of the log."""
    is_place = value is not None and _PLACE.fullmatch(value) is not None
    return value if is_place else _time(value, ", nor a version, nor an offset as @123")


def _time(value: str | None, besides: str) -> str | None:
    # An empty value is reported elsewhere.
    if not value:
        return value
    try:
        return typed_time(value)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{value!r} is not {FORMS}{besides}") from error


def completing(words: Sequence[str]) -> Callable[[str], list[str]]:
    """The words with this prefix."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def hold_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of open holds."""
    return _begin_so(context, incomplete, lambda placet: [hold.hold_id for hold in placet.holds.list().items])


def execution_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of the newest executions."""
    return _begin_so(
        context, incomplete, lambda placet: [one.execution_id for one in placet.executions.list().items]
    )


def call_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of the calls of the execution that was typed before."""
    # While the value of an option is typed, what stands before it has not been given to arguments yet.
    execution_id = str(context.params.get("execution") or next(iter(context.args), ""))
    return _begin_so(
        context,
        incomplete,
        lambda placet: [call.call_id for call in placet.executions.calls(execution_id).items],
    )


def rule_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of standing rules."""
    return _begin_so(
        context, incomplete, lambda placet: [rule.rule_id for rule in placet.standing_rules.list()]
    )


def agent_names(context: typer.Context, incomplete: str) -> list[str]:
    """The agents of the newest executions."""
    return _begin_so(
        context, incomplete, lambda placet: sorted({one.agent for one in placet.executions.list().items})
    )


def tool_names(context: typer.Context, incomplete: str) -> list[str]:
    """The published tools."""
    return _begin_so(
        context, incomplete, lambda placet: sorted({tool.name for tool in placet.tools.list().items})
    )


def event_types(placet: Placet) -> list[str]:
    """The types of the events of executions, of the gateway's schema registry.

    The registry's routes are beside `/v1`, not under it. Events of definitions and of the log itself come on no
    channel.
    """
    subjects = placet.fetch(f"{placet.url.rstrip('/')}/subjects")
    types = (name.removeprefix(_EVENTS) for name in subjects if name.startswith(_EVENTS))
    return [name for name in types if name not in OF_NO_EXECUTION]


def event_types_completed(context: typer.Context, incomplete: str) -> list[str]:
    """The types of events."""
    return _begin_so(context, incomplete, event_types)


def _begin_so(context: typer.Context, incomplete: str, ids: Callable[[Placet], list[str]]) -> list[str]:
    from placet.cli.session import connect
    from placet.errors import PlacetError

    try:
        with connect(context, COMPLETE_WITHIN_S, COMPLETE_WITHIN_S) as placet:
            return [one for one in ids(placet) if one.startswith(incomplete)]
    except PlacetError:
        # On an error nothing is completed; the command itself will report the error.
        return []


IdArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="An id, or the unique beginning of one.", autocompletion=hold_ids),
]

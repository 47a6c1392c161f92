"""Commands that another distribution adds: entry points of the group `placet.commands`.

The name of an entry point is the command's (`policy.check` is `placet policy check`), the object a function
with typer's annotations. It is loaded when it is invoked or its help is shown; one that can't be loaded
reports it then, and breaks nothing else. This distribution's own commands are imported as late: `placet --help` and a
completion come at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from textwrap import shorten
from typing import Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]

from placet.cli import nonempty

GROUP = "placet.commands"
HELP_MAX_CHARS = 200
# Named here so that a missing one can be explained, and all can be listed without loading the server.
OF_THE_SERVER: Mapping[str, str] = {
    "audit-log": (
        "Read the whole log and say every broken invariant: exit code 0 when there is none, 1 otherwise."
    ),
    "bench": "Measure what Placet costs against what Kafka alone costs, on this machine and in the same run.",
    "demo": "Let agents work on agentdojo's office tasks, with and without attacks; every call goes through Placet.",
    "doctor": "Check Python, Java, Kafka's jars, the disk, ports, topics, Kafka's version and the clock.",
    "down": "Stop the stack: the roles, then Kafka.",
    "evaluate adaptive": (
        "Measure adaptive approval on agentdojo's suites: interruptions saved, attacks held, attacks released."
    ),
    "evaluate trace": (
        "Trace a figure to its events: each call behind it, with the partition and offset of every event."
    ),
    "export": "Export the facts as Parquet or JSON lines, by tenant and day; each run adds what is new.",
    "fork": "Re-run a recorded execution with another decision at one point, and compare the branches.",
    "keys list": "List the installation's signing keys: which one signs, and which are trusted.",
    "keys rotate": (
        "Replace one of the installation's signing keys; the public halves of old keys stay published."
    ),
    "keys withdraw": "Stop trusting a key and everything that it signed; for a key that may have been stolen.",
    "notifications check": ("Check a notifications file for typos and missing secrets."),
    "notifications test": "Send one message, marked as a test, to each target of a notification.",
    "policy backtest": (
        "Replay history against a policy file: which calls it would newly ask, allow or deny, and what people said."
    ),
    "policy check": "Check a policy: typos, expressions, rules that are never reached.",
    "policy diff": (
        "Compare two policies: rules added, removed, changed, moved, and calls whose verdict would change."
    ),
    "policy test": ("Run a policy's test cases: calls and their expected verdicts."),
    "replay": "Rebuild the views from offset 0 beside the live ones, compare row by row, and swap them in.",
    "status": "Show what runs.",
    "tools start": "Start a tool from its config.json, and supervise it.",
    "token issue": "Issue a bearer token, signed by the installation's own issuer.",
    "up": "Start everything: Kafka (embedded unless a cluster is given), then one process a role.",
    "vault rotate-master": (
        "Replace the vault's master key and wrap every data key with the new one; sealed values do not change."
    ),
}
# The descriptions of the groups whose commands come only from other distributions.
GROUPS: Mapping[str, str] = {
    "evaluate": "Measurements of approval on benchmarks of agents.",
    "keys": "The installation's signing keys.",
    "notifications": "Where messages about holds are sent.",
    "token": "Bearer tokens.",
}
# The own commands: the place of each in placet.cli, and its line in the list.
OWN: Mapping[str, tuple[str, str]] = {
    "inbox": ("inbox:inbox", "List the holds that wait for a person."),
    "show": ("inbox:show", "Show a hold, or a call, in full."),
    "approve": ("decide:approve", "Approve a call with exactly the arguments shown."),
    "edit": (
        "decide:edit",
        "Approve a call with changed arguments; the policy judges it again, and can deny it or ask others.",
    ),
    "reject": ("decide:reject", "Reject a call or a question, with the reason for the agent."),
    "answer": (
        "decide:answer",
        "Answer a question.",
    ),
    "claim": (
        "handling:claim",
        "Show others for a while that you are working on a hold; they can still decide it.",
    ),
    "release": (
        "handling:release",
        "Release a hold that you claimed; an operator can release another's claim.",
    ),
    "delegate": ("handling:delegate", "Delegate a hold to another person, who then decides on your behalf."),
    "extend": ("handling:extend", "Extend a hold's current deadline."),
    "escalate": ("handling:escalate", "Ask the roles of the rule's escalation now."),
    "revoke": ("decide:revoke", "Revoke a release that was not consumed yet."),
    "report-impact": (
        "report_impact:report_impact",
        "Report that a call which ran did harm; it lowers the trust in its agent.",
    ),
    "events": (
        "events:events",
        "Show past events.",
    ),
    "state": ("executions:state", "Show the current or an earlier state of an execution."),
    "executions": ("executions:executions", "List executions."),
    "pause": (
        "executions:pause",
        "Pause an execution: no call of it runs, and no new one is judged, until it is resumed.",
    ),
    "resume": ("executions:resume", "Resume a paused execution."),
    "cancel": (
        "executions:cancel",
        "End an execution without a result; its open calls and holds are cancelled.",
    ),
    "tools": ("lists:tools_app", "List published tools; start one from its config.json."),
    "tool": ("tool:app", "Publish tools."),
    "components": ("lists:components", "List the processes of the installation and their state."),
    "policy": ("policy:app", "Check, test, compare, publish and retire policies."),
    "mcp": ("mcp_command:serve", "Serve the tool human_input to an MCP client, over stdio or HTTP."),
    "agent": ("agent:app", "Workers that answer the messages to agents."),
    "chat": (
        "chat:chat",
        "Send an agent messages and follow its answers; at a terminal its questions are asked here.",
    ),
    "audit": ("proof:app", "Who did what, when."),
    "principals": ("principals:principals_app", "People and services, their accounts and roles."),
    "reviewers": (
        "reviewers:reviewers",
        "Show how people decide: how many, how fast, and how often they approve what they have hardly looked at.",
    ),
    "trust": ("trust:app", "Trust in agents: what it is, what it comes from, and what it saves."),
    "probe": ("probe:app", "Known-bad calls that never run, planted to see whether people notice."),
    "rules": ("rules:app", "Standing rules: approvals that are remembered for other runs."),
    "vault": ("vault:app", "Erase sensitive values, and manage the keys that seal them."),
}


@lru_cache(maxsize=1)
def _contributed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names_under(prefix: str) -> list[str]:
    """The commands added under a group; `""` is the top."""
    start = f"{prefix}." if prefix else ""
    rest = [name[len(start) :] for name in _contributed() if name.startswith(start)]
    return sorted({name.partition(".")[0] for name in rest})


def find(prefix: str, name: str) -> Any:
    """The command or group of that name, imported now; None if there is none."""
    if not prefix and name in OWN:
        module, _, attribute = OWN[name][0].partition(":")
        found = getattr(import_module(f"placet.cli.{module}"), attribute)
        return _own_group(found) if isinstance(found, typer.Typer) else _command(name, found)
    full = f"{prefix}.{name}" if prefix else name
    if full in _contributed():
        return _command(name, _function(_contributed()[full]))
    if names_under(full):
        return typer.main.get_command(_group_app(full))
    return None


def _own_group(app: typer.Typer) -> Any:
    for registered in app.registered_commands:
        registered.cls = nonempty.Command
    return typer.main.get_command(app)


def help_of(prefix: str, name: str) -> str | None:
    """A command's line in the list, if it is known without an import."""
    if not prefix and name in OWN:
        return OWN[name][1]
    full = f"{prefix}.{name}" if prefix else name
    if (known := OF_THE_SERVER.get(full.replace(".", " "))) is not None:
        return known
    is_group = full not in _contributed() and names_under(full)
    return _about(full) if is_group else None


def _about(full: str) -> str:
    return GROUPS.get(full, f"Commands under `{full.replace('.', ' ')}`.")


def _group_app(full: str) -> typer.Typer:
    app = new_group(full, no_args_is_help=True)

    @app.callback(help=_about(full))
    def group() -> None:
        return None

    return app


def _function(point: EntryPoint) -> Callable[..., Any]:
    try:
        loaded = point.load()
        if not callable(loaded):
            raise TypeError(f"{point.value} is not a function")
    except Exception as error:
        return _unavailable(point, error)
    function: Callable[..., Any] = loaded
    return function


def _unavailable(point: EntryPoint, error: Exception) -> Callable[..., Any]:
    why = f"{type(error).__name__}: {error}"

    def unavailable(context: typer.Context) -> None:
        print(f"`placet {point.name.replace('.', ' ')}` can't be loaded: {why}", file=sys.stderr)
        raise typer.Exit(1)

    unavailable.__doc__ = f"Not available: {why}"
    return unavailable


def _command(name: str, function: Callable[..., Any]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    broken = function.__name__ == "unavailable"
    app.command(name, cls=nonempty.Command, context_settings=settings if broken else None)(function)
    return typer.main.get_command(app)


def new_group(prefix: str, **settings: Any) -> typer.Typer:
    """A group of commands whose help is shown as that of all others; `settings` are typer's."""
    return typer.Typer(cls=group_class(prefix), add_completion=False, rich_markup_mode=None, **settings)


def group_class(prefix: str) -> type[TyperGroup]:
    """A command group with the plugins' commands under `prefix`."""

    class OpenGroup(nonempty.Group):
        # The options before all commands are checked where they are used.
        takes_empty = not prefix

        def list_commands(self, ctx: Any) -> list[str]:
            own = [*super().list_commands(ctx), *(() if prefix else OWN)]
            return own + [name for name in names_under(prefix) if name not in own]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            own = super().get_command(ctx, cmd_name)
            return own if own is not None else find(prefix, cmd_name)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            full = f"{prefix} {args[0]}".strip()
            if full in OF_THE_SERVER and self.get_command(ctx, args[0]) is None:
                ctx.fail(
                    f"`placet {full}` comes with the server (placet-server): `make setup` in a checkout installs it"
                )
            # typer suggests only commands that were imported.
            close = get_close_matches(args[0], self.list_commands(ctx))
            if close and self.get_command(ctx, args[0]) is None:
                meant = " or ".join(map(repr, close))
                ctx.fail(f"No such command {args[0]!r}. Did you mean {meant}?")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            names = self.list_commands(ctx)
            if not names:
                return
            width = formatter.width - 6 - max(map(len, names), default=0)
            with formatter.section("Commands"):
                formatter.write_dl([(name, _shortened(self._says(ctx, name), width)) for name in names])

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
            # Besides its commands, the group completes its own options.
            options = super(TyperGroup, self).shell_complete(ctx, incomplete)
            return [CompletionItem(name, help=_one_line(self._says(ctx, name))) for name in names] + options

        def _says(self, ctx: Any, name: str) -> str:
            known = help_of(prefix, name)
            if known is not None:
                return known
            command = self.get_command(ctx, name)
            return "" if command is None else str(command.get_short_help_str(HELP_MAX_CHARS))

    return OpenGroup


def _one_line(text: str) -> str:
    """One line, since a shell reads each line of a completion as a candidate."""
    return " ".join(text.split())


def _shortened(text: str, width: int) -> str:
    """The beginning of a text, cut at the end of a word if it is too long."""
    return text if len(text) <= width else shorten(text, width, placeholder="...")

"""A backtest before a policy is published, by the command that the server's distribution adds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import typer

from placet.cli.plugins import find, names_under
from placet.cli.session import Settings, console
from placet.cli.token_roles import claims_in
from placet.config import find_config

NAME = "backtest"
HINT = "placet policy publish --backtest first replays history against a policy, and refuses what people rejected"


def hint() -> None:
    """Mention the backtest, where the server's distribution is installed."""
    if NAME in names_under("policy"):
        console(stderr=True).print(HINT, style="dim", soft_wrap=True)


class Asked(NamedTuple):
    """The options of a backtest; `data_dir` and `bootstrap_servers` say whose history (None: its defaults)."""

    since: str | None = None
    named: Sequence[str] = ()
    data_dir: Path | None = None
    bootstrap_servers: str | None = None
    accept_unjudged: bool = False

    @property
    def arguments(self) -> list[str]:
        """As arguments of the command."""
        valued = {
            "--since": self.since,
            "--data-dir": self.data_dir,
            "--bootstrap-servers": self.bootstrap_servers,
        }
        found = [str(part) for pair in valued.items() if pair[1] is not None for part in pair]
        found += [part for name in self.named for part in ("--allow-named", name)]
        return [*found, "--accept-unjudged"] if self.accept_unjudged else found


def check(context: typer.Context, file: Path, asked: Asked, *, as_json: bool) -> None:
    """Replay history against a policy's file; return if it may be published.

    Raises:
        typer.BadParameter: the command is not installed, or the token does not say for whom it publishes.
        typer.Exit: calls that people were against would pass, something was not judged, or the backtest failed.
    """
    command = find("policy", NAME) if NAME in names_under("policy") else None
    if command is None:
        said = "`placet policy backtest` comes with the server: `make setup` in a checkout installs it"
        raise typer.BadParameter(said, param_hint="--backtest")
    arguments = [str(file), *_scope(context), *asked.arguments]
    # With --json, standard output has the answer of the publication alone.
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        code = _run(command, [*arguments, *(["--json"] if as_json else [])], context)
    if code:
        console(stderr=True).print("nothing was published")
        raise typer.Exit(code)


def _scope(context: typer.Context) -> list[str]:
    """The tenant and the project for which the command's token publishes."""
    settings = context.find_object(Settings) or Settings()
    claims = claims_in(find_config(settings.url, settings.token).token)
    found = [claims.get(name) for name in ("tenant", "project")]
    if not all(isinstance(value, str) and value for value in found):
        said = (
            "the token does not say for which tenant and project it publishes: run `placet policy backtest` with "
            "--tenant and --project, then publish without --backtest"
        )
        raise typer.BadParameter(said, param_hint="--backtest")
    tenant, project = (str(value) for value in found)
    return ["--tenant", tenant, "--project", settings.project or project]


def _run(command: Any, arguments: list[str], context: typer.Context) -> int:
    with command.make_context(NAME, arguments, parent=context.parent) as made:
        try:
            command.invoke(made)
        except typer.Exit as ended:
            return int(ended.exit_code)
    return 0

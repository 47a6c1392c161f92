"""`placet keys rotate`: a new private key; what the old one signed stays good."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from gateway.identity.keys import ROTATED, KeysUnreadable, rotate
from ops.commands.common import DataDirOption
from ops.errors import EXIT_USAGE

DEFAULT_DATA_DIR = Path(".placet")
# When the new key is used, and what becomes of the old one.
TAKEN_UP = {
    "grants": "A running gateway signs with it within a second.",
    "issuer": "Tokens that are issued from now on are signed with it.",
    "gateway": "A gateway signs commands with it once it is started again.",
    "audit": "The projector signs audit heads with it once it is started again.",
    "decider": "A decider signs with it once it is started again.",
}


def rotate_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(ROTATED)}.")],
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make one of the installation's signing keys anew; the public halves of old ones stay published."""
    if name not in ROTATED:
        typer.echo(f"There is no key {name!r}: rotate one of {', '.join(ROTATED)}.", err=True)
        raise typer.Exit(EXIT_USAGE)
    keys_dir = data_dir / "keys"
    if not keys_dir.is_dir():
        typer.echo(f"{keys_dir} does not exist: name the stack's directory with --data-dir.", err=True)
        raise typer.Exit(EXIT_USAGE)
    try:
        before, now = rotate(keys_dir, name)
    except (KeysUnreadable, OSError) as error:
        typer.echo(f"The keys in {keys_dir} cannot be used: {error}.", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    if json:
        typer.echo(json_text.dumps({"name": name, "before": before, "now": now}))
    else:
        typer.echo(f"The key {name} is now {now}. {TAKEN_UP.get(name, '')}".rstrip())
        typer.echo(f"The public half of {before} stays published.")

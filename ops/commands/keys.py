"""`placet keys`: list, rotate and withdraw the installation's signing keys."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gateway.identity.keys import (
    ROTATED,
    WITHDRAWABLE,
    KeyStays,
    KeysUnreadable,
    published,
    rotate,
    withdraw,
)
from ops.commands.common import DataDirOption, JsonOption, errors_as_exit_codes, print_line
from ops.config import DEFAULT_DATA_DIR
from ops.errors import UsageError
from placet.cli.session import confirm

# When each role starts to use the new key.
TAKEN_UP = {
    "grants": "A running gateway signs with it within a second.",
    "issuer": "New tokens are signed with it.",
    "gateway": "A gateway signs commands with it after a restart.",
    "audit": "The projector signs audit heads with it after a restart.",
    "decider": "A decider signs with it after a restart.",
}
# What is no longer trusted once a key is withdrawn.
ENDS = {
    "grants": "Releases that it signed no longer verify; calls can still be consumed at the gateway.",
    "issuer": "Tokens that it signed are refused within a second, and their sockets closed within five.",
    "gateway": "Undecided commands that it signed become dead letters: restart each gateway first.",
    "decider": (
        "Records in the log that it signed no longer count, except those before the offsets in "
        "keys/signed-from.json, and no decider starts on a log that counted them (docs/identity.md)."
    ),
}


def list_command(data_dir: DataDirOption = DEFAULT_DATA_DIR, json: JsonOption = False) -> None:
    """List the installation's signing keys: which one signs, and which are trusted."""
    with _keys_of(data_dir) as keys_dir:
        found = {name: published(keys_dir, name) for name in ROTATED}
    rows = [
        {"name": name, "key_id": kid, "signs": kid == signs}
        for name, (signs, trusted) in found.items()
        for kid in trusted
    ]
    if json:
        typer.echo(json_text.dumps(rows))
        return
    for row in rows:
        print_line(f"{row['name']:<8} {row['key_id']}  {'signs' if row['signs'] else 'trusted'}")


def rotate_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(ROTATED)}.")],
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    json: JsonOption = False,
) -> None:
    """Replace one of the installation's signing keys; the public halves of old keys stay published."""
    with _keys_of(data_dir) as keys_dir:
        if name not in ROTATED:
            raise UsageError(f"There is no key {name!r}: give one of {', '.join(ROTATED)}.")
        before, now = rotate(keys_dir, name)
    if json:
        typer.echo(json_text.dumps({"name": name, "before": before, "now": now}))
        return
    print_line(f"The key {name} is now {now}. {TAKEN_UP[name]}")
    print_line(f"The public half of {before} stays published.")


def withdraw_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(WITHDRAWABLE)}.")],
    kid: Annotated[
        str, typer.Argument(metavar="KEY_ID", help="The key's id, as shown by `placet keys list`.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    json: JsonOption = False,
) -> None:
    """Stop trusting a key and everything that it signed; for a key that may have been stolen."""
    with _keys_of(data_dir) as keys_dir:
        if name not in WITHDRAWABLE:
            why = "audit heads have no other proof" if name in ROTATED else f"there is no key {name!r}"
            raise UsageError(f"Withdraw one of {', '.join(WITHDRAWABLE)}: {why}.")
        confirm(f"{ENDS[name]} Withdraw {kid}?", yes)
        withdraw(keys_dir, name, kid)
    if json:
        typer.echo(json_text.dumps({"name": name, "withdrawn": kid}))
        return
    print_line(f"The key {kid} is withdrawn. {ENDS[name]}")


@contextmanager
def _keys_of(data_dir: Path) -> Iterator[Path]:
    """The directory of a stack's keys; errors become one sentence each."""
    keys_dir = data_dir / "keys"
    with errors_as_exit_codes():
        if not keys_dir.is_dir():
            raise UsageError(f"{keys_dir} does not exist: name the stack's directory with --data-dir.")
        try:
            yield keys_dir
        except KeyStays as error:
            raise UsageError(f"Nothing was withdrawn: {error}.") from error
        except (KeysUnreadable, OSError) as error:
            raise UsageError(f"The keys in {keys_dir} cannot be used: {error}.") from error

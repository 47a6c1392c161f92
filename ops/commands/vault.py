"""`placet vault rotate-master`: the vault's data keys wrapped by a new master key, while the gateway runs.

1. the new master key is written beside the old one; a gateway unwraps with either;
2. every data key is wrapped by it, all or none;
3. it takes the old one's place;
4. what a gateway has wrapped with the old one meanwhile is wrapped again.
Cut short anywhere, the same command takes it up again.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from gateway.vault.opening import open_database
from gateway.vault.store import VaultUnavailable
from gateway.vault.vault import Vault
from gateway.vault.wrapping import (
    MASTER_VARIABLE,
    MasterKey,
    MasterKeyFile,
    MasterKeyWrong,
    decoded,
    wrapper_of,
)
from host.key_files import KeysUnreadable
from ops.commands.common import DataDirOption, JsonOption, errors_as_exit_codes, print_json
from ops.config import DEFAULT_DATA_DIR, DataDir, load_config
from ops.errors import UsageError

NEXT_VARIABLE = f"{MASTER_VARIABLE}_NEXT"


def rotate_master(data_dir: DataDirOption = DEFAULT_DATA_DIR, json: JsonOption = False) -> None:
    """Make the vault's master key anew, and wrap every data key by it; no sealed value is touched.

    Where the master key comes from PLACET_VAULT_MASTER_KEY, the new one is read from PLACET_VAULT_MASTER_KEY_NEXT:
    stop the gateway first, and start it with the new one.
    """
    with errors_as_exit_codes():
        try:
            name, count = _rotate(data_dir.resolve())
        except (VaultUnavailable, MasterKeyWrong, KeysUnreadable) as error:
            raise UsageError(str(error)) from error
    if json:
        print_json({"master_key": name, "data_keys": count})
    else:
        typer.echo(f"{count} data keys are wrapped by the master key {name}.")


def _rotate(data_dir: Path) -> tuple[str, int]:
    directory = DataDir(data_dir)
    config = load_config(directory.config)
    if config.data_dir != str(data_dir):
        raise UsageError(f"{directory.config} is of the stack in {config.data_dir}: name that directory.")
    wrapper = wrapper_of(directory.keys)
    database = open_database(data_dir, config.database_url)
    try:
        if isinstance(wrapper, MasterKey):
            return _rotate_given(Vault(database, wrapper))
        return _rotate_file(Vault(database, wrapper), wrapper)
    finally:
        database.close()


def _rotate_file(vault: Vault, keys: MasterKeyFile) -> tuple[str, int]:
    before, coming = keys.current(), keys.prepare()
    count = vault.rewrap(coming)
    keys.put_in_force()
    both = Vault(vault.database, _Either(coming, before))
    return coming.name, max(count, both.rewrap(coming))


def _rotate_given(vault: Vault) -> tuple[str, int]:
    given = os.environ.get(NEXT_VARIABLE, "")
    if not given:
        raise UsageError(
            f"The master key is given by {MASTER_VARIABLE}: give the new one by {NEXT_VARIABLE}."
        )
    coming = MasterKey(decoded(given))
    return coming.name, vault.rewrap(coming)


class _Either:
    """The new master key; the one before it still unwraps."""

    def __init__(self, now: MasterKey, before: MasterKey) -> None:
        self._now = now
        self._before = before
        self.wrap = now.wrap

    def unwrap(self, wrapped: bytes) -> bytes:
        try:
            return self._now.unwrap(wrapped)
        except MasterKeyWrong:
            return self._before.unwrap(wrapped)

"""`placet vault rotate-master`: wrap the vault's data keys with a new master key while the gateway runs.

1. write the new master key beside the old one; a gateway unwraps with either;
2. wrap every data key with it, all or none;
3. replace the old master key with it;
4. wrap again what a gateway has wrapped with the old key meanwhile.
If the command is interrupted at any step, running it again completes the rotation.
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
    """Replace the vault's master key and wrap every data key with the new one; sealed values do not change.

    If the master key comes from PLACET_VAULT_MASTER_KEY, the new one is read from PLACET_VAULT_MASTER_KEY_NEXT:
    stop the gateway first, and start it with the new key afterwards.
    """
    with errors_as_exit_codes():
        try:
            name, count = _rotate(data_dir.resolve())
        except (VaultUnavailable, MasterKeyWrong, KeysUnreadable) as error:
            raise UsageError(str(error)) from error
    if json:
        print_json({"master_key": name, "data_keys": count})
    else:
        typer.echo(f"{count} data keys are wrapped with the master key {name}.")


def _rotate(data_dir: Path) -> tuple[str, int]:
    directory = DataDir(data_dir)
    config = load_config(directory.config)
    if config.data_dir != str(data_dir):
        raise UsageError(
            f"{directory.config} belongs to the stack in {config.data_dir}: give that directory with --data-dir."
        )
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
        raise UsageError(f"The master key is set in {MASTER_VARIABLE}: set the new one in {NEXT_VARIABLE}.")
    coming = MasterKey(decoded(given))
    return coming.name, vault.rewrap(coming)


class _Either:
    """Wraps with the new master key; unwraps with the new one or the one before it."""

    def __init__(self, now: MasterKey, before: MasterKey) -> None:
        self._now = now
        self._before = before
        self.wrap = now.wrap

    def unwrap(self, wrapped: bytes) -> bytes:
        try:
            return self._now.unwrap(wrapped)
        except MasterKeyWrong:
            return self._before.unwrap(wrapped)

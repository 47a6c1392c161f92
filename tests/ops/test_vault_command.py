"""`placet vault rotate-master`: another master key, and every sealed value opened as before."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gateway.vault.opening import open_database
from gateway.vault.vault import Owner, Vault
from gateway.vault.wrapping import COMING_KEY, MASTER_VARIABLE, MasterKey, MasterKeyFile
from ops.commands.vault import NEXT_VARIABLE, rotate_master
from ops.config import DataDir, StackConfig, save_config

CALL = Owner("acme", "books", "x", "call", "c")
OLD, NEW = b"o" * 32, b"n" * 32

app = typer.Typer()
app.command()(rotate_master)


@pytest.fixture
def stack(tmp_path: Path) -> DataDir:
    url = f"sqlite:///{tmp_path / 'views.sqlite'}"
    save_config(StackConfig(str(tmp_path), "127.0.0.1:9", False, url, 0, "http://127.0.0.1:0"))
    return DataDir(tmp_path)


def vault_of(stack: DataDir, wrapper: Any = None) -> Vault:
    database = open_database(stack.root, "sqlite:///views.sqlite")
    return Vault(database, wrapper or MasterKeyFile(stack.keys))


def rotated(stack: DataDir, **environ: str) -> Any:
    return CliRunner().invoke(app, ["--data-dir", str(stack.root), "--json"], env=environ)


def test_rotate_master_wraps_every_data_key_and_a_running_gateway_goes_on(stack: DataDir) -> None:
    running = vault_of(stack)
    handle = running.seal(CALL, "bot", {"/token": "hunter2"})["/token"]["handle"]
    before = MasterKeyFile(stack.keys).current().name

    done = rotated(stack)

    assert done.exit_code == 0, done.output
    now = MasterKeyFile(stack.keys).current().name
    assert json.loads(done.stdout) == {"master_key": now, "data_keys": 1}
    assert now != before
    assert running.open(CALL, [("/token", handle)])[0].value == "hunter2"
    assert not (stack.keys / COMING_KEY).exists()


def test_rotate_master_cut_short_is_taken_up_again(stack: DataDir) -> None:
    vault, keys = vault_of(stack), MasterKeyFile(stack.keys)
    handle = vault.seal(CALL, "bot", {"/token": "hunter2"})["/token"]["handle"]
    vault.rewrap(coming := keys.prepare())

    assert rotated(stack).exit_code == 0

    assert keys.current().name == coming.name
    assert vault.open(CALL, [("/token", handle)])[0].value == "hunter2"


def test_rotate_master_of_the_environment_needs_the_next_one(stack: DataDir) -> None:
    handle = vault_of(stack, MasterKey(OLD)).seal(CALL, "bot", {"/token": "hunter2"})["/token"]["handle"]
    old, new = (base64.b64encode(key).decode() for key in (OLD, NEW))

    alone = rotated(stack, **{MASTER_VARIABLE: old})
    done = rotated(stack, **{MASTER_VARIABLE: old, NEXT_VARIABLE: new})

    assert alone.exit_code == 2
    assert NEXT_VARIABLE in alone.stderr
    assert done.exit_code == 0, done.output
    assert old not in done.output + alone.output
    assert vault_of(stack, MasterKey(NEW)).open(CALL, [("/token", handle)])[0].value == "hunter2"


def test_rotate_master_with_a_key_that_is_not_the_vaults_changes_nothing(stack: DataDir) -> None:
    vault_of(stack, MasterKey(OLD)).seal(CALL, "bot", {"/token": "hunter2"})

    done = rotated(stack)

    assert done.exit_code == 2
    assert "give the gateway the one" in done.stderr
    assert [key.wrapped_by for key in vault_of(stack).data_keys("acme")] == [MasterKey(OLD).name]


def test_rotate_master_where_there_is_no_stack_is_wrong_usage(tmp_path: Path) -> None:
    assert rotated(DataDir(tmp_path)).exit_code == 2

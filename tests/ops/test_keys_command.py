from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gateway.identity.keys import ROTATED, WITHDRAWABLE, load_or_create, load_public, rotate
from ops.commands.keys import ENDS, TAKEN_UP, list_command, rotate_command, withdraw_command

app = typer.Typer()
app.command()(rotate_command)
keys_app = typer.Typer()
keys_app.command("list")(list_command)
keys_app.command("withdraw")(withdraw_command)


@pytest.mark.parametrize("name", ROTATED)
def test_keys_rotate_prints_both_key_ids_and_no_key(tmp_path: Path, name: str) -> None:
    load_or_create(tmp_path / "keys")
    result = CliRunner().invoke(app, [name, "--data-dir", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    assert set(load_public(tmp_path / "keys" / ROTATED[name][1])) == {said["before"], said["now"]}
    assert "PRIVATE" not in result.stdout


def test_keys_rotate_says_when_the_new_key_is_used(tmp_path: Path) -> None:
    assert set(TAKEN_UP) >= {"grants", "gateway", "issuer"}
    load_or_create(tmp_path / "keys")
    result = CliRunner().invoke(app, ["grants", "--data-dir", str(tmp_path)])
    assert "within a second" in result.stdout


@pytest.mark.parametrize("name", ["cursor", "", "../issuer"])
def test_keys_rotate_other_name_is_wrong_usage(tmp_path: Path, name: str) -> None:
    load_or_create(tmp_path / "keys")
    result = CliRunner().invoke(app, [name, "--data-dir", str(tmp_path)])
    assert (result.exit_code, f"There is no key {name!r}: give one of" in result.stderr) == (2, True)


def test_keys_rotate_where_no_stack_is_makes_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["grants", "--data-dir", str(tmp_path / "typo")])
    assert result.exit_code == 2
    assert not (tmp_path / "typo").exists()


def test_keys_rotate_damaged_key_is_named(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    (tmp_path / "keys" / "grants.pem").write_bytes(b"damaged")
    result = CliRunner().invoke(app, ["grants", "--data-dir", str(tmp_path)])
    assert (result.exit_code, "grants.pem" in result.stderr) == (2, True)


def keys(tmp_path: Path, *args: str) -> Any:
    return CliRunner().invoke(keys_app, [*args, "--data-dir", str(tmp_path)])


def test_keys_list_names_the_key_that_signs_and_those_that_are_believed(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    before, now = rotate(tmp_path / "keys", "issuer")
    rows = json.loads(keys(tmp_path, "list", "--json").stdout)
    assert [(row["key_id"], row["signs"]) for row in rows if row["name"] == "issuer"] == [
        (before, False),
        (now, True),
    ]
    text = keys(tmp_path, "list").stdout
    assert f"issuer   {before}  trusted\nissuer   {now}  signs\n" in text
    assert {row["name"] for row in rows} == {"issuer", "gateway", "grants"}


@pytest.mark.parametrize("name", WITHDRAWABLE)
def test_keys_withdraw_takes_out_one_key_and_says_what_ends(tmp_path: Path, name: str) -> None:
    load_or_create(tmp_path / "keys")
    before, now = rotate(tmp_path / "keys", name)
    done = keys(tmp_path, "withdraw", name, before, "--yes")
    assert (done.exit_code, ENDS[name] in done.stdout) == (0, True), done.output
    assert set(load_public(tmp_path / "keys" / ROTATED[name][1])) == {now}
    assert (tmp_path / "keys" / ROTATED[name][1]).stat().st_mode & 0o777 == 0o600


def test_keys_withdraw_refuses_the_key_that_signs_an_unknown_one_and_those_of_audit_heads(
    tmp_path: Path,
) -> None:
    load_or_create(tmp_path / "keys")
    _, now = rotate(tmp_path / "keys", "issuer")
    whole = (tmp_path / "keys" / ROTATED["issuer"][1]).read_bytes()
    for args, said in (
        (("issuer", now), "run `placet keys rotate issuer` first"),
        (("issuer", "0" * 16), now),
        (("audit", now), "audit heads have no other proof"),
        (("cursor", now), "there is no key 'cursor'"),
    ):
        refused = keys(tmp_path, "withdraw", *args, "--yes")
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    assert (tmp_path / "keys" / ROTATED["issuer"][1]).read_bytes() == whole


def test_keys_withdraw_asks_and_changes_nothing_where_nobody_can_be_asked(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    before, now = rotate(tmp_path / "keys", "issuer")
    refused = keys(tmp_path, "withdraw", "issuer", before)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert set(load_public(tmp_path / "keys" / ROTATED["issuer"][1])) == {before, now}

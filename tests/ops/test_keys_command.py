from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gateway.identity.keys import ROTATED, load_or_create, load_public
from ops.keys import TAKEN_UP, rotate_command

app = typer.Typer()
app.command()(rotate_command)


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
    assert (result.exit_code, "rotate one of" in result.stderr) == (2, True)


def test_keys_rotate_where_no_stack_is_makes_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["grants", "--data-dir", str(tmp_path / "typo")])
    assert result.exit_code == 2
    assert not (tmp_path / "typo").exists()


def test_keys_rotate_damaged_key_is_named(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")
    (tmp_path / "keys" / "grants.pem").write_bytes(b"damaged")
    result = CliRunner().invoke(app, ["grants", "--data-dir", str(tmp_path)])
    assert (result.exit_code, "grants.pem" in result.stderr) == (2, True)

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gateway.identity.keys import load_or_create
from ops.token import issue_command
from schemas.token import verify


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path) -> None:
    load_or_create(tmp_path / "keys")


app = typer.Typer()
app.command()(issue_command)


def test_token_issue_prints_a_token_that_is_believed(tmp_path: Path) -> None:
    options = [
        "--subject",
        "anna",
        "--role",
        "reviewer",
        "--own-role",
        "treasurer",
        "--data-dir",
        str(tmp_path),
    ]
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 0
    token = json.loads(result.stdout)["token"]
    actor = verify(token, load_or_create(tmp_path / "keys").issuers.get, time.time())
    assert (actor.subject, actor.roles) == ("anna", ("reviewer", "treasurer"))


def test_token_issue_agent_without_its_agent_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--subject", "b", "--role", "agent", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "agent" in result.stderr


@pytest.mark.parametrize(
    "more", [["--role", "reviewer"], ["--role", "tool:pay"], ["--own-role", "treasurer"]], ids=str
)
def test_token_issue_for_an_agent_with_other_roles_is_wrong_usage(tmp_path: Path, more: list[str]) -> None:
    options = ["--subject", "b", "--role", "agent", "--agent", "bot", "--data-dir", str(tmp_path)]
    assert CliRunner().invoke(app, options).exit_code == 0
    result = CliRunner().invoke(app, [*options, *more])
    assert result.exit_code == 2
    assert f"{more[1]} would have no effect" in result.stderr
    assert "issue a second token" in result.stderr
    assert not result.stdout


def test_token_issue_for_a_role_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    for role, said in (("nonsense", "--own-role nonsense"), ("reviwer", "did you mean reviewer?")):
        result = CliRunner().invoke(app, ["--subject", "b", "--role", role, "--data-dir", str(tmp_path)])
        assert result.exit_code == 2
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_token_issue_without_any_role_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--subject", "b", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "--role" in result.stderr


def test_token_issue_for_the_services_of_one_tool_is_accepted(tmp_path: Path) -> None:
    options = ["--subject", "b", "--role", "tool:send_money", "--data-dir", str(tmp_path)]
    assert CliRunner().invoke(app, options).exit_code == 0


def test_token_issue_where_nothing_is_installed_makes_no_issuer(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    options = ["--subject", "mia", "--role", "reviewer", "--data-dir", str(elsewhere)]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "--data-dir" in result.stderr
    assert not result.stdout
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--role", "tool:"], "tool:NAME"),
        (["--role", "reviewer", "--agent", "x"], "--role agent"),
        (["--role", "agent", "--agent", "x", "--own-role", "admin"], "--role admin"),
        (["--own-role", "tool:send_money"], "--role tool:send_money"),
    ],
)
def test_token_issue_for_a_role_that_would_mean_something_else_is_wrong_usage(
    options: list[str], said: str, tmp_path: Path
) -> None:
    result = CliRunner().invoke(app, ["--subject", "b", *options, "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout

from __future__ import annotations

import json
import time
from pathlib import Path

import typer
from typer.testing import CliRunner

from gateway.identity.keys import load_or_create
from ops.token import issue_command
from schemas.token import verify

app = typer.Typer()
app.command()(issue_command)


def test_token_issue_prints_a_token_that_is_believed(tmp_path: Path) -> None:
    options = ["--subject", "anna", "--role", "reviewer", "--role", "treasurer", "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 0
    token = json.loads(result.stdout)["token"]
    actor = verify(token, load_or_create(tmp_path / "keys").issuers.get, time.time())
    assert (actor.subject, actor.roles) == ("anna", ("reviewer", "treasurer"))


def test_token_issue_agent_without_its_agent_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--subject", "b", "--role", "agent", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "agent" in result.stderr

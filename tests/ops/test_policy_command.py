"""`placet policy check|test|diff` as a person runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ops.commands.policy import cases_command, check_command, diff_command
from placet.cli import run
from placet.errors import NotFound

DEFAULT = Path(__file__).parents[2] / "policies" / "default.yaml"
GOOD = "policy: p\nrules:\n  - {id: a, match: {tools: [read]}, then: allow}\n"
CASES = """
tools: {read: {name: read}, drop: {name: drop}}
cases:
  - {name: reads, call: {tool: read}, expect: {effect: allow, rule: a}}
  - {name: drops, call: {tool: drop}, expect: {effect: hold}}
"""


@pytest.fixture
def app() -> typer.Typer:
    commands = typer.Typer()
    commands.command("check")(check_command)
    commands.command("test")(cases_command)
    commands.command("diff")(diff_command)
    return commands


@pytest.fixture
def good(tmp_path: Path) -> Path:
    (tmp_path / "p.tests.yaml").write_text(CASES)
    (tmp_path / "p.yaml").write_text(GOOD)
    return tmp_path / "p.yaml"


def test_check_good_policy_leaves_with_0(app: typer.Typer, good: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(good), "--json"])

    assert (done.exit_code, json.loads(done.output)) == (0, {"problems": []})


def test_check_typo_leaves_with_1_and_names_it(app: typer.Typer, good: Path) -> None:
    good.write_text(GOOD.replace("rules", "rulez"))

    done = CliRunner().invoke(app, ["check", str(good)])

    assert done.exit_code == 1
    assert "did you mean 'rules'" in done.output


def test_check_of_what_ships_beside_a_few_tools_counts_those_that_nobody_published(app: typer.Typer) -> None:
    asked = ["check", str(DEFAULT), "--tool", "read_mail", "--tool", "PayOrder"]

    done = CliRunner().invoke(app, asked)
    verbose = CliRunner().invoke(app, [*asked, "--verbose"])
    as_json = CliRunner().invoke(app, [*asked, "--json"])

    (line,) = done.output.splitlines()
    found = re.fullmatch(
        r".*: warning: (\d+) rules name tools that are not published yet \((\d+) patterns .*", line
    )
    assert found
    assert int(found[1]) < int(found[2])
    assert len(verbose.output.splitlines()) == len(json.loads(as_json.output)["problems"]) == int(found[2])


def test_check_names_every_error_of_form_and_of_conditions_at_once(app: typer.Typer, good: Path) -> None:
    good.write_text("policy: p\nrules: [{id: a, then: maybe, when: args.x >, match: {tools: read}}]")

    done = CliRunner().invoke(app, ["check", str(good), "--json"])

    paths = [problem["path"] for problem in json.loads(done.output)["problems"]]
    assert (done.exit_code, sorted(paths)) == (1, ["rules[0].match.tools", "rules[0].then", "rules[0].when"])


def test_check_file_that_is_not_utf_8_leaves_with_2(app: typer.Typer, good: Path) -> None:
    good.write_bytes(b"policy: p # \xff")

    assert CliRunner().invoke(app, ["check", str(good)]).exit_code == 2


@pytest.mark.parametrize("server", ["nonsense", "ftp://host", "http://host:99999"])
@pytest.mark.parametrize("command", ["check", "diff"])
def test_wrong_address_of_against_is_wrong_usage_of_against(
    good: Path, command: str, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["--token", "t", "policy", command, str(good), "--against", server]) == 2
    said = capfd.readouterr().err
    assert said.startswith("--against ")
    assert "--url" not in said


def test_check_missing_file_leaves_with_2(app: typer.Typer, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["check", str(tmp_path / "none.yaml")]).exit_code == 2


def test_test_cases_beside_the_policy_are_run(app: typer.Typer, good: Path) -> None:
    done = CliRunner().invoke(app, ["test", str(good)])

    assert done.exit_code == 0
    assert "2 passed, 0 failed" in done.output


def test_test_without_cases_says_where_they_belong(app: typer.Typer, good: Path) -> None:
    beside = good.with_suffix(".tests.yaml")
    beside.unlink()

    done = CliRunner().invoke(app, ["test", str(good)])

    assert done.exit_code == 2
    assert f"{beside} does not exist: write the policy's cases there" in done.output


def test_test_failing_case_leaves_with_1_and_says_why(app: typer.Typer, good: Path) -> None:
    good.write_text(GOOD.replace("allow", "deny"))

    done = CliRunner().invoke(app, ["test", str(good)])

    assert done.exit_code == 1
    assert "expected 'allow', found 'deny'" in done.output


def test_diff_names_the_rule_and_the_call_that_is_judged_otherwise(
    app: typer.Typer, good: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(GOOD.replace("allow", "deny"))

    done = CliRunner().invoke(
        app, ["diff", str(good), str(new), "--cases", str(tmp_path / "p.tests.yaml"), "--json"]
    )

    found = json.loads(done.output)
    assert [rule["rule"] for rule in found["changed"]] == ["a"]
    assert [(call["case"], call["tool"], call["before"], call["after"]) for call in found["calls"]] == [
        ("reads", "read", "allow", "deny")
    ]


def test_diff_shows_old_and_new_values(app: typer.Typer, good: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(GOOD.replace("allow", "deny"))

    shown = CliRunner().invoke(app, ["diff", str(good), str(new)]).output

    assert 'then: "allow" → "deny"' in " ".join(shown.split())


def test_diff_of_two_files_and_a_server_is_wrong_usage(good: Path, capfd: pytest.CaptureFixture[str]) -> None:
    server = "http://127.0.0.1:9"

    assert run(["--token", "t", "policy", "diff", str(good), str(good), "--against", server]) == 2

    said = capfd.readouterr()
    assert str(good) in said.err
    assert f"--against {server}" in said.err
    assert said.out == ""


class _Server:
    """A gateway's client that knows one policy, or none."""

    def __init__(self, found: dict[str, object] | None) -> None:
        self.policies = self
        self._found = found

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get(self, name: str) -> dict[str, object]:
        if self._found is None:
            raise NotFound("not_found", 404, f"no such policy {name}")
        return self._found


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "no such policy p"),
        (
            {"version": 3, "retired_at": "2026-01-05T12:00:00Z", "document": {"policy": "p"}},
            "version 3 was retired",
        ),
    ],
)
def test_diff_with_a_name_of_which_nothing_is_in_force_shows_all_of_it_as_added(
    app: typer.Typer, good: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, object] | None, why: str
) -> None:
    monkeypatch.setattr("ops.commands.policy.server", lambda *_: _Server(found))

    done = CliRunner().invoke(app, ["diff", str(good), "--json"])

    assert done.exit_code == 0
    assert "no policy p is in force: every rule counts as added" in done.stderr
    assert why in done.stderr
    assert json.loads(done.stdout)["added"] == ["a"]


@pytest.mark.parametrize("place", ["old", "new"])
def test_diff_of_what_cannot_be_published_says_why_and_shows_no_table(
    app: typer.Typer, good: Path, tmp_path: Path, place: str
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(GOOD.replace("then:", "when: argz.x > 1.0, then:"))

    done = CliRunner().invoke(app, ["diff", *map(str, [good, bad] if place == "new" else [bad, good])])

    assert done.exit_code == 2
    assert "rules[0].when: unknown name 'argz'; did you mean 'args'?" in done.output
    assert "changed" not in done.output

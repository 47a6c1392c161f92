"""`placet audit-log`: one sentence and its exit code for what can be wrong, and a log that is on a broker."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ops.checker.command import Beside, audit_log, read_history, tell_found
from ops.config import StackConfig, save_config
from schemas import commands as k
from tests.log.logs import PARTITIONS, kafka_world
from tests.runtime.lab import Lab

NOWHERE = "127.0.0.1:1"


def audit(data_dir: Path, *arguments: str) -> Result:
    app = typer.Typer()
    app.command("audit-log")(audit_log)
    return CliRunner().invoke(app, ["--data-dir", str(data_dir), *arguments])


def stack(data_dir: Path, bootstrap_servers: str = NOWHERE, **settings: Any) -> Path:
    """A directory with a configuration, and nothing that runs."""
    save_config(
        StackConfig(
            data_dir=str(data_dir),
            bootstrap_servers=bootstrap_servers,
            embedded_kafka=False,
            database_url="",
            gateway_port=1,
            url="",
            log_signatures="off",
            **settings,
        )
    )
    return data_dir


def sentence(done: Result, exit_code: int) -> str:
    assert done.exit_code == exit_code, done.output
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    return last


def test_audit_log_without_a_stack_is_a_usage_error(tmp_path: Path) -> None:
    assert "or start one there (placet up" in sentence(audit(tmp_path), 2)


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_audit_log_without_its_kafka_is_not_reachable_and_shows_a_bar_to_people_only(
    tmp_path: Path, arguments: tuple[str, ...], is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What rich takes for a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1" if is_terminal else "")
    done = audit(stack(tmp_path), *arguments)

    assert f"Kafka does not answer at {NOWHERE}" in sentence(done, 3)
    assert ("reading the log" in done.stderr) == (is_terminal and arguments == ())


def test_audit_log_with_settings_that_are_not_known_is_a_usage_error(tmp_path: Path) -> None:
    settings = tmp_path / "kafka.json"
    settings.write_text(json.dumps({"sasl_plain_pasword": "x"}))

    done = audit(stack(tmp_path, kafka_settings=str(settings)))

    assert "unknown names (sasl_plain_pasword)" in sentence(done, 2)


def wrong(op: str, /, **fields: Any) -> str:
    """A history's line whose fields are texts, except for these."""
    names = ("client", "tenant", "project", "execution_id", "call_id", "attempt_id", "digest", "command_id")
    return json.dumps({"at": 1, **dict.fromkeys(names, "x"), "op": op, "events": ["e"], **fields})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "cannot be read"),
        ("[1]", "Line 1 of {path} has no at, client, op: fix it."),
        ('{"at": 1, "client": "bot", "op": "ack", "tenant": "acme"}', "has no command_id, events: fix it."),
        ('{"at": 1, "client": "bot", "op": "effect"}', "has no tenant, project, execution_id, call_id"),
        ('{"at": 1, "client": "bot", "op": "consume"}', "has no command_id: fix it."),
        (
            wrong("effect", attempt_id=None),
            "Line 1 of {path} has null as attempt_id, which must be a text: fix",
        ),
        (wrong("effect", at="1"), 'has "1" as at, which must be a number'),
        (wrong("effect", at=True), "has true as at, which must be a number"),
        (wrong("effect", client=None), "has null as client, which must be a text"),
        (wrong("effect", op=["effect"]), 'has ["effect"] as op, which must be a text'),
        (wrong("effect", digest="\ud800"), 'has "\\ud800" as digest, which must be a text'),
        (wrong("ack", events=None), "has null as events, which must be a list of texts"),
        (wrong("ack", events="e"), 'has "e" as events, which must be a list of texts'),
        (wrong("ack", events=["e", 1]), 'has ["e", 1] as events, which must be a list of texts'),
        (wrong("ack", command_digest=7), "has 7 as command_digest, which must be a text"),
        (wrong("decide", command_id={}), "has {{}} as command_id, which must be a text"),
        (wrong("decide", digest=["x" * 99]), "xxx… as digest, which must be a text"),
        (f"{wrong('decide')}\n{wrong('decide', digest=1)}", "Line 2 of {path} has 1 as digest"),
        (f"{wrong('decide')}\n\n{wrong('decide')}", "cannot be read (line 2: "),
        ("[" * 100_000, "cannot be read (line 1: "),
    ],
)
def test_audit_log_with_a_history_that_is_none_is_a_usage_error(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(text + "\n")

    assert said.format(path=path) in sentence(audit(tmp_path, "--history", str(path)), 2)


def test_history_with_what_is_not_held_against_the_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines = [
        wrong("ack", command_digest=None, project=None),
        wrong("decide", at=1.5, digest=None),
        wrong("unanswered", events=None, call_id=7),
        wrong("effect", note={}, client="a-b").replace("-", "\N{LINE SEPARATOR}"),
    ]
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    read = list(read_history(path))
    path.write_text("")

    assert read == [json.loads(one) for one in lines]
    assert list(read_history(path)) == []


def test_audit_log_with_a_history_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "missing.jsonl"

    assert f"The history {path} cannot be read" in sentence(audit(tmp_path, "--history", str(path)), 2)


@pytest.mark.broker
def test_audit_log_of_topics_that_nobody_made_says_how_to_make_them(tmp_path: Path, kafka: str) -> None:
    done = audit(stack(tmp_path, topic_prefix="nobody"), "--bootstrap-servers", kafka)

    assert "The topic nobody.executions" in sentence(done, 3)


@pytest.mark.broker
async def test_audit_log_of_a_log_that_a_client_remembers_otherwise_names_the_promise(
    tmp_path: Path, kafka: str, topic_prefix: str, seed: int
) -> None:
    async with kafka_world(kafka, topic_prefix) as world:
        lab = Lab(world.log, PARTITIONS, random.Random(seed))
        await lab.start_worker("one")
        await lab.ask("x", k.StartExecution(agent="bot"))
        await lab.close()
    stack(tmp_path, kafka, topic_prefix=topic_prefix)
    remembered = {"at": 0, "client": "bot", "op": "ack", "tenant": "acme", "command_id": "r", "events": ["e"]}
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps(remembered) + "\n")

    clean = await asyncio.to_thread(audit, tmp_path)
    broken = await asyncio.to_thread(audit, tmp_path, "--history", str(history))
    as_json = await asyncio.to_thread(audit, tmp_path, "--history", str(history), "--json")

    assert clean.exit_code == 0, clean.output
    assert clean.stdout.endswith(" records read, 0 violations\n")
    assert broken.exit_code == as_json.exit_code == 1
    assert "I3 bot at 0: an acknowledged answer is not in the log" in broken.stdout
    assert "I3: every acknowledged command is in the log" in broken.stdout
    assert [found["invariant"] for found in json.loads(as_json.stdout)["violations"]] == ["I3"]
    assert as_json.stderr == ""
    assert json.loads(as_json.stdout)["trust"] == {"released": 0, "computed_again": 0}
    assert "by trust" not in clean.stdout


@pytest.mark.parametrize(
    ("releases", "computed", "said"),
    [
        (1, 1, "1 release by trust, the score of 1"),
        (1200, 1199, "1,200 releases by trust, the score of 1,199"),
    ],
)
def test_releases_whose_score_was_computed_again_are_told(
    capsys: pytest.CaptureFixture[str], releases: int, computed: int, said: str
) -> None:
    tell_found(7, [], Beside([], releases, computed), as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"{said} computed again from people's words",
        "7 records read, 0 violations",
    ]

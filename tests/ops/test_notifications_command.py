"""`placet notifications check|test`, and what `placet up --notifications` makes of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.config import StackConfig
from ops.daemon import from_json, to_json
from ops.doctor import FAILED, OK, _notifications
from ops.options import UpOptions, settle
from ops.role import ALWAYS, NOTIFIER
from ops.roles import roles_of
from tests.processors.notifications.receiver import SECRET, Receiver, receiving
from tests.servers.stack import PLACET, run_placet


def write(path: Path, url: str, **notification: Any) -> Path:
    target = {"webhook": {"url": url, "secret_file": "hook.secret"}}
    (path / "hook.secret").write_text(SECRET)
    one = {"id": "all", "when": {"events": ["hold_opened"]}, "to": [target], **notification}
    file = path / "notifications.yaml"
    file.write_text(yaml.safe_dump({"notifications": [one]}))
    return file


def placet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_placet("notifications", *arguments)


def test_check_good_file_lists_its_targets(tmp_path: Path) -> None:
    done = placet("check", str(write(tmp_path, "https://example.com/hooks")))
    assert (done.returncode, done.stdout) == (0, "all/1: webhook, hold_opened\n")


def test_check_mistake_is_exit_1_with_its_path_and_as_json(tmp_path: Path) -> None:
    file = write(tmp_path, "https://example.com/", whenn={})
    done = placet("check", str(file))
    assert done.returncode == 1
    assert "notifications[0].whenn: unknown field 'whenn'; did you mean 'when'?" in done.stdout
    done = placet("check", str(file), "--json")
    assert json.loads(done.stdout)["problems"][0]["path"] == "notifications[0].whenn"


def test_test_sends_a_message_that_says_so(tmp_path: Path) -> None:
    with receiving() as receiver:
        done = placet("test", str(write(tmp_path, receiver.url)), "--id", "all")
    assert (done.returncode, done.stdout) == (0, "all/1 (webhook): accepted\n")
    assert receiver.requests[0].body["type"] == "test"
    assert receiver.forged == []


def test_test_not_taken_is_exit_1_and_says_why(tmp_path: Path) -> None:
    with receiving(Receiver(answer=lambda _: (403, {}))) as receiver:
        done = placet("test", str(write(tmp_path, receiver.url)), "--id", "all")
    assert (done.returncode, done.stderr) == (1, "all/1 (webhook): not accepted: HTTP 403\n")


def test_test_unknown_id_is_exit_2_and_names_those_there_are(tmp_path: Path) -> None:
    done = placet("test", str(write(tmp_path, "https://example.com/")), "--id", "nobody")
    assert done.returncode == 2
    assert "has no notification 'nobody': it has all." in done.stderr


def test_up_with_a_bad_file_is_exit_2_before_anything_starts(tmp_path: Path) -> None:
    file = write(tmp_path, "http://example.com/")
    done = subprocess.run(
        [PLACET, "up", "--data-dir", str(tmp_path / "data"), "--notifications", str(file), "--detach"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "write https" in done.stderr
    assert not (tmp_path / "data").exists()


def test_settle_notifications_file_makes_the_notifier_a_role(tmp_path: Path) -> None:
    options = UpOptions(
        tmp_path, port=0, notifications=tmp_path / "n.yaml", audit_heads_dir=tmp_path / "heads"
    )
    config = settle(from_json(to_json(options)), "k:9092")
    assert config.notifications_file == str(tmp_path / "n.yaml")
    assert config.audit_heads_dir == str(tmp_path / "heads")
    assert roles_of(config) == (*ALWAYS, NOTIFIER.name)
    settings = config.settings_for(NOTIFIER.name)
    assert settings["notifications_file"] == config.notifications_file
    assert settings["gateway_url"] == config.url


def test_roles_of_a_stack_without_notifications_has_no_notifier() -> None:
    config = StackConfig("d", "k:9092", True, "sqlite://", 1, "http://x")
    assert roles_of(config) == ALWAYS


@pytest.mark.parametrize(("url", "state"), [("https://example.com/", OK), ("http://example.com/", FAILED)])
def test_doctor_tells_whether_the_file_is_still_good(tmp_path: Path, url: str, state: str) -> None:
    assert _notifications(write(tmp_path, url)).state == state

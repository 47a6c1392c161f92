from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.main import server_config
from gateway.service.assembly import assemble
from gateway.settings import read_settings
from host.errors import SettingsRefused
from ops.ports import free_port
from schemas.topics import Topics
from tests.conftest import TEST_PARTITIONS

ROOT = Path(__file__).resolve().parents[2]
RUN = "import json, sys; from gateway.main import run; run(json.loads(sys.argv[1]))"


def _settings(directory: Path, **changed: str) -> dict[str, str]:
    return {
        "data_dir": str(directory),
        "keys_dir": str(directory / "keys"),
        "bootstrap_servers": f"127.0.0.1:{free_port()}",
        "database_url": f"sqlite:///{directory}/views.db",
        "gateway_port": "0",
        "log_signatures": "off",
        "status_file": str(directory / "run" / "gateway.json"),
        **changed,
    }


def _run(settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, json.dumps(settings)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)


def test_run_kafka_unreachable_is_one_sentence_and_exit_3(tmp_path: Path) -> None:
    done = _run(_settings(tmp_path))
    assert done.returncode == 3
    assert "Kafka does not answer at 127.0.0.1" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "run" / "gateway.json").exists()


@pytest.mark.parametrize("setting", ["gateway_port", "bridge_port"])
def test_run_port_taken_is_one_sentence_and_exit_2(setting: str, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = _run(_settings(tmp_path, **{setting: str(port)}))
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be listened on" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"gateway_policy": "missing.yaml"}, "gateway policy"),
        ({"kafka_settings": "missing.json"}, "Kafka settings"),
        ({"database_url": "mysql://x"}, "sqlite:///"),
        ({"gateway_port": "many"}, "not a number"),
        ({"bridge_port": "many"}, "not a number"),
        ({"gateway_requests_per_s": "many"}, "not a number"),
        ({"gateway_requests_per_s": "0"}, "1 or more"),
        ({"gateway_agent_proposals_per_minute": "0"}, "gateway_agent_proposals_per_minute must be 1 or more"),
    ],
)
def test_run_wrong_setting_is_one_sentence(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    done = _run(_settings(tmp_path, **changed))
    assert done.returncode in (2, 3)
    assert words in done.stderr.splitlines()[-1]


def test_run_damaged_key_is_named(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "gateway.pem").write_text("damaged")
    done = _run(_settings(tmp_path))
    assert done.returncode == 2
    assert "gateway.pem" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "missing", ["data_dir", "keys_dir", "bootstrap_servers", "database_url", "gateway_port"]
)
def test_read_settings_missing_one_is_named(tmp_path: Path, missing: str) -> None:
    settings = _settings(tmp_path)
    del settings[missing]
    with pytest.raises(SettingsRefused, match=missing):
        read_settings(settings)


@pytest.mark.broker
@pytest.mark.parametrize("configured", [TEST_PARTITIONS - 1, TEST_PARTITIONS + 1])
def test_run_with_another_partition_count_is_one_sentence_and_exit_2(
    tmp_path: Path, kafka: str, topics: Topics, configured: int
) -> None:
    done = _run(
        _settings(tmp_path, bootstrap_servers=kafka, topic_prefix=topics.prefix, partitions=str(configured))
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"The topic {topics.commands} has {TEST_PARTITIONS} partitions and {configured} were asked for: the count "
        f"is fixed for the life of the log, so start with --partitions {TEST_PARTITIONS}."
    )
    assert "Traceback" not in done.stderr


@pytest.mark.broker
def test_run_without_its_topics_is_one_sentence_and_exit_3(tmp_path: Path, kafka: str) -> None:
    done = _run(_settings(tmp_path, bootstrap_servers=kafka, topic_prefix="nobodys"))
    assert done.returncode == 3
    assert (
        "The topic nobodys.commands or one of its partitions does not exist" in done.stderr.splitlines()[-1]
    )


@pytest.mark.broker
def test_run_ends_cleanly_on_sigterm_while_it_waits_for_the_views(
    tmp_path: Path, kafka: str, topics: Topics
) -> None:
    settings = _settings(
        tmp_path, bootstrap_servers=kafka, topic_prefix=topics.prefix, partitions=str(TEST_PARTITIONS)
    )
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, json.dumps(settings)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    status = tmp_path / "run" / "gateway.json"
    try:
        _wait_for(status, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert not status.exists()


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(("level", "expected"), [("DEBUG", "info"), ("INFO", "info"), ("ERROR", "error")])
def test_http_server_never_writes_down_what_comes_over_a_socket(
    tmp_path: Path, level: str, expected: str
) -> None:
    config = server_config(assemble(read_settings(_settings(tmp_path, log_level=level))))

    assert config.log_level == expected
    assert not logging.getLogger("uvicorn.error").isEnabledFor(logging.DEBUG)

"""What an operator meets: one clear sentence, exit code 2 or 3, and nothing lost.

What needs no running stack is tested in tests/ops (docs/abuse-cases.md has the list).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ops.config import DataDir, load_config, save_config
from ops.kafka.jars import cache_dir
from ops.kafka.manifest import KAFKA_VERSION
from ops.role import ALWAYS
from tests.integration.full_disk import private_mounts
from tests.integration.site import Site
from tests.servers.stack import COMMAND_TIMEOUT_S, PLACET, run_placet

pytestmark = [pytest.mark.stack, pytest.mark.broker]
NOWHERE = "127.0.0.1:1"


def up(data_dir: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PLACET, "up", "--data-dir", str(data_dir), "--port", "0", "--detach", *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **env},
    )


def role(name: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    """Run one process of a stack by itself; it must end."""
    command = [sys.executable, "-m", "ops.roles", name, "--config", str(data_dir / "placet.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def elsewhere(site: Site, data_dir: Path, **changed: Any) -> Path:
    """A directory with the site's configuration, changed, and the site's keys."""
    config = load_config(DataDir(site.stack.data_dir).config)
    save_config(replace(config, data_dir=str(data_dir), gateway_port=0, **changed))
    shutil.copytree(site.stack.data_dir / "keys", data_dir / "keys")
    return data_dir


def views(name: str, data_dir: Path) -> dict[str, str]:
    """Only the gateway, which reads and never writes them, may look at the site's views."""
    return {} if name == "gateway" else {"database_url": f"sqlite:///{data_dir}/views.sqlite"}


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


def test_up_without_kafka_is_one_sentence_and_exit_3(tmp_path: Path) -> None:
    done = up(tmp_path, "--bootstrap-servers", NOWHERE)
    assert done.returncode == 3
    assert done.stderr.startswith(f"Kafka does not answer at {NOWHERE}")
    assert done.stderr.count("\n") == 1


def test_up_with_another_partition_count_is_one_sentence_and_exit_2(site: Site, tmp_path: Path) -> None:
    bootstrap_servers = site.stack.status()["bootstrap_servers"]
    owner = str(DataDir(site.stack.data_dir).kafka_clients)
    done = up(
        tmp_path, "--bootstrap-servers", bootstrap_servers, "--kafka-settings", owner, "--partitions", "5"
    )
    assert done.returncode == 2
    assert "start with --partitions 3" in done.stderr
    assert done.stderr.count("\n") == 1
    assert site.stack.wait_ready()


def test_gateway_with_another_partition_count_is_one_sentence_and_exit_2(site: Site, tmp_path: Path) -> None:
    done = role("gateway", elsewhere(site, tmp_path, partitions=5))
    assert done.returncode == 2, done.stderr
    assert "start with --partitions 3" in last_line(done)
    assert "Traceback" not in done.stderr


def test_up_on_a_data_directory_in_use_is_one_sentence_and_exit_2(site: Site) -> None:
    done = up(site.stack.data_dir)
    assert done.returncode == 2
    assert "is in use by the stack of another process (" in done.stderr
    assert done.stderr.count("\n") == 1
    assert site.stack.wait_ready()


def test_up_on_a_taken_port_is_one_sentence_and_exit_2(site: Site, tmp_path: Path) -> None:
    port = site.url.rpartition(":")[2]
    done = run_placet("up", "--data-dir", str(tmp_path), "--port", port, "--detach")
    assert done.returncode == 2
    assert f"Port {port} on 127.0.0.1 is taken: choose another with --port" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_process_whose_topics_are_missing_says_so_and_exits_3(site: Site, tmp_path: Path, name: str) -> None:
    # Who may not look at a topic is not told that it is missing.
    owner = str(DataDir(site.stack.data_dir).kafka_clients / "installation.json")
    done = role(
        name, elsewhere(site, tmp_path, topic_prefix="nobody", kafka_settings=owner, **views(name, tmp_path))
    )
    assert done.returncode == 3, done.stderr
    assert "nobody." in last_line(done)
    assert "placet up" in last_line(done)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_process_that_does_not_reach_kafka_says_so_and_exits_3(site: Site, tmp_path: Path, name: str) -> None:
    done = role(name, elsewhere(site, tmp_path, bootstrap_servers=NOWHERE, **views(name, tmp_path)))
    assert done.returncode == 3, done.stderr
    assert NOWHERE in last_line(done)
    assert "Traceback" not in done.stderr


def test_up_with_a_corrupted_jar_and_no_network_is_one_sentence_and_exit_3(
    site: Site, tmp_path: Path
) -> None:
    jars = sorted((cache_dir() / f"kafka-{KAFKA_VERSION}").glob("*.jar"))
    home = tmp_path / "cache" / f"kafka-{KAFKA_VERSION}"
    home.mkdir(parents=True)
    for jar in jars[1:]:
        (home / jar.name).symlink_to(jar)
    damaged = bytearray(jars[0].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (home / jars[0].name).write_bytes(damaged)

    done = up(
        tmp_path / "data",
        PLACET_CACHE=str(tmp_path / "cache"),
        PLACET_MAVEN_REPOSITORY="http://127.0.0.1:9/m2",
    )

    assert done.returncode == 3
    assert f"{jars[0].name} could not be fetched" in done.stderr
    assert done.stderr.count("\n") == 1


def test_disk_full_is_said_by_up_and_status_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(private_mounts(tmp_path), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])

    assert (seen["up_exit"], seen["status_exit"]) == (3, 3)
    assert "free space, or choose another --data-dir" in seen["up_said"]
    assert seen["up_said"].count("\n") == 1
    assert "free space" in seen["status_said"]
    assert len(seen["acknowledged"]) >= 20
    assert seen["found"] == seen["acknowledged"]


@pytest.mark.timeout(400)
def test_supervisor_outlives_a_full_disk_and_starts_its_parts_again(tmp_path: Path) -> None:
    done = subprocess.run(
        private_mounts(tmp_path / "data", "whole"), capture_output=True, text=True, timeout=380
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    for disk, told in (("views-disk", "the views"), ("heads-disk", "the audit heads")):
        check_told_of_a_disk(seen["alone"][disk], tmp_path / disk, told)
    low = seen["alone"]["low"]
    assert low["code"] == 200
    nearly = "the disk of the data directory is nearly full: less than 64 MB are free"
    assert any(warning.endswith(nearly) for warning in low["said"]["warnings"])
    assert f"The disk that holds {tmp_path / 'data'} is nearly full" in low["status"]["message"]
    assert seen["alive"]
    assert "free space" in seen["told"]
    assert (seen["same"], seen["state"]) == (True, "ready")
    assert min(seen["restarts"]["decider"], seen["restarts"]["trust"]) >= 1
    # Five seconds are promised, and the machine may be busy.
    assert seen["told_within_s"] < 15.0
    full = f"The disk that holds {tmp_path / 'data'}"
    code, said = seen["up"]
    assert (code, said.count("\n")) == (3, 1), said
    assert said.startswith(full), said
    assert "free space" in said
    assert seen["status"] == f"{full} is full: free space first."


def check_told_of_a_disk(seen: dict[str, Any], disk: Path, what: str) -> None:
    """Whoever asks while the projector cannot write is told so, and why, each time."""
    assert {code for code, _ in seen["answers"]} == {503}
    named = f"the disk of {what} is full: free space"
    assert [problems for _, problems in seen["answers"] if not any(named in text for text in problems)] == []
    assert any("ended by an error" in text for _, problems in seen["answers"] for text in problems)
    assert seen["status"]["state"] == "degraded"
    assert f"The disk that holds {disk}" in seen["status"]["message"]
    assert "is full: free space" in seen["status"]["message"]
    assert not any("disk" in warning for warning in seen["warnings"])


@pytest.mark.parametrize("detach", [True, False])
def test_up_where_no_directory_can_be_made_is_one_sentence_and_exit_2(tmp_path: Path, detach: bool) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run_placet(
        "up", "--data-dir", str(file / "data"), "--port", "0", *(("--detach",) if detach else ())
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be created or written (Not a directory)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_up_with_a_log_level_that_is_none_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    done = up(tmp_path, "--log-level", "LOUD")
    assert done.returncode == 2
    assert done.stderr == "LOUD is not a log level: give one of DEBUG, INFO, WARNING, ERROR, CRITICAL.\n"


def test_role_with_a_log_level_that_is_none_is_one_sentence_and_exit_2(site: Site, tmp_path: Path) -> None:
    done = role("decider", elsewhere(site, tmp_path, log_level="LOUD"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "LOUD is not a log level" in done.stderr


def test_up_with_a_log_format_that_is_none_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    done = up(tmp_path, "--log-format", "xml")
    assert (done.returncode, done.stderr) == (2, "xml is not a log format: give one of text, json.\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "console")],
)
def test_up_with_telemetry_that_is_not_supported_is_one_sentence_and_exit_2(
    tmp_path: Path, name: str, value: str
) -> None:
    done = up(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{NOWHERE}", **{name: value})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"{name} must be ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "256"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x"),
    ],
)
def test_up_with_telemetry_that_the_sdk_refuses_is_one_sentence_and_exit_2_before_anything_starts(
    tmp_path: Path, name: str, value: str
) -> None:
    done = up(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{NOWHERE}", **{name: value})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("OpenTelemetry refuses its variables (OTEL_…): ")
    assert list(tmp_path.iterdir()) == []

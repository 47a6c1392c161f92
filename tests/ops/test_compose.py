"""docker-compose.yml, as far as it can be held to its word without a container engine."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.config import StackConfig
from ops.install import BROKER_PASSWORD
from ops.kafka.jars import cache_dir, ensure_jars
from ops.kafka.java import find_java
from ops.kafka.manifest import KAFKA_VERSION
from ops.kafka.settings import Layout, Ports, write_settings
from ops.role import NOTIFIER, ROLES
from schemas.topics import MAX_MESSAGE_BYTES
from services.processors.notifications.config import load_notifications
from services.processors.notifications.document import NotificationsRefused
from tests.ops.compose import interpolate, violations
from tests.processors.notifications.receiver import SECRET

ROOT = Path(__file__).parents[2]
BROKERS = ("kafka-1", "kafka-2", "kafka-3")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    given = {"POSTGRES_PASSWORD": "abc123", "KAFKA_PASSWORD": "def456"}
    text = interpolate((ROOT / "docker-compose.yml").read_text(encoding="utf-8"), given)
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


def test_compose_keeps_the_specifications_rules(document: dict[str, Any]) -> None:
    assert list(violations(document)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("services", "gateway", "port"), ["8000:8000"]),
        (("services", "decider", "networks"), ["elsewhere"]),
        (("services", "decider", "depends_on"), {"nobody": {"condition": "service_started"}}),
        (("services", "kafka-1", "healthcheck"), {}),
        (("services", "kafka-1", "environment", "KAFKA_NODE_ID"), 1),
        (("services", "postgres", "healthcheck", "interval"), "5 seconds"),
        (("services", "postgres", "image"), "Postgres latest"),
        (("volume",), {}),
    ],
    ids=lambda part: ".".join(part) if isinstance(part, tuple) else "",
)
def test_compose_rules_find_a_mistake(document: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    broken = copy.deepcopy(document)
    inner = broken
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert list(violations(broken))


@pytest.mark.parametrize("given", ["POSTGRES_PASSWORD", "KAFKA_PASSWORD"])
def test_compose_without_a_password_is_refused(given: str) -> None:
    with pytest.raises(KeyError, match="set it to a password"):
        interpolate((ROOT / "docker-compose.yml").read_text(encoding="utf-8"), {given: "abc123"})


def test_compose_runs_every_role_after_the_installation(document: dict[str, Any]) -> None:
    for role in ROLES:
        service = document["services"][role]
        assert service["command"][0] == role
        assert service["depends_on"] == {"install": {"condition": "service_completed_successfully"}}


def test_compose_every_service_says_how_it_is(document: dict[str, Any]) -> None:
    services = document["services"]
    assert len(services) == len(ROLES) + len(BROKERS) + len(("postgres", "install"))
    assert [
        name for name, service in services.items() if not service.get("healthcheck", {}).get("test")
    ] == []


def test_compose_roles_are_asked_at_the_ports_where_their_probes_listen(document: dict[str, Any]) -> None:
    config = StackConfig(**json.loads(document["configs"]["placet"]["content"]))
    for role in ROLES:
        port = config.gateway_port if role == "gateway" else config.probe_port_of(role)
        test = document["services"][role]["healthcheck"]["test"]
        assert test == ["CMD", "python", "-m", "ops.probe", f"http://127.0.0.1:{port}/readyz"]


def test_compose_configuration_is_one_that_roles_read(document: dict[str, Any]) -> None:
    config = StackConfig(**json.loads(document["configs"]["placet"]["content"]))
    addresses = [document["services"][name]["environment"]["KAFKA_ADVERTISED_LISTENERS"] for name in BROKERS]
    assert config.bootstrap_servers == ",".join(text.removeprefix("INTERNAL://") for text in addresses)
    assert config.database_url == "postgresql://placet:abc123@postgres:5432/placet"
    assert config.replication_factor == len(BROKERS)


def settings_of(environment: dict[str, str]) -> dict[str, str]:
    """The server.properties that the image makes of its environment (KafkaDockerWrapper of apache/kafka)."""
    return {
        key.replace("KAFKA_", "").lower().replace("_", ".").replace("...", "-").replace("..", "_"): " ".join(
            text.split()
        )
        for key, text in environment.items()
    }


def test_compose_brokers_ask_who_is_there_as_the_embedded_one_does(
    document: dict[str, Any], tmp_path: Path
) -> None:
    layout = Layout(tmp_path)
    write_settings(layout, Ports(1, 2), "def456")
    lines = layout.properties.read_text(encoding="utf-8").splitlines()
    embedded = dict(line.split("=", 1) for line in lines)
    asked = {key: text for key, text in embedded.items() if "sasl" in key or "author" in key or "acl" in key}
    asked |= {"super.users": embedded["super.users"]}
    for name in BROKERS:
        settings = settings_of(document["services"][name]["environment"])
        for key, text in asked.items():
            assert settings[key.replace("listener.name.broker.", "listener.name.internal.")] == text
        assert "PLAINTEXT" not in settings["listener.security.protocol.map"].replace("SASL_PLAINTEXT", "")
        (config,) = document["services"][name]["configs"]
        assert 'password="def456"' in document["configs"][config["source"]]["content"]
    assert document["services"]["install"]["environment"] == {BROKER_PASSWORD: "def456"}


def test_compose_notifier_takes_its_file_and_the_others_do_without(
    document: dict[str, Any], tmp_path: Path
) -> None:
    notifier = document["services"][NOTIFIER.name]
    assert notifier["profiles"] == ["notifications"]
    config = StackConfig(**json.loads(document["configs"]["placet"]["content"]))
    targets = {one["source"]: one["target"] for one in notifier["configs"]}
    assert targets["notifications"] == config.notifications_file
    text = interpolate(
        (ROOT / "docker-compose.yml").read_text(encoding="utf-8"),
        {
            "POSTGRES_PASSWORD": "abc123",
            "KAFKA_PASSWORD": "def456",
            "PLACET_WEBHOOK_URL": "https://h.example/p",
        },
    )
    file = tmp_path / "notifications.yaml"
    file.write_text(yaml.safe_load(text)["configs"]["notifications"]["content"], encoding="utf-8")
    (found,) = load_notifications(file, {"PLACET_WEBHOOK_SECRET": SECRET}, "").endpoints
    assert found.channel.kind == "webhook"
    with pytest.raises(NotificationsRefused, match="PLACET_WEBHOOK_SECRET is not set"):
        load_notifications(file, {}, "")


def test_compose_brokers_are_safe_and_of_the_embedded_version(document: dict[str, Any]) -> None:
    for name in BROKERS:
        service = document["services"][name]
        environment = service["environment"]
        assert service["image"] == f"apache/kafka:{KAFKA_VERSION}"
        assert environment["KAFKA_MIN_INSYNC_REPLICAS"] == "2"
        assert environment["KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE"] == "false"
        assert environment["KAFKA_MESSAGE_MAX_BYTES"] == str(MAX_MESSAGE_BYTES)


@pytest.mark.parametrize("name", BROKERS)
def test_compose_brokers_settings_are_accepted_by_kafka(
    document: dict[str, Any], name: str, tmp_path: Path
) -> None:
    environment = dict(document["services"][name]["environment"])
    cluster_id = environment.pop("CLUSTER_ID")
    settings = settings_of(environment)
    settings["log.dirs"] = str(tmp_path / "data")
    properties = tmp_path / "server.properties"
    properties.write_text("".join(f"{key}={text}\n" for key, text in settings.items()), encoding="utf-8")
    class_path = os.pathsep.join(map(str, ensure_jars(cache_dir())))
    arguments = ("format", f"--cluster-id={cluster_id}", "-c", str(properties))
    command = [
        str(find_java()),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        class_path,
        "kafka.tools.StorageTool",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"cluster.id={cluster_id}" in (tmp_path / "data" / "meta.properties").read_text(encoding="utf-8")


def test_dockerfile_copies_every_room_and_only_what_exists() -> None:
    lines = (ROOT / "ops" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {line.split()[1] for line in lines if line.startswith("COPY ")}
    assert {
        "host",
        "schemas",
        "log",
        "vitals",
        "services",
        "projections",
        "gateway",
        "ops",
        "sdk/src",
        "requirements/server.lock",
        "LICENSE",
    } <= copied
    assert all((ROOT / path).exists() for path in copied)

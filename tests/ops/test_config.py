"""A stack's configuration survives the way to its roles, and what is left open is settled once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from host.errors import EXIT_USAGE
from ops.config import StackConfig, load_config, save_config
from ops.daemon import from_json, to_json
from ops.errors import PortTakenError, UsageError
from ops.options import UpOptions, oidc_environment, settle

LOOPBACK = "127.0.0.1"


def test_settle_chooses_port_database_and_url(tmp_path: Path) -> None:
    config = settle(UpOptions(tmp_path, port=0), "127.0.0.1:9092")
    assert config.gateway_port > 0
    assert config.url == f"http://127.0.0.1:{config.gateway_port}"
    assert config.database_url == f"sqlite:///{tmp_path}/views.sqlite"
    assert config.embedded_kafka


def test_settle_on_every_address_gives_a_reachable_url(tmp_path: Path) -> None:
    options = UpOptions(
        tmp_path, port=0, host="0.0.0.0", bootstrap_servers="kafka:9092", database_url="postgresql:///x"
    )
    config = settle(options, "kafka:9092")
    assert config.url.startswith("http://127.0.0.1:")
    assert config.gateway_host == "0.0.0.0"
    assert not config.embedded_kafka
    assert config.database_url == "postgresql:///x"


def test_settle_taken_port_says_what_to_do(tmp_path: Path) -> None:
    said = pytest.raises(PortTakenError, match="choose another with --port")
    with socket.create_server((LOOPBACK, 0)) as other, said as refused:
        settle(UpOptions(tmp_path, port=other.getsockname()[1]), "127.0.0.1:9092")
    assert refused.value.exit_code == EXIT_USAGE


def test_settle_bridge_port_is_none_a_free_one_or_the_given_one(tmp_path: Path) -> None:
    by_default = settle(UpOptions(tmp_path, port=0), "127.0.0.1:9092")
    assert (by_default.bridge_port, by_default.bridge_address) == (0, None)
    chosen = settle(UpOptions(tmp_path, port=0, bridge_port=0), "127.0.0.1:9092")
    assert chosen.bridge_address == f"127.0.0.1:{chosen.bridge_port}"
    given = settle(UpOptions(tmp_path, port=0, bridge_port=chosen.bridge_port), "127.0.0.1:9092")
    assert given.settings_for("gateway")["bridge_port"] == str(chosen.bridge_port) != "0"


def test_settle_taken_bridge_port_says_what_to_do(tmp_path: Path) -> None:
    said = pytest.raises(PortTakenError, match="choose another with --bridge-port")
    with socket.create_server((LOOPBACK, 0)) as other, said:
        settle(UpOptions(tmp_path, port=0, bridge_port=other.getsockname()[1]), "127.0.0.1:9092")


def test_saved_config_is_loaded_the_same(tmp_path: Path) -> None:
    config = settle(UpOptions(tmp_path, port=0, gateway_origins=("http://a", "http://b")), "127.0.0.1:9092")
    save_config(config)
    assert load_config(config.directory.config) == config
    assert config.gateway_origins == "http://a http://b"


def test_load_config_missing_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--data-dir .*, or start one there \(placet up --data-dir "):
        load_config(tmp_path / "placet.json")


def test_settings_for_a_role_are_plain_text_with_its_own_status_file(tmp_path: Path) -> None:
    config = StackConfig(
        data_dir=str(tmp_path),
        bootstrap_servers="127.0.0.1:9092",
        embedded_kafka=True,
        database_url="sqlite:///x",
        gateway_port=8000,
        url="http://127.0.0.1:8000",
    )
    settings = config.settings_for("decider-2")
    assert all(isinstance(value, str) for value in settings.values())
    assert settings["status_file"] == str(tmp_path / "run" / "decider-2.json")
    assert settings["worker_id"] == "decider-2"
    promised = {"data_dir", "bootstrap_servers", "kafka_settings", "topic_prefix", "database_url", "keys_dir"}
    assert promised | {"gateway_host", "gateway_port", "log_level"} <= set(settings)


def test_options_survive_the_way_to_a_detached_supervisor(tmp_path: Path) -> None:
    options = UpOptions(
        tmp_path,
        port=0,
        kafka_settings=tmp_path / "kafka.json",
        gateway_origins=("http://a",),
        partitions=3,
        oidc={"issuer": "https://login.example"},
        audit_heads_dir=tmp_path / "heads",
        audit_head_seconds=0.5,
    )
    assert from_json(to_json(options)) == options
    assert from_json(to_json(UpOptions(tmp_path))) == UpOptions(tmp_path)


def test_audit_heads_reach_the_projectors_settings_and_a_wrong_webhook_is_refused(tmp_path: Path) -> None:
    asked = UpOptions(
        tmp_path, port=0, audit_heads_dir=tmp_path / "heads", audit_webhook="https://keeper/heads"
    )
    settings = settle(asked, "127.0.0.1:9092").settings_for("projector")
    assert settings["audit_heads_dir"] == str(tmp_path / "heads")
    assert settings["audit_webhook"] == "https://keeper/heads"
    assert (settings["audit_head_events"], settings["audit_head_seconds"]) == ("1000", "10.0")
    with pytest.raises(UsageError, match="--audit-webhook"):
        settle(UpOptions(tmp_path, port=0, audit_webhook="keeper/heads"), "127.0.0.1:9092")


IDP = {"PLACET_OIDC_ISSUER": "https://login.example", "PLACET_OIDC_AUDIENCE": "placet"}


def test_identity_provider_of_the_environment_reaches_the_gateways_settings(tmp_path: Path) -> None:
    environment = {**IDP, "PLACET_OIDC_TENANT": "acme", "PLACET_OIDC_ROLES_MAP": "", "HOME": "/"}
    options = UpOptions(tmp_path, port=0, oidc=oidc_environment(environment))
    config = settle(options, "127.0.0.1:9092")
    save_config(config)
    settings = load_config(config.directory.config).settings_for("gateway")
    found = {name: text for name, text in settings.items() if name.startswith("oidc_")}
    assert found == {
        "oidc_issuer": "https://login.example",
        "oidc_audience": "placet",
        "oidc_tenant": "acme",
    }
    assert oidc_environment({"HOME": "/"}) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"PLACET_OIDC_AUDIENCE": ""},
        {"PLACET_OIDC_ISSUER": "http://login.example"},
        {"PLACET_OIDC_ALGORITHMS": "HS256"},
        {"PLACET_OIDC_AUDIENSE": "placet"},
    ],
    ids=str,
)
def test_identity_provider_that_cannot_be_used_is_wrong_usage(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="PLACET_OIDC_"):
        oidc_environment({**IDP, **wrong})

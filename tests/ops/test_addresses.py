"""Addresses that cannot be listened on or sent to: one sentence, and nothing is started."""

from __future__ import annotations

import itertools
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.vault.postgres import PostgresVaultDatabase
from gateway.vault.store import VaultUnavailable
from ops import ports
from ops.config import StackConfig, save_config
from ops.errors import DatabaseUnreachableError, PortTakenError, UsageError
from ops.options import Probes, UpOptions, check_addresses, settle
from ops.ports import broker_addresses, free_port, in_url
from ops.process import STOP_SIGNALS
from ops.view_upgrade import check_database
from placet.cli import run
from projections.store import bounded, postgres

UP = ["up", "--data-dir", "unused", "--port", "0"]
WRONG = {
    "port beyond the last": (["--port", "80000"], "65535"),
    "port below the first": (["--port", "-1"], "--port"),
    "host of another machine": (
        ["--detach", "--host", "192.0.2.9"],
        "192.0.2.9 is not an address of this machine",
    ),
    "host that no one knows": (
        ["--host", "nobody.invalid"],
        "nobody.invalid is not an address of this machine",
    ),
    "host that is no name": (["--host", "a" * 64], "is not an address of this machine"),
    "gateway's and gRPC's port the same": (["--port", "8002", "--grpc-port", "8002"], "are both 8002"),
    "bridge's and gRPC's port the same": (["--bridge-port", "8080", "--grpc-port", "8080"], "are both 8080"),
    "bridge's port beyond the last": (["--bridge-port", "65536"], "--bridge-port"),
    "probes' host": (["--probe-host", "192.0.2.9"], "--probe-host"),
    "brokers' port": (["--bootstrap-servers", "localhost:99999"], "--bootstrap-servers"),
    "brokers' port that is none": (["--bootstrap-servers", "localhost:9092,other:x"], "'other:x' is not one"),
    "no broker": (["--bootstrap-servers", ","], "--bootstrap-servers"),
    "webhook's port": (["--audit-webhook", "http://keeper.example:99999/"], "--audit-webhook ("),
}


@pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG)
def test_up_with_an_address_that_cannot_be_used_says_so(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    handled = [signal.getsignal(number) for number in STOP_SIGNALS]
    assert run([*UP, *options]) == 2
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == handled
    told = capfd.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "unused" / "kafka").exists()


@pytest.mark.parametrize("name", ["a\nb", "a\x7f", "a\udce9"], ids=ascii)
def test_up_in_a_directory_that_not_every_program_can_read_makes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["up", "--data-dir", name, "--port", "0", "--detach"]) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"The data directory {str(tmp_path / name)!a} ")
    assert told.endswith(": choose another --data-dir.\n")
    assert not list(tmp_path.iterdir())


SECRET = "s3cr3t"
DATABASES = {
    "refuses": (f"postgresql://placet:{SECRET}@127.0.0.1:1/placet", 3, "does not answer"),
    "is another kind": (f"mysql://placet:{SECRET}@db/placet", 2, "postgresql://"),
    "is no address": (f"postgresql://placet:{SECRET}/x@127.0.0.1:1/placet", 2, "DATABASE_URL"),
    "has broken brackets": (f"postgresql://placet:{SECRET}@[::1/placet", 2, "DATABASE_URL"),
}


@pytest.mark.parametrize(("url", "code", "said"), DATABASES.values(), ids=DATABASES)
def test_up_with_a_database_that_cannot_be_used_says_so_before_kafka_is_started(
    url: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", url)
    assert run([*UP, "--detach"]) == code
    told = capfd.readouterr().err
    assert said in told
    assert SECRET not in told
    assert SECRET not in (tmp_path / "unused" / "logs" / "supervisor.log").read_text("utf-8")
    assert not (tmp_path / "unused" / "kafka").exists()


UNREADABLE = f"postgresql://placet:{SECRET}/x@127.0.0.1:1/placet"
NO_DATABASES = {
    "a word": ("nonsense", "give sqlite:///PATH or postgresql://"),
    "another kind": (f"mysql://placet:{SECRET}@db/placet", "not mysql://"),
    "no file": ("sqlite:///", "give sqlite:///PATH"),
    "no address": (UNREADABLE, "give postgresql://"),
}


@pytest.mark.parametrize(("url", "said"), NO_DATABASES.values(), ids=NO_DATABASES)
@pytest.mark.parametrize("option", ["--into", "--database-url"])
def test_replay_with_a_url_that_names_no_database_is_wrong_usage_and_names_the_option(
    option: str, url: str, said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What may hold a password is moved to the environment by a new process: here it stays.
    monkeypatch.setattr("ops.replay.hide_secrets", lambda options: None)
    assert run(["replay", option, url]) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"{option} (")
    assert said in told
    assert SECRET not in told


def test_up_with_a_word_for_a_database_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*UP, "--database-url", "nonsense"]) == 2
    assert capfd.readouterr().err.startswith("--database-url (DATABASE_URL) names no database")


@pytest.mark.parametrize("command", ["replay", "audit-log", "export"])
@pytest.mark.parametrize("servers", ["one:", ",", "localhost:99999"])
def test_brokers_that_are_no_addresses_are_wrong_usage_of_what_reads_the_log(
    command: str, servers: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = StackConfig(
        data_dir=str(tmp_path),
        bootstrap_servers="127.0.0.1:1",
        embedded_kafka=False,
        database_url=f"sqlite:///{tmp_path}/views.sqlite",
        gateway_port=0,
        url="",
    )
    save_config(config)
    assert run([command, "--data-dir", str(tmp_path), "--bootstrap-servers", servers]) == 2
    assert capfd.readouterr().err.startswith("--bootstrap-servers takes HOST:PORT")


def test_database_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    usual: list[int] = []

    def shorter(given: Mapping[str, Any], at_most_s: int) -> int:
        usual.append(at_most_s)
        return bounded.connect_timeout(given, 2)

    monkeypatch.setattr(postgres, "connect_timeout", shorter)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(DatabaseUnreachableError, match="timeout"):
            check_database(f"postgresql://placet@127.0.0.1:{port}/placet")
    assert set(usual) == {bounded.CONNECT_TIMEOUT_S}


def test_vaults_database_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(VaultUnavailable, match="does not answer"):
            PostgresVaultDatabase(f"postgresql://placet@127.0.0.1:{port}/placet", "vault", ())


def test_taken_port_of_a_probe_is_told_with_its_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} on 127.0.0.1 is taken.*--probe-port"):
            check_addresses(UpOptions(tmp_path, 0, probes=Probes(port=port)))


def test_free_port_is_another_than_those_chosen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = iter([4000, 4001, 4000, 4001, 4002])
    monkeypatch.setattr(ports, "_bound", lambda port, host: next(offered))
    assert free_port(other_than=[4000]) == 4001
    assert free_port(other_than=[4000, 4001]) == 4002


def test_free_ports_of_one_stack_are_all_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = (port for port in itertools.count(4000) for _ in range(3))
    monkeypatch.setattr(ports, "_bound", lambda port, host: next(offered))
    stack = settle(UpOptions(tmp_path, 0, grpc_port=0, bridge_port=0), "127.0.0.1:9092")
    assert len({stack.gateway_port, stack.grpc_port, stack.bridge_port, 0}) == 4


def test_address_of_ipv6_stands_in_brackets_in_a_url() -> None:
    assert [in_url(host) for host in ("::1", "127.0.0.1", "host")] == ["[::1]", "127.0.0.1", "host"]


def test_brokers_are_read_with_kafkas_own_port_where_none_is_said() -> None:
    assert broker_addresses("one:1, two") == [("one", 1), ("two", 9092)]
    with pytest.raises(UsageError):
        broker_addresses("one:")

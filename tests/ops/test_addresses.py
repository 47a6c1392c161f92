"""Addresses that cannot be listened on or sent to: one sentence, and nothing is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ops.errors import PortTakenError, UsageError
from ops.options import UpOptions, check_addresses
from ops.ports import broker_addresses, in_url
from placet.cli import run

UP = ["up", "--data-dir", "unused", "--port", "0"]
WRONG = {
    "port beyond the last": (["--port", "80000"], "65535"),
    "port below the first": (["--port", "-1"], "--port"),
    "host of another machine": (["--host", "192.0.2.9"], "192.0.2.9 is no address of this machine"),
    "host that no one knows": (["--host", "nobody.invalid"], "nobody.invalid is no address of this machine"),
    "host that is no name": (["--host", "a" * 64], "is no address of this machine"),
    "probes' host": (["--probe-host", "192.0.2.9"], "--probe-host"),
    "brokers' port": (["--bootstrap-servers", "localhost:99999"], "--bootstrap-servers"),
    "brokers' port that is none": (["--bootstrap-servers", "localhost:9092,other:x"], "'other:x' is none"),
    "no broker": (["--bootstrap-servers", ","], "--bootstrap-servers"),
    "webhook's port": (["--audit-webhook", "http://keeper.example:99999/"], "audit_webhook"),
}


@pytest.mark.parametrize("detach", [[], ["--detach"]], ids=["foreground", "detached"])
@pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG)
def test_up_with_an_address_that_cannot_be_used_says_so(
    options: list[str],
    said: str,
    detach: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*UP, *options, *detach]) == 2
    told = capfd.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "unused" / "kafka").exists()


def test_taken_port_of_a_probe_is_told_with_its_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} on 127.0.0.1 is taken.*--probe-port"):
            check_addresses(UpOptions(tmp_path, 0, probe_port=port))


def test_address_of_ipv6_stands_in_brackets_in_a_url() -> None:
    assert [in_url(host) for host in ("::1", "127.0.0.1", "host")] == ["[::1]", "127.0.0.1", "host"]


def test_brokers_are_read_with_kafkas_own_port_where_none_is_said() -> None:
    assert broker_addresses("one:1, two") == [("one", 1), ("two", 9092)]
    with pytest.raises(UsageError):
        broker_addresses("one:")

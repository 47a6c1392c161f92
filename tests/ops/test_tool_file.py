"""A tool's config.json: what it says is taken word for word, and each mistake is one sentence and exit code 2."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ops.commands.tools import environment
from ops.errors import UsageError
from ops.tools.file import FILE_MAX_BYTES, read_tool_file
from placet.cli import run
from placet.cli.session import Settings
from tests.pages import Block

SEED = """{
  "port": 50056,
  "command": ["go", "run", "."],
  "broker": {
    "type": "websocket",
    "address": "localhost:8080"
  }
}
"""
VALUE: dict[str, Any] = json.loads(SEED)


def _broker(**fields: Any) -> str:
    return json.dumps(VALUE | {"broker": VALUE["broker"] | fields})


WRONG = {
    "port 0": (json.dumps(VALUE | {"port": 0}), "port: a number of at least 1 is needed"),
    "port beyond the last": (
        json.dumps(VALUE | {"port": 65536}),
        "port: a number of at most 65535 is needed",
    ),
    "port as a text": (json.dumps(VALUE | {"port": "50056"}), "port: a whole number is needed"),
    "port true": (json.dumps(VALUE | {"port": True}), "port: a whole number is needed"),
    "no port": (json.dumps({"broker": VALUE["broker"]}), "port: this field is missing; add it"),
    "empty command": (json.dumps(VALUE | {"command": []}), "command: at least 1 item(s) is needed"),
    "command as a text": (json.dumps(VALUE | {"command": "go run ."}), "command: a list is needed"),
    "command null": (json.dumps(VALUE | {"command": None}), "command: a list is needed"),
    "command of a number": (json.dumps(VALUE | {"command": ["go", 1]}), "command[1]: a text is needed"),
    "command of no program": (json.dumps(VALUE | {"command": [""]}), "command: the first item is empty"),
    "command with NUL": (json.dumps(VALUE | {"command": ["a\0"]}), "command[0]: a text that matches"),
    "unknown field": (json.dumps(VALUE | {"comand": []}), "unknown field 'comand'; did you mean 'command'?"),
    "no broker": (json.dumps({"port": 1}), "broker: this field is missing; add it"),
    "broker null": (json.dumps(VALUE | {"broker": None}), "broker: a mapping of fields to values is needed"),
    "other broker": (_broker(type="amqp"), "broker.type: 'websocket' is needed here, found \"amqp\""),
    "unknown field of the broker": (_broker(topic="x"), "broker.topic: unknown field 'topic'; remove it"),
    "address as a number": (_broker(address=8080), "broker.address: a text is needed"),
    "address with a token": (
        _broker(address="ws://h:1/human-bridge?token=canary"),
        "an address cannot have a query",
    ),
    "address with a password": (
        _broker(address="ws://u:canary@h:1"),
        "an address cannot have a user or password",
    ),
    "key twice": ('{"port": 1, "port": 2}', 'the same key twice: "port"'),
    "no JSON": (SEED.replace("}", ""), "not valid JSON"),
    "a list": ("[]", "it must be a JSON object with port, command and broker"),
    "too long": (" " * (FILE_MAX_BYTES + 1), "is larger than 64 KiB"),
}
NO_ADDRESSES = [
    "localhost", "localhost:", ":8080", "localhost:0", "localhost:99999", "localhost:x", "local host:1", "h:1/x",
    "http://localhost:8080", "ws://", "ws://:1", "ws://h:0", "ws://h:1/#x", "::1:8080", "ws://[::1", "",
]  # fmt: skip


def test_seeds_file_is_taken_word_for_word(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(SEED, "utf-8")
    assert read_tool_file(file).model_dump() == VALUE


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_file_is_wrong_usage_and_names_the_field(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, "utf-8")
    assert run(["tools", "start", str(file)]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.startswith(str(file))
    assert "canary" not in told.err
    assert (told.err.count("\n"), told.out) == (1, "")


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_address_that_is_none_is_refused(address: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(_broker(address=address), "utf-8")
    with pytest.raises(UsageError, match=r"broker\.address: this is not an address: write HOST:PORT"):
        read_tool_file(file)


@pytest.mark.parametrize(
    ("address", "http"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("ws://bridge.example/human-bridge", "http://bridge.example"),
        ("wss://bridge.example:8443", "https://bridge.example:8443"),
    ],
)
def test_address_of_a_broker_leads_to_its_rest_api(address: str, http: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(_broker(address=address), "utf-8")
    broker = read_tool_file(file).broker
    assert (broker.address, broker.http_url) == (address, http)


def test_file_that_is_not_there_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "start", str(tmp_path / "config.json")]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err


def test_file_that_is_no_regular_one_is_wrong_usage_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody writes into the FIFO, and the device has no end."""
    fifo = tmp_path / "config.json"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        assert run(["tools", "start", str(path)]) == 2
        assert capsys.readouterr().err == f"{path} cannot be read: it is not a regular file.\n"
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_tool_file(tmp_path)


def test_environment_of_a_tool_has_the_files_values_and_nothing_of_the_roles(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(SEED, "utf-8")
    client = {"PLACET_PROJECT": "books", "PLACET_CA_FILE": "/ca.pem", "OTEL_SERVICE_NAME": "tool"}
    roles = [
        *("PLACET_VAULT_MASTER_KEY", "PLACET_VAULT_MASTER_KEY_NEXT", "PLACET_KAFKA_BROKER_PASSWORD"),
        *("PLACET_KAFKA_PASSWORD", "PLACET_AUDIT_WEBHOOK", "PLACET_WEBHOOK_SECRET", "DATABASE_URL"),
        *("SCHEMA_REGISTRY_URL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
    ]
    own = {"HOME": "/home", "PLACET_URL": "http://a", "PORT": "1", **client, **dict.fromkeys(roles, "secret")}
    found = environment(read_tool_file(file), own, Settings(url="http://b", token="t"))
    assert found == {
        "HOME": "/home",
        **client,
        "PLACET_URL": "http://b",
        "PLACET_TOKEN": "t",
        "PORT": "50056",
        "BROKER_TYPE": "websocket",
        "BROKER_ADDRESS": "localhost:8080",
    }
    assert "PLACET_TOKEN" not in environment(read_tool_file(file), {}, Settings())


@pytest.mark.parametrize("given", ["http://a:1/", "http://a:1", " https://a/placet/ "])
def test_gateway_of_a_file_without_a_command_has_no_slash_at_its_end(given: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"port": 1, "broker": {"type": "websocket", "address": "h:1"}}', "utf-8")
    assert environment(read_tool_file(file), {}, Settings(url=given))["PLACET_URL"] == given.strip().rstrip(
        "/"
    )


@pytest.mark.parametrize("given", ["ftp://a", "http://", "http://user:pw@a", "http://a?token=b", "a:1"])
def test_what_is_no_gateways_address_is_wrong_usage_without_being_quoted(given: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"port": 1, "broker": {"type": "websocket", "address": "h:1"}}', "utf-8")
    with pytest.raises(UsageError, match=r"^PLACET_URL \(or --url\) ") as refused:
        environment(read_tool_file(file), {}, Settings(url=given))
    assert given not in str(refused.value)


def test_authorities_that_cannot_be_used_are_told_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACET_CA_FILE", str(tmp_path / "none.pem"))
    file = tmp_path / "config.json"
    file.write_text('{"port": 1, "broker": {"type": "websocket", "address": "wss://h"}}', "utf-8")
    for url in ("https://a", ""):
        with pytest.raises(UsageError, match=r"^PLACET_CA_FILE names .*none\.pem, which cannot be used"):
            environment(read_tool_file(file), {}, Settings(url=url))


def test_file_of_the_documentation_is_the_seeds(page_blocks: list[Block]) -> None:
    (shown,) = page_blocks
    assert json.loads(shown.text) == VALUE


def test_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + SEED.encode())
    assert read_tool_file(path).port == 50056

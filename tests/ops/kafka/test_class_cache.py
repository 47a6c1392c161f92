"""The JVM's cache of Kafka's classes: used where it fits, and never needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ops.kafka import class_cache
from ops.kafka.broker import Broker, BrokerConfig
from ops.kafka.class_cache import cache_file, flags
from ops.kafka.java import find_java
from ops.kafka.training import train


def mapped(broker: Broker) -> str:
    return Path(f"/proc/{broker.pid}/maps").read_text(encoding="utf-8")


@pytest.mark.broker
def test_trained_cache_is_used_by_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another JVM that this names has no cache.
    monkeypatch.delenv("JAVA_HOME", raising=False)
    file = tmp_path / "trained.aot"
    assert train(file)
    assert list(tmp_path.iterdir()) == [file]
    monkeypatch.setattr(class_cache, "cache_file", lambda: file)
    broker = Broker(BrokerConfig(tmp_path / "broker", access=None))
    broker.start()
    try:
        assert str(file) in mapped(broker)
    finally:
        broker.stop()


@pytest.mark.broker
def test_damaged_cache_keeps_no_broker_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "damaged.aot"
    file.write_bytes(b"damaged" * 1000)
    monkeypatch.setattr(class_cache, "cache_file", lambda: file)
    broker = Broker(BrokerConfig(tmp_path / "broker", access=None))
    broker.start()
    broker.stop()
    assert "aot" not in broker.layout.output.read_text(encoding="utf-8").lower()


def test_other_jvm_gets_no_flag_that_it_may_not_know(tmp_path: Path) -> None:
    assert flags(tmp_path / "bin" / "java") == ()


def test_jvm_gets_no_cache_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_cache, "cache_file", lambda: tmp_path / "none.aot")
    assert flags(find_java()) == ()


def test_cache_lies_in_the_environment_that_the_code_is_in() -> None:
    assert cache_file().is_relative_to(Path(sys.prefix))

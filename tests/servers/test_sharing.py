"""The order in which packages and modules that need servers begin."""

from __future__ import annotations

from tests.servers.sharing import rank


def test_what_takes_longest_begins_first() -> None:
    scopes = [
        "tests/log/test_kafka_log.py",
        "tests/ops/test_doctor.py",
        "tests/ops/test_stack_log.py",
        "tests/ops/bench/test_command.py",
        "tests/gateway",
        "tests/e2e/test_demo.py",
        "tests/integration",
    ]
    assert sorted(scopes, key=rank) == [
        "tests/integration",
        "tests/gateway",
        "tests/e2e/test_demo.py",
        "tests/ops/test_stack_log.py",
        "tests/ops/bench/test_command.py",
        "tests/ops/test_doctor.py",
        "tests/log/test_kafka_log.py",
    ]

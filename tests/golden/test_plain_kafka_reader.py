"""The reader of examples/plain-kafka, which shares no code with the server, on the contract's signed log."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.golden.test_signed_log import GOLDEN, KEYS
from tests.house.sources import ROOT

CLAIM = "placet.events.WriterClaimed"


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's module; dataclasses look their module up among those that are imported."""
    path = ROOT / "examples" / "plain-kafka" / "contract.py"
    spec = importlib.util.spec_from_file_location("plain_kafka_contract", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


class GoldenConsumer:
    """The signed log as a consumer hands it out; it ends, where Kafka would wait."""

    def assign(self, partitions: list[Any]) -> None:
        pass

    async def seek_to_beginning(self, partition: Any) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Any]:
        for line in GOLDEN["records"]:
            yield SimpleNamespace(
                topic=GOLDEN["topic"],
                partition=GOLDEN["partition"],
                offset=line["offset"],
                key=line["key"].encode(),
                value=bytes.fromhex(line["value_hex"]),
                headers=tuple((name, value.encode()) for name, value in line["headers"]),
            )


async def test_case_32_reader_of_the_plain_kafka_example_counts_what_the_golden_log_says(
    contract: ModuleType,
) -> None:
    deciders = contract.Deciders(KEYS, {})
    found = contract.counting(GoldenConsumer(), None, contract.Schemas(), deciders)
    counted = [record.headers["ce_id"] async for record in found]

    wanted = [
        dict(line["headers"])["ce_id"]
        for line in GOLDEN["records"]
        if line["counts"] and dict(line["headers"])["ce_type"] != CLAIM
    ]
    assert counted == wanted

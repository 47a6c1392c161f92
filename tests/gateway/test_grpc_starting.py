"""A gRPC server that cannot start says why, and nothing after it: `placet up` shows the last line."""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import pytest

from gateway.rpc.serving import serving
from gateway.rpc.settings import RpcSettings
from host.errors import AddressTaken, SettingsRefused

GATEWAY = "http://127.0.0.1:9"


async def test_missing_key_is_named_and_leaves_nothing_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        with pytest.raises(SettingsRefused, match=r"tls\.key cannot be read"):
            async with serving(RpcSettings(GATEWAY, "127.0.0.1", 0, tmp_path)):
                pass
        gc.collect()
    assert caplog.records == []


async def test_taken_port_leaves_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(RpcSettings(GATEWAY, "127.0.0.1", 0)) as address:
        settings = RpcSettings(GATEWAY, "127.0.0.1", int(address.rpartition(":")[2]))
        with caplog.at_level(logging.WARNING):
            with pytest.raises(AddressTaken):
                async with serving(settings):
                    pass
            gc.collect()
    assert caplog.records == []

"""A second gateway of a running stack, in a process of its own that a test may kill.

python -m tests.integration.second_gateway PLACET_JSON STATUS_FILE
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvloop

from gateway.main import serve
from gateway.settings import read_settings
from ops.config import DataDir, load_config
from tests.integration.site import Site
from tests.servers.stack import wait_for


@dataclass(frozen=True)
class GatewayProcess:
    """A gateway beside a stack's own: where it listens, its process, and what it writes down."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def gateway_process(data_dir: Path, directory: Path) -> Iterator[GatewayProcess]:
    """A gateway of the stack in `data_dir`, while it runs; it is stopped by SIGTERM in the end."""
    status, log = directory / "gateway-2.json", directory / "gateway-2.log"
    command = [sys.executable, "-m", __name__, str(DataDir(data_dir).config), str(status)]
    with log.open("wb") as written:
        process = subprocess.Popen(command, stderr=written)
    try:
        ready = wait_for(lambda: _read(status), lambda found: found.get("state") == "ready")
        yield GatewayProcess(str(ready["address"]), process, log)
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def second_gateway(site: Site, directory: Path) -> Iterator[str]:
    """Its URL, while it runs."""
    with gateway_process(site.stack.data_dir, directory) as gateway:
        yield gateway.url


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def main(config: Path, status_file: Path) -> None:
    logging.basicConfig(level=logging.INFO)
    settings = read_settings(load_config(config).settings_for("gateway-2", "gateway"))
    uvloop.run(serve(replace(settings, port=0, bridge_port=0, status_file=status_file)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

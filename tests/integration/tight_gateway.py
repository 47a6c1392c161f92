"""A second gateway of a running stack, with limits so narrow that a test reaches them.

python -m tests.integration.tight_gateway PLACET_JSON STATUS_FILE
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from gateway.main import serve
from gateway.settings import Limits, read_settings
from ops.config import load_config

LIMITS = Limits(
    requests_per_s=20,
    messages_per_s=50.0,
    in_flight=8,
    queue_messages=32,
    queue_bytes=512 * 1024,
    authenticate_s=5.0,
    sockets=6,
    agent_proposals_per_minute=60,
    tenant_proposals_per_minute=120,
)


def main(config: Path, status_file: Path) -> None:
    settings = read_settings(load_config(config).settings_for("gateway-2", "gateway"))
    uvloop.run(serve(replace(settings, port=0, bridge_port=0, status_file=status_file, limits=LIMITS)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

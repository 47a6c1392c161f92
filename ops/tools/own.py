"""Placet's own gRPC services as a tool: what `placet tools start` runs for a file without a command.

PORT=50056 PLACET_URL=http://127.0.0.1:8000 python -m ops.tools.own
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

from gateway.rpc.serving import serving
from gateway.rpc.settings import read_rpc_settings
from host.errors import OperatorError
from ops.process import STOP_SIGNALS
from vitals.logs import log_to_stderr

LOG_LEVEL = "WARNING"


async def serve(environ: Mapping[str, str]) -> None:
    """Serve on the loopback address until SIGTERM, SIGINT or SIGHUP.

    Args:
        environ: PORT, and in PLACET_URL the gateway.

    Raises:
        OperatorError: A variable is missing or wrong, or the port is taken.
    """
    stopping = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    settings = {"grpc_port": environ.get("PORT", ""), "grpc_gateway_url": environ.get("PLACET_URL", "")}
    async with serving(read_rpc_settings(settings)):
        await stopping.wait()


def main() -> int:
    """Serve, and return the exit code."""
    log_to_stderr(LOG_LEVEL)
    try:
        asyncio.run(serve(os.environ))
    except OperatorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A collector of spans, as a process of its own: it decodes what it is sent, and counts the spans.

python -m ops.bench.collector prints its port, and at the end of its input the number of spans.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from ops.bench.load import BenchFailedError
from ops.process import PACKAGE_ROOT

ANSWER = ExportTraceServiceResponse().SerializeToString()


@contextmanager
def collecting() -> Iterator[str]:
    """A collector on loopback; yields its address.

    Raises:
        BenchFailedError: it was sent no span.
    """
    command = [sys.executable, "-m", "ops.bench.collector"]
    with subprocess.Popen(  # noqa: S603 - the command is built here
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PACKAGE_ROOT
    ) as process:
        said = cast("IO[str]", process.stdout)
        try:
            yield f"http://127.0.0.1:{int(said.readline())}"
        finally:
            # Read also when the load failed: the collector would end with a broken pipe, and hide why.
            cast("IO[str]", process.stdin).close()
            spans = int(said.readline())
    if not spans:
        raise BenchFailedError("The traced stack sent no span.")


class _Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    spans = 0
    counting = threading.Lock()

    def do_POST(self) -> None:
        """Take one export."""
        sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        with self.counting:
            _Collector.spans += sum(
                len(scope.spans) for resource in sent.resource_spans for scope in resource.scope_spans
            )
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def main() -> None:
    """Collect until the end of the input."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    print(_Collector.spans, flush=True)


if __name__ == "__main__":
    main()

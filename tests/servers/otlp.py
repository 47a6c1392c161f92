"""A collector's end of OTLP over HTTP: it reads what a process exports, by the messages of opentelemetry-proto."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.servers.threaded import serving

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class Told:
    """A span that a process told of. Times are ns since the epoch, ids hex; `links` are trace ids."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    links: tuple[str, ...]
    has_failed: bool
    events: int


@dataclass
class Collector:
    """What it was sent."""

    port: int = 0
    spans: list[Told] = field(default_factory=list)
    metrics: dict[str, set[str]] = field(default_factory=dict)
    raw: list[bytes] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which a process exports to it, soon after each span."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
        }

    def of_trace(self, trace_id: str) -> list[Told]:
        """The spans of a trace."""
        with self._lock:
            return [span for span in self.spans if span.trace_id == trace_id]

    def named(self, name: str, **attributes: str) -> list[Told]:
        """The spans with a name and attributes (`placet.` is added)."""
        wanted = {f"placet.{key}": value for key, value in attributes.items()}
        with self._lock:
            return [
                span for span in self.spans if span.name == name and wanted.items() <= span.attributes.items()
            ]

    def take(self, path: str, body: bytes) -> bytes:
        """Read one export, and return the answer."""
        with self._lock:
            self.raw.append(body)
            if path == "/v1/traces":
                traces = ExportTraceServiceRequest.FromString(body)
                self.spans += spans_in(traces)
                self.versions |= _versions_in(traces)
                return ExportTraceServiceResponse().SerializeToString()
            sent = ExportMetricsServiceRequest.FromString(body)
            for resource in sent.resource_metrics:
                names = self.metrics.setdefault(_service(resource.resource.attributes), set())
                names |= {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
            return ExportMetricsServiceResponse().SerializeToString()


def spans_in(sent: ExportTraceServiceRequest) -> list[Told]:
    """The spans of one export."""
    return [
        Told(
            service=_service(resource.resource.attributes),
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            kind=span.kind,
            began_ns=span.start_time_unix_nano,
            ended_ns=span.end_time_unix_nano,
            attributes=_values(span.attributes),
            links=tuple(link.trace_id.hex() for link in span.links),
            has_failed=span.status.code == span.status.STATUS_CODE_ERROR,
            events=len(span.events),
        )
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _versions_in(sent: ExportTraceServiceRequest) -> dict[str, str]:
    """The version of each service in one export that says one."""
    of = [_values(resource.resource.attributes) for resource in sent.resource_spans]
    return {one["service.name"]: one["service.version"] for one in of if "service.version" in one}


def _service(attributes: Any) -> str:
    return str(_values(attributes)["service.name"])


def _values(attributes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in attributes:
        assert isinstance(one, KeyValue)
        found[one.key] = getattr(one.value, one.value.WhichOneof("value") or "string_value")
    return found


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of the loopback."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.headers["Content-Type"] == PROTOBUF
            answer = collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Type", PROTOBUF)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_address[1]
    with serving(server):
        yield collector

"""The sending of an agent's spans by OTLP over HTTP, configured by the variables of OpenTelemetry alone."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Tracer

SCOPE = "placet"
SERVICE = "placet-agent"
PROTOCOL = "http/protobuf"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
# One above it cannot be written in a header (ISO 8859-1).
CHARACTER_MAX = "\xff"
REASON_MAX = 200
# A collector that is away must not hold a program back at its end.
END_S = 2.0
_log = logging.getLogger(__name__)


def tracer() -> Tracer | None:
    """A tracer by the environment: of the program's provider, if it has set one, else of one of our own.

    None, and a warning, if the packages are not installed, or a variable asks for what is not supported or cannot be
    used: what an agent does never fails by how it is observed.
    """
    try:
        return _tracer()
    except ImportError as error:
        _log.warning("nothing is traced, since %s is not installed: pip install placet[otel]", error.name)
    except Exception as error:
        # Whatever the SDK raises, such as for a queue that is smaller than a batch.
        _log.warning(
            "nothing is traced: %s", " ".join(str(error).split())[:REASON_MAX] or type(error).__name__
        )
    return None


def _tracer() -> Tracer | None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import get_tracer_provider

    if isinstance(get_tracer_provider(), TracerProvider):
        # First: the variables are the program's own, such as a protocol that only its exporter supports.
        return tracer_of_program()
    protocol = next((said for name in PROTOCOLS if (said := os.environ.get(name, "").strip())), PROTOCOL)
    if protocol != PROTOCOL:
        _log.warning("nothing is traced: %s is not supported, only %s", protocol[:40], PROTOCOL)
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = next((name for name in HEADERS if os.environ.get(name)), "")
    if name and not _are_headers(os.environ[name]):
        # Without its value: headers are where collectors expect secrets.
        _log.warning("nothing is traced: %s must be NAME=VALUE, separated by commas", name)
        return None
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _AtExit(provider.shutdown, END_S)
    return provider.get_tracer(SCOPE, _version())


def tracer_of_program() -> Tracer:
    """A tracer of the provider that the program has set, or that makes no spans if that cannot be loaded."""
    from opentelemetry.trace import NoOpTracer, get_tracer

    try:
        return get_tracer(SCOPE, _version())
    except Exception:
        # By OTEL_PYTHON_TRACER_PROVIDER; OpenTelemetry has logged why.
        return NoOpTracer()


def _are_headers(text: str) -> bool:
    """True if each part of a variable is a header that the SDK reads and that HTTP can carry."""
    from opentelemetry.util.re import parse_env_headers

    # It writes what it cannot read as a header, such as `api-key: SECRET`, into the log.
    logging.getLogger(parse_env_headers.__module__).setLevel(logging.ERROR)
    found = [parse_env_headers(part, liberal=True) for part in text.split(",") if part.strip()]
    # One with a line break would be refused only when it is sent, by an error that quotes it.
    parts = [part for one in found for header in one.items() for part in header]
    return all(found) and all(part.isprintable() and max(part, default="") <= CHARACTER_MAX for part in parts)


def _resource() -> Resource:
    """What sends the spans: what the variables say of it, and the client itself if they do not name it."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    given = OTELResourceDetector().detect().attributes
    own = {} if given.get("service.name") else {"service.name": SERVICE, "service.version": _version()}
    return Resource.create({**own, **given})


def _version() -> str:
    """The client's version; empty if the program was packed without the metadata of its packages."""
    try:
        return version("placet")
    except PackageNotFoundError:
        return ""


class _AtExit:
    """Calls a function when the interpreter ends, and waits for it for a limited time."""

    def __init__(self, end: Callable[[], None], within_s: float) -> None:
        self._end = end
        self._within_s = within_s
        self._begin()
        if hasattr(os, "register_at_fork"):
            # A fork has no copy of the thread.
            os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._wait)

    def _begin(self) -> None:
        # The thread begins now, because none can be started while an interpreter ends (Python 3.12).
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="placet-otlp-end", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._is_over.wait()
        self._end()

    def _wait(self) -> None:
        self._is_over.set()
        self._thread.join(self._within_s)

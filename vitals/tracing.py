"""The telemetry of a process: spans and metrics sent to a collector (OTLP), and the ids in its JSON logs.

While it is off, a piece of work costs one check of `spans`, and neither OpenTelemetry's SDK nor structlog is
imported. The standard variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) turn it on, and so do JSON
logs, which show the ids of the work in hand (docs/operations.md, Traces).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from host.errors import SettingsRefused, on_one_line

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from vitals.otlp import Otlp
    from vitals.spans import Spans

TRUE = "true"
NONE = "none"
OTLP = "otlp"
PROTOCOL = "http/protobuf"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "TRACES"
METRICS = "METRICS"
SIGNALS = (TRACES, METRICS)
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
INTERVAL_MS = 60_000
TEMPORALITY = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
CUMULATIVE = "cumulative"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
REASON_MAX = 200
# The longest that the end of a process waits for its last spans and metrics to be sent.
LAST_WITHIN_S = 2.0

R = TypeVar("R")

# None while telemetry is off.
spans: Spans | None = None
# The function that also sends a registry of metrics by OTLP; None while that is off.
_send_metrics: Callable[[CollectorRegistry], None] | None = None
# What is sent by OTLP; None while nothing is.
_otlp: Otlp | None = None


def is_on(environ: Mapping[str, str], signal: str) -> bool:
    """True if the variables of OpenTelemetry ask for a signal to be sent by OTLP.

    Args:
        environ: the environment.
        signal: TRACES or METRICS.

    Raises:
        SettingsRefused: they ask for something that is not supported, or cannot be used.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == TRUE:
        return False
    exporter = environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    if exporter not in ("", NONE, OTLP):
        raise SettingsRefused(f"OTEL_{signal}_EXPORTER must be {OTLP} or {NONE}, not {exporter[:40]}")
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    if exporter == NONE or not (exporter or environ.get(own) or environ.get(ENDPOINT)):
        return False
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if protocol := environ.get(name, "").strip():
            if protocol != PROTOCOL:
                raise SettingsRefused(f"{name} must be {PROTOCOL}, not {protocol[:40]}")
            break
    _check_headers(environ, signal)
    if signal == METRICS:
        _check_metrics(environ)
    return True


def _check_headers(environ: Mapping[str, str], signal: str) -> None:
    name = f"OTEL_EXPORTER_OTLP_{signal}_HEADERS"
    name = name if environ.get(name) else HEADERS
    if not environ.get(name):
        return
    from vitals.otlp_headers import are_headers

    if not are_headers(environ[name]):
        # Without its value: headers are where collectors expect secrets.
        raise SettingsRefused(f"{name} must be NAME=VALUE, separated by commas")


def _check_metrics(environ: Mapping[str, str]) -> None:
    interval = environ.get(INTERVAL, "")
    if interval and not (interval.isdecimal() and int(interval)):
        raise SettingsRefused(f"{INTERVAL} must be milliseconds, not {interval[:40]}")
    # Prometheus' counters count from the start of the process, and are sent as they are.
    temporality = environ.get(TEMPORALITY, "").strip()
    if temporality and temporality.lower() != CUMULATIVE:
        raise SettingsRefused(f"{TEMPORALITY} must be {CUMULATIVE}, not {temporality[:40]}")


@contextmanager
def telemetry(role: str, environ: Mapping[str, str], *, json_logs: bool = False) -> Iterator[None]:
    """Within this context the process has the telemetry that its environment and its logs ask for.

    Args:
        role: of the process; its `service.name` is `placet-ROLE` unless `OTEL_SERVICE_NAME` names another.
        environ: with the variables of OpenTelemetry.
        json_logs: True if its log lines show the ids of the work in hand.

    Raises:
        SettingsRefused: see `is_on`; or the SDK refuses a variable that it reads itself.
    """
    global spans, _send_metrics, _otlp
    on = [signal for signal in SIGNALS if is_on(environ, signal)]
    if not on and not json_logs:
        yield
        return
    if not on:
        from vitals.spans import Spans

        spans = Spans.unsent()
        try:
            yield
        finally:
            spans = None
        return
    _otlp = otlp = _begun(role, on, environ)
    spans = otlp.spans() if TRACES in on or json_logs else None
    _send_metrics = otlp.send_metrics if METRICS in on else None
    try:
        yield
    finally:
        end()


def check(environ: Mapping[str, str]) -> None:
    """Refuse what `telemetry` would refuse, before any process has it.

    The SDK checks its variables only as it begins, so it begins here, and ends without having sent anything.

    Args:
        environ: the process's own, with the variables of OpenTelemetry.

    Raises:
        SettingsRefused: as `telemetry`.
    """
    if not (on := [signal for signal in SIGNALS if is_on(environ, signal)]):
        return
    # What the SDK warns of is for the logs of the processes that have it.
    earlier = logging.root.manager.disable
    logging.disable()
    try:
        _begun("check", on, environ).end(LAST_WITHIN_S)
    finally:
        logging.disable(earlier)


def _begun(role: str, on: Collection[str], environ: Mapping[str, str]) -> Otlp:
    every_s = int(environ.get(INTERVAL) or INTERVAL_MS) / 1000 if METRICS in on else None
    try:
        # Some variables are read where the SDK is imported.
        from vitals.otlp import Otlp

        return Otlp.begun(role, has_traces=TRACES in on, metrics_every_s=every_s)
    except (ValueError, RuntimeError) as error:
        # The SDK names its own parameter and not always the variable, such as of a queue smaller than a batch.
        reason = on_one_line(str(error))[:REASON_MAX].rstrip(".")
        raise SettingsRefused(f"OpenTelemetry refuses its variables (OTEL_…): {reason}") from error


def end(within_s: float | None = None) -> None:
    """Send the last spans and metrics; does nothing if it was done or is being done, or if nothing is sent.

    For a process that ends by `os._exit`, which leaves no context.

    Args:
        within_s: how long that may take at most; None: `LAST_WITHIN_S`.
    """
    global spans, _send_metrics, _otlp
    ending, _otlp = _otlp, None
    if ending is not None:
        spans = _send_metrics = None
        ending.end(LAST_WITHIN_S if within_s is None else within_s)


def sends_metrics() -> bool:
    """True if the process sends metrics by OTLP."""
    return _send_metrics is not None


def also_by_otlp(registry: CollectorRegistry) -> None:
    """Send the metrics of a registry by OTLP too, if the process sends metrics."""
    if _send_metrics is not None:
        _send_metrics(registry)


def carried(answered: Callable[[Any], R]) -> Callable[[Any], R]:
    """Return a callback that is called as a part of the piece of work in hand, which does not end before it."""
    return answered if spans is None else spans.carried(answered)

"""The gateway's settings, from the plain text that every role receives at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.identity.oidc_settings import OidcSettings, read_oidc
from gateway.server.bounds import Bounds
from host.errors import SettingsRefused
from projections.audit.head_settings import DEFAULT_SECONDS, heads_dir
from schemas.event_signatures import LogSignatures, load_signatures
from schemas.topics import DEFAULT_PARTITIONS, Topics

DEFAULT_REQUESTS_PER_S = 500
DEFAULT_AGENT_PROPOSALS_PER_MINUTE = 600
DEFAULT_TENANT_PROPOSALS_PER_MINUTE = 6_000
DEFAULT_GRPC_CALLS_AT_ONCE = 100
# The limits that a setting named gateway_… can change.
RATES = {
    "requests_per_s": DEFAULT_REQUESTS_PER_S,
    "agent_proposals_per_minute": DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    "tenant_proposals_per_minute": DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one subject over REST, and of one connection.

    Attributes:
        requests_per_s: sustained rate of one subject's REST requests; the burst is as many again.
        messages_per_s: sustained rate of WebSocket messages; the burst is as many again.
        in_flight: commands of one socket without an answer; more are not read until some are answered.
        queue_messages: pushed messages waiting for a slow reader; with more it must subscribe anew.
        queue_bytes: the same, in bytes.
        authenticate_s: time for the first message.
        sockets: open sockets and streams of one subject.
        agent_proposals_per_minute: sustained rate of calls that one agent proposes, over all interfaces.
        tenant_proposals_per_minute: the same for all agents of a tenant together.
        subject_bytes: bytes of messages and answers that wait for all readers of one subject together.
        total_bytes: the same for all subjects; beyond it, subjects with more than a fair part get no more.
        subject_share: the share of the process that slow answers may take for one subject.
        subject_burst_s: seconds of the process that they may take at once.
        subject_patience_s: how long a request is delayed before it is refused.
        bounds: limits of a connection, independent of its requests.
    """

    requests_per_s: int = DEFAULT_REQUESTS_PER_S
    messages_per_s: float = 20_000.0
    in_flight: int = 1_024
    queue_messages: int = 4_096
    queue_bytes: int = 16 * 1024 * 1024
    authenticate_s: float = 5.0
    sockets: int = 2_000
    agent_proposals_per_minute: int = DEFAULT_AGENT_PROPOSALS_PER_MINUTE
    tenant_proposals_per_minute: int = DEFAULT_TENANT_PROPOSALS_PER_MINUTE
    subject_bytes: int = 32 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    subject_share: float = 0.25
    subject_burst_s: float = 1.0
    subject_patience_s: float = 2.0
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The complete settings of a gateway.

    `bridge_port` is a second port for the same application, 0 for none.
    `origins` are the browser origins whose pages may use REST, streams and the WebSocket, besides the gateway's own.
    """

    data_dir: Path
    keys_dir: Path
    bootstrap_servers: str
    database_url: str
    topics: Topics
    partitions: int
    host: str
    port: int
    audit_heads_dir: Path
    bridge_port: int = 0
    audit_head_seconds: float = DEFAULT_SECONDS
    status_file: Path | None = None
    kafka_settings: Path | None = None
    policy_file: Path | None = None
    origins: tuple[str, ...] = ()
    oidc: OidcSettings | None = None
    signatures: LogSignatures | None = None
    log_level: str = "INFO"
    name: str = "gateway"
    limits: Limits = field(default_factory=Limits)


def read_settings(settings: Mapping[str, str]) -> GatewaySettings:
    """Read the settings of docs/architecture.md.

    The gateway's own are `gateway_policy`, `gateway_origins`, `oidc_…` (docs/identity.md), and the `RATES`.

    Raises:
        SettingsRefused: one is missing or not a number, a rate is below 1, or the identity provider is invalid.
    """
    try:
        read = GatewaySettings(
            data_dir=Path(settings["data_dir"]),
            keys_dir=Path(settings["keys_dir"]),
            bootstrap_servers=settings["bootstrap_servers"],
            database_url=settings["database_url"],
            topics=Topics(settings.get("topic_prefix") or "placet"),
            partitions=int(settings.get("partitions") or DEFAULT_PARTITIONS),
            host=settings.get("gateway_host") or "127.0.0.1",
            port=int(settings["gateway_port"]),
            bridge_port=int(settings.get("bridge_port") or 0),
            audit_heads_dir=heads_dir(settings),
            audit_head_seconds=float(settings.get("audit_head_seconds") or DEFAULT_SECONDS),
            status_file=_path(settings, "status_file"),
            kafka_settings=_path(settings, "kafka_settings"),
            policy_file=_path(settings, "gateway_policy"),
            origins=_origins(settings.get("gateway_origins", "")),
            oidc=read_oidc(settings),
            signatures=load_signatures(settings),
            log_level=settings.get("log_level") or "INFO",
            name=settings.get("worker_id") or "gateway",
            limits=Limits(**_rates(settings)),
        )
    except SettingsRefused:
        raise
    except KeyError as error:
        raise SettingsRefused(f"the gateway needs the setting {error}") from error
    except ValueError as error:
        raise SettingsRefused(f"a setting of the gateway is not a number: {error}") from error
    for name in RATES:
        if getattr(read.limits, name) < 1:
            raise SettingsRefused(
                f"gateway_{name} must be 1 or more: with less, no request would be accepted"
            )
    return read


def _origins(text: str) -> tuple[str, ...]:
    """Parse origins as browsers write them.

    Raises:
        SettingsRefused: one is a wildcard, `null`, has a path, or is not a web origin.
    """
    origins = tuple(text.split())
    for origin in origins:
        split = urlsplit(origin)
        is_web = split.scheme in ("http", "https") and split.hostname and not split.username
        if not is_web or "*" in origin or origin != f"{split.scheme}://{split.netloc}":
            raise SettingsRefused(f"{origin!r} is not a web origin: write https://host or https://host:port")
    return origins


def _rates(settings: Mapping[str, str]) -> dict[str, Any]:
    return {name: int(settings.get(f"gateway_{name}") or each) for name, each in RATES.items()}


def _path(settings: Mapping[str, str], name: str) -> Path | None:
    text = settings.get(name, "")
    return Path(text) if text else None

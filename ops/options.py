"""The options of `placet up`, and the configuration that they resolve to."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gateway.identity.oidc_settings import PREFIX, read_oidc
from gateway.settings import (
    DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    DEFAULT_GRPC_CALLS_AT_ONCE,
    DEFAULT_REQUESTS_PER_S,
    DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
)
from host.errors import SettingsRefused
from ops.config import DEFAULT_PORT, PROBED, DataDir, StackConfig
from ops.errors import UsageError
from ops.ports import LOOPBACK, broker_addresses, check_listening, free_port, in_url, reachable
from projections.audit.head_settings import DEFAULT_EVENTS, DEFAULT_SECONDS, checked_address
from schemas.event_signatures import OFF, REQUIRED
from schemas.topics import DEFAULT_PARTITIONS
from vitals.logs import TEXT

OIDC_VARIABLES = "PLACET_OIDC_"
WEBHOOK = "--audit-webhook (PLACET_AUDIT_WEBHOOK)"


class Limits(NamedTuple):
    """What the gateway takes from each subject, agent and tenant. See StackConfig for each."""

    requests_per_s: int = DEFAULT_REQUESTS_PER_S
    agent_proposals_per_minute: int = DEFAULT_AGENT_PROPOSALS_PER_MINUTE
    tenant_proposals_per_minute: int = DEFAULT_TENANT_PROPOSALS_PER_MINUTE
    grpc_calls_at_once: int = DEFAULT_GRPC_CALLS_AT_ONCE


class Probes(NamedTuple):
    """Where the roles' probes listen. See StackConfig for each."""

    host: str = LOOPBACK
    port: int = 0


@dataclass(frozen=True)
class UpOptions:
    """The options as given; port 0 and None leave the choice to the stack. See StackConfig for each."""

    data_dir: Path
    port: int = DEFAULT_PORT
    host: str = LOOPBACK
    bootstrap_servers: str | None = None
    kafka_settings: Path | None = None
    database_url: str | None = None
    partitions: int | None = None
    replication_factor: int = 1
    topic_prefix: str = "placet"
    gateway_policy: Path | None = None
    gateway_origins: tuple[str, ...] = ()
    limits: Limits = Limits()  # noqa: RUF009 - it is immutable
    audit_heads_dir: Path | None = None
    audit_webhook: str = ""
    audit_head_events: int = DEFAULT_EVENTS
    audit_head_seconds: float = DEFAULT_SECONDS
    notifications: Path | None = None
    grpc_port: int | None = None
    grpc_tls: Path | None = None
    bridge_port: int | None = None
    log_signatures: str = REQUIRED
    log_level: str = "INFO"
    log_format: str = TEXT
    probes: Probes = Probes()  # noqa: RUF009 - it is immutable
    oidc: Mapping[str, str] = field(default_factory=dict)

    @property
    def directory(self) -> DataDir:
        """The data directory's layout, absolute."""
        return DataDir(self.data_dir.expanduser().absolute())


def settle(options: UpOptions, bootstrap_servers: str) -> StackConfig:
    """Resolve the options: choose every value that was not given.

    Raises:
        PortTakenError: Another program uses the gateway's port.
        UsageError: The webhook's address cannot be used.
    """
    check_addresses(options)
    port, grpc_port, bridge_port = _ports(options)
    root = options.directory.root
    return StackConfig(
        data_dir=str(root),
        bootstrap_servers=bootstrap_servers,
        embedded_kafka=options.bootstrap_servers is None,
        database_url=options.database_url or f"sqlite:///{root / 'views.sqlite'}",
        gateway_port=port,
        url=f"http://{in_url(reachable(options.host))}:{port}",
        gateway_host=options.host,
        kafka_settings=_kafka_settings(options),
        gateway_policy=_absolute(options.gateway_policy),
        gateway_origins=" ".join(options.gateway_origins),
        gateway_requests_per_s=options.limits.requests_per_s,
        gateway_agent_proposals_per_minute=options.limits.agent_proposals_per_minute,
        gateway_tenant_proposals_per_minute=options.limits.tenant_proposals_per_minute,
        grpc_calls_at_once=options.limits.grpc_calls_at_once,
        audit_heads_dir=_absolute(options.audit_heads_dir),
        audit_webhook=_webhook(options.audit_webhook),
        audit_head_events=options.audit_head_events,
        audit_head_seconds=options.audit_head_seconds,
        notifications_file=_absolute(options.notifications),
        grpc_port=grpc_port,
        grpc_tls=_absolute(options.grpc_tls),
        bridge_port=bridge_port,
        topic_prefix=options.topic_prefix,
        partitions=options.partitions or DEFAULT_PARTITIONS,
        replication_factor=options.replication_factor,
        log_signatures=options.log_signatures,
        log_level=options.log_level,
        log_format=options.log_format,
        probe_host=options.probes.host,
        probe_port=options.probes.port,
        oidc=dict(options.oidc),
    )


def oidc_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The identity provider's settings from the environment (`PLACET_OIDC_ISSUER`, …); empty if there are none.

    Raises:
        UsageError: A variable is missing, unknown or wrong.
    """
    given = {
        name.removeprefix(OIDC_VARIABLES).lower(): text
        for name, text in environment.items()
        if name.startswith(OIDC_VARIABLES) and text
    }
    try:
        read_oidc({f"{PREFIX}{name}": text for name, text in given.items()})
    except SettingsRefused as error:
        raise UsageError(f"The environment's {OIDC_VARIABLES}… cannot be used: {error}.") from error
    return given


def check_data_dir(root: Path) -> None:
    """Refuse a data directory whose path not every program of a stack can read; checked before anything is created.

    Raises:
        UsageError: It has control characters, or is not UTF-8.
    """
    shown = ascii(str(root))
    try:
        text = os.fsencode(root).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The data directory {shown} has a path that is not UTF-8, which Kafka needs: choose another --data-dir."
        ) from error
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        raise UsageError(
            f"The data directory {shown} has control characters in its path: choose another --data-dir."
        )


def check_log_signatures(word: str) -> None:
    """Refuse an unknown value of `--log-signatures`; checked before anything is created.

    Raises:
        UsageError: It is neither of the two.
    """
    if word not in (REQUIRED, OFF):
        raise UsageError(f"--log-signatures must be {REQUIRED} or {OFF}, not {word}.")


def check_addresses(options: UpOptions) -> None:
    """Refuse addresses on which no socket can listen, or that cannot be sent to; checked before anything starts.

    Raises:
        PortTakenError: Another program uses a port.
        UsageError: A host is not this machine's, this user may not use a port, or an address is malformed.
    """
    if options.bootstrap_servers is not None:
        broker_addresses(options.bootstrap_servers)
    _webhook(options.audit_webhook)
    check_listening(options.port, options.host)
    if options.grpc_port is not None:
        check_listening(options.grpc_port, options.host, "grpc-")
    if options.bridge_port is not None:
        check_listening(options.bridge_port, options.host, "bridge-")
    _check_different(options)
    if options.grpc_tls is not None and options.grpc_port is None:
        raise UsageError("--grpc-tls needs --grpc-port: give the port on which gRPC is served.")
    for number in range(len(PROBED) if options.probes.port else 1):
        port = options.probes.port and options.probes.port + number
        check_listening(port, options.probes.host, "probe-")


def _check_different(options: UpOptions) -> None:
    asked = {"--port": options.port, "--grpc-port": options.grpc_port, "--bridge-port": options.bridge_port}
    seen: dict[int, str] = {}
    for option, port in asked.items():
        if port and port in seen:
            raise UsageError(f"{seen[port]} and {option} are both {port}: choose two different ports.")
        seen[port or 0] = option


def _webhook(url: str) -> str:
    try:
        return checked_address(url, WEBHOOK) if url else ""
    except SettingsRefused as error:
        raise UsageError(str(error)) from error


def _kafka_settings(options: UpOptions) -> str:
    if options.bootstrap_servers:
        return _absolute(options.kafka_settings)
    if options.kafka_settings:
        raise UsageError("--kafka-settings needs --bootstrap-servers: give the cluster's address too.")
    return str(options.directory.kafka_clients)


def _absolute(path: Path | None) -> str:
    return str(path.expanduser().absolute()) if path else ""


def _ports(options: UpOptions) -> list[int]:
    """The ports of the gateway, of gRPC and of the bridge, all different; 0 for what is not asked for."""
    asked = (options.port, options.grpc_port, options.bridge_port)
    chosen = [port or 0 for port in asked]
    for place, port in enumerate(asked):
        if port == 0:
            chosen[place] = free_port(options.host, other_than=chosen)
    return chosen

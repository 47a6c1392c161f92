"""One stack's configuration: `<data-dir>/placet.json`, written by `placet up` and read by every role."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gateway.identity.oidc_settings import PREFIX
from gateway.settings import (
    DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    DEFAULT_GRPC_CALLS_AT_ONCE,
    DEFAULT_REQUESTS_PER_S,
    DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
)
from log.kafka.settings import settings_file
from ops.errors import UsageError
from ops.files import read_json, write_json
from ops.kafka.acl import SNAPSHOTS
from ops.ports import in_url, reachable
from ops.role import ROLES
from projections.audit.head_settings import DEFAULT_EVENTS, DEFAULT_SECONDS
from schemas.event_signatures import REQUIRED
from schemas.topics import DEFAULT_PARTITIONS
from vitals.logs import FORMATS, TEXT

DEFAULT_DATA_DIR = Path(".placet")
DEFAULT_PORT = 8000
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PROBED = tuple(role.name for role in ROLES.values() if role.has_probe)


@dataclass(frozen=True)
class DataDir:
    """The layout of a stack's data directory."""

    root: Path

    @property
    def config(self) -> Path:
        """The stack's configuration."""
        return self.root / "placet.json"

    @property
    def kafka(self) -> Path:
        """The embedded broker's directory, which holds the log."""
        return self.root / "kafka"

    @property
    def kafka_clients(self) -> Path:
        """Client settings with which the principals sign in at the embedded broker: a file each, mode 600."""
        return self.kafka / "clients"

    @property
    def topics(self) -> Path:
        """The ids of the topics that this directory belongs to, written at the decider's first start."""
        return self.root / "topics.json"

    @property
    def keys(self) -> Path:
        """The installation's private keys and their public halves."""
        return self.root / "keys"

    @property
    def admin_token(self) -> Path:
        """A token for the installation's owner, mode 600."""
        return self.root / "admin.token"

    @property
    def state(self) -> Path:
        """The stack's state, written by its supervisor."""
        return self.root / "run" / "stack.json"

    def status(self, name: str) -> Path:
        """A component's status file."""
        return self.root / "run" / f"{name}.json"

    def log(self, name: str) -> Path:
        """The log file of a component."""
        return self.root / "logs" / f"{name}.log"


@dataclass(frozen=True)
class StackConfig:
    """The configuration of a stack, with every value resolved.

    Attributes:
        data_dir: Absolute path of its directory.
        bootstrap_servers: The Kafka cluster.
        embedded_kafka: Whether the stack runs the broker itself.
        kafka_settings: Absolute path of a JSON file with client settings (SASL, TLS), or of a directory with one
            for each role; empty for none.
        topic_prefix: Prefix of the topics' names.
        partitions: Partitions of the log; the count never changes.
        replication_factor: Replicas of each partition when topics are created.
        database_url: The database of the views.
        gateway_host: Address on which the gateway listens.
        gateway_port: Its port.
        url: The gateway's address for clients.
        gateway_policy: Absolute path of a policy that makes this gateway stricter; empty for none.
        gateway_origins: Web origins whose pages may use the API, separated by blanks.
        gateway_requests_per_s: REST requests a second for each subject; the burst has the same size.
        gateway_agent_proposals_per_minute: Calls that one agent may propose a minute; the burst is a sixth of it.
        gateway_tenant_proposals_per_minute: Calls that all agents of a tenant may propose a minute; likewise.
        audit_heads_dir: Absolute path of the directory of audit heads; empty for `audit/heads` in the data directory.
        audit_webhook: URL to which audit heads are posted; empty for none.
        audit_head_events: An audit head is signed after this many events of a tenant.
        audit_head_seconds: And after this many seconds, if there were events.
        notifications_file: Absolute path of the notifications file; empty for no notifications.
        grpc_port: Port of the gRPC role, which listens on the gateway's host; 0 for no gRPC.
        grpc_tls: Absolute path of a directory with its `tls.crt` and `tls.key` (PEM); empty for no TLS.
        bridge_port: A second port on which the gateway listens; 0 for none.
        grpc_gateway_url: The gateway's address for the gRPC role; empty for `url`.
        grpc_calls_at_once: Calls of one subject that may be open over gRPC at once.
        log_signatures: `required`, or `off` to count unsigned records too.
        log_level: Level of the roles' logs.
        log_format: `text`, or `json` for one JSON object a line.
        probe_host: Address on which the roles' probes listen.
        probe_port: The first port of the probes; they take consecutive ports in the order of `PROBED`. 0: any free
            ports.
        oidc: Settings of the identity provider that the gateway trusts, without `oidc_`; empty for none.
    """

    data_dir: str
    bootstrap_servers: str
    embedded_kafka: bool
    database_url: str
    gateway_port: int
    url: str
    gateway_host: str = "127.0.0.1"
    kafka_settings: str = ""
    topic_prefix: str = "placet"
    partitions: int = DEFAULT_PARTITIONS
    replication_factor: int = 1
    gateway_policy: str = ""
    gateway_origins: str = ""
    gateway_requests_per_s: int = DEFAULT_REQUESTS_PER_S
    gateway_agent_proposals_per_minute: int = DEFAULT_AGENT_PROPOSALS_PER_MINUTE
    gateway_tenant_proposals_per_minute: int = DEFAULT_TENANT_PROPOSALS_PER_MINUTE
    audit_heads_dir: str = ""
    audit_webhook: str = ""
    audit_head_events: int = DEFAULT_EVENTS
    audit_head_seconds: float = DEFAULT_SECONDS
    notifications_file: str = ""
    grpc_port: int = 0
    grpc_tls: str = ""
    bridge_port: int = 0
    grpc_gateway_url: str = ""
    grpc_calls_at_once: int = DEFAULT_GRPC_CALLS_AT_ONCE
    log_signatures: str = REQUIRED
    log_level: str = "INFO"
    log_format: str = TEXT
    probe_host: str = "127.0.0.1"
    probe_port: int = 0
    oidc: Mapping[str, str] = field(default_factory=dict)

    @property
    def directory(self) -> DataDir:
        """The data directory's layout."""
        return DataDir(Path(self.data_dir))

    @property
    def bridge_address(self) -> str | None:
        """The host and port of the gateway's second port for clients; None if there is none."""
        host = in_url(reachable(self.gateway_host))
        return f"{host}:{self.bridge_port}" if self.bridge_port else None

    def probe_port_of(self, role: str) -> int:
        """The port of a role's probe; 0 for any free one."""
        return self.probe_port + PROBED.index(role) if self.probe_port and role in PROBED else 0

    def kafka_settings_of(self, principal: str) -> Path | None:
        """The client settings with which a principal signs in at the cluster; None where none are needed."""
        return settings_file(self.kafka_settings, principal)

    def settings_for(self, worker_id: str, principal: str = "") -> dict[str, str]:
        """The settings that a role's `run` takes, all as text (docs/architecture.md, Processes).

        Args:
            worker_id: the process's name, unique among processes of the same role.
            principal: its Kafka principal, which is its role; the worker id by default.
        """
        return {
            "data_dir": self.data_dir,
            "bootstrap_servers": self.bootstrap_servers,
            "kafka_settings": _text(self.kafka_settings_of(principal or worker_id)),
            "kafka_settings_of_snapshots": _text(self.kafka_settings_of(SNAPSHOTS)),
            "topic_prefix": self.topic_prefix,
            "partitions": str(self.partitions),
            "database_url": self.database_url,
            "keys_dir": str(self.directory.keys),
            "gateway_host": self.gateway_host,
            "gateway_port": str(self.gateway_port),
            "gateway_policy": self.gateway_policy,
            "gateway_origins": self.gateway_origins,
            "gateway_requests_per_s": str(self.gateway_requests_per_s),
            "gateway_agent_proposals_per_minute": str(self.gateway_agent_proposals_per_minute),
            "gateway_tenant_proposals_per_minute": str(self.gateway_tenant_proposals_per_minute),
            "audit_heads_dir": self.audit_heads_dir,
            "audit_webhook": self.audit_webhook,
            "audit_head_events": str(self.audit_head_events),
            "audit_head_seconds": str(self.audit_head_seconds),
            "notifications_file": self.notifications_file,
            "grpc_host": self.gateway_host,
            "grpc_port": str(self.grpc_port),
            "grpc_tls": self.grpc_tls,
            "bridge_port": str(self.bridge_port),
            "grpc_gateway_url": self.grpc_gateway_url or self.url,
            "grpc_calls_at_once": str(self.grpc_calls_at_once),
            "log_signatures": self.log_signatures,
            "gateway_url": self.url,
            "worker_id": worker_id,
            "status_file": str(self.directory.status(worker_id)),
            "log_level": self.log_level,
            "probe_host": self.probe_host,
            "probe_port": str(self.probe_port_of(principal or worker_id)),
            **{f"{PREFIX}{name}": text for name, text in self.oidc.items()},
        }


def _text(path: Path | None) -> str:
    return str(path) if path else ""


def save_config(config: StackConfig) -> None:
    """Write the configuration into its data directory."""
    write_json(config.directory.config, asdict(config))


def load_config(path: Path) -> StackConfig:
    """Read a configuration.

    Raises:
        UsageError: The file does not exist or is not a configuration.
    """
    values = read_json(path)
    if values is None:
        start = shlex.join(["placet", "up", "--data-dir", str(path.parent)])
        raise UsageError(
            f"{path} does not exist, so no stack was started in {path.parent}: name the directory of yours with"
            f" --data-dir (or PLACET_DATA_DIR), or start one there ({start})."
        )
    try:
        config = StackConfig(**values)
    except TypeError as error:
        raise UsageError(f"{path} is not a configuration of this version ({error}): fix it.") from error
    check_log_level(config.log_level)
    check_log_format(config.log_format)
    return config


def check_log_level(level: str) -> None:
    """Refuse an unknown log level.

    Raises:
        UsageError: It is unknown.
    """
    if level not in LOG_LEVELS:
        raise UsageError(f"{level} is not a log level: give one of {', '.join(LOG_LEVELS)}.")


def check_log_format(form: str) -> None:
    """Refuse an unknown form of log lines.

    Raises:
        UsageError: It is unknown.
    """
    if form not in FORMATS:
        raise UsageError(f"{form} is not a log format: give one of {', '.join(FORMATS)}.")

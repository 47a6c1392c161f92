"""One stack's configuration: `<data-dir>/placet.json`, written by `placet up` and read by every role."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gateway.identity.oidc_settings import PREFIX
from gateway.settings import (
    DEFAULT_AGENT_PROPOSALS_PER_MINUTE,
    DEFAULT_REQUESTS_PER_S,
    DEFAULT_TENANT_PROPOSALS_PER_MINUTE,
)
from log.kafka.settings import settings_file
from ops.errors import UsageError
from ops.files import read_json, write_json
from ops.kafka.acl import SNAPSHOTS
from ops.role import ROLES
from projections.audit.keeping import DEFAULT_EVENTS, DEFAULT_SECONDS
from schemas.seals import REQUIRED
from schemas.topics import DEFAULT_PARTITIONS

DEFAULT_DATA_DIR = Path(".placet")
DEFAULT_PORT = 8000
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PROBED = tuple(role.name for role in ROLES.values() if role.has_probe)


@dataclass(frozen=True)
class DataDir:
    """Where one stack keeps what."""

    root: Path

    @property
    def config(self) -> Path:
        """The stack's configuration."""
        return self.root / "placet.json"

    @property
    def kafka(self) -> Path:
        """The embedded broker's directory: the truth."""
        return self.root / "kafka"

    @property
    def kafka_clients(self) -> Path:
        """How each principal signs in at the embedded broker: a file of client settings each, mode 600."""
        return self.kafka / "clients"

    @property
    def topics(self) -> Path:
        """The ids of the topics that this directory belongs to, as of the decider's first start."""
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
        """The running stack, as its supervisor sees it."""
        return self.root / "run" / "stack.json"

    def status(self, name: str) -> Path:
        """A component's own word on how it is."""
        return self.root / "run" / f"{name}.json"

    def log(self, name: str) -> Path:
        """What a component prints."""
        return self.root / "logs" / f"{name}.log"


@dataclass(frozen=True)
class StackConfig:
    """What a stack runs with; every value is settled, nothing is left to be chosen.

    Attributes:
        data_dir: Absolute path of its directory.
        bootstrap_servers: The Kafka cluster.
        embedded_kafka: Whether the stack runs the broker itself.
        kafka_settings: Absolute path of a JSON file with client settings (SASL, TLS), or of a directory with one
            for each role; empty for none.
        topic_prefix: First word of the topics' names.
        partitions: Partitions of the log, fixed for its life.
        replication_factor: Copies of each partition when topics are created.
        database_url: Where the views live.
        gateway_host: Address that the gateway listens on.
        gateway_port: Its port.
        url: The gateway's address for clients.
        gateway_policy: Absolute path of a policy with which the gateway tightens; empty for none.
        gateway_origins: Web origins whose pages may use the doors, separated by blanks.
        gateway_requests_per_s: How many REST requests a second one subject may send, and as many at once.
        gateway_agent_proposals_per_minute: How many calls one agent may propose; a sixth of them at once.
        gateway_tenant_proposals_per_minute: How many all agents of a tenant may propose together; likewise.
        audit_heads_dir: Absolute path where audit heads are kept; empty for `audit/heads` in the data directory.
        audit_webhook: Address that audit heads are posted to; empty for none.
        audit_head_events: So many events of a tenant make an audit head,
        audit_head_seconds: and so many seconds, if there was any.
        notifications_file: Absolute path of what is told to whom; empty for nobody.
        log_signatures: `required`, or `off` where everything that may be produced shall count.
        log_level: Of the roles' logs.
        probe_host: Address that the roles' probes listen on.
        probe_port: The first of the probes' ports, one after the other in the order of `PROBED`; 0 for any free ones.
        oidc: The identity provider that the gateway believes, as its settings without `oidc_`; empty for none.
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
    log_signatures: str = REQUIRED
    log_level: str = "INFO"
    probe_host: str = "127.0.0.1"
    probe_port: int = 0
    oidc: Mapping[str, str] = field(default_factory=dict)

    @property
    def directory(self) -> DataDir:
        """The data directory's layout."""
        return DataDir(Path(self.data_dir))

    def probe_port_of(self, role: str) -> int:
        """The port of a role's probe; 0 for any free one."""
        return self.probe_port + PROBED.index(role) if self.probe_port and role in PROBED else 0

    def kafka_settings_of(self, principal: str) -> Path | None:
        """The client settings with which a principal signs in at the cluster; None where none are needed."""
        return settings_file(self.kafka_settings, principal)

    def settings_for(self, worker_id: str, principal: str = "") -> dict[str, str]:
        """The plain text settings that a role's `run` is called with (docs/architecture.md, Processes).

        Args:
            worker_id: its name among several of the same role.
            principal: who it is to the cluster, which is its role; by default its name.
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
        UsageError: There is none at this path, or it holds something else.
    """
    values = read_json(path)
    if values is None:
        start = shlex.join(["placet", "up", "--data-dir", str(path.parent)])
        raise UsageError(f"{path} does not exist: start a stack ({start}).")
    try:
        config = StackConfig(**values)
    except TypeError as error:
        raise UsageError(f"{path} is not this version's configuration ({error}): mend it.") from error
    check_log_level(config.log_level)
    return config


def check_log_level(level: str) -> None:
    """Refuse a log level that no role could be started with.

    Raises:
        UsageError: It is none.
    """
    if level not in LOG_LEVELS:
        raise UsageError(f"{level} is no log level: give one of {', '.join(LOG_LEVELS)}.")

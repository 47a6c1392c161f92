"""The broker's own files: server.properties and the logging configuration, tuned for one node on loopback.

The broker works in its own directory, and its files name others by what they are called there. A whole path would be
read by rules that change it: in .properties a backslash escapes and no letter stands for itself beyond Latin-1,
`log.dirs` is a list at commas, log4j replaces `${…}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ops.files import write_text
from ops.kafka.acl import INSTALLATION
from ops.kafka.wire import PLAIN, SCRAM
from ops.ports import LOOPBACK
from schemas.topics import MAX_MESSAGE_BYTES

# The broker's own user: it is its own controller and its own only peer.
BROKER_USER = "kafka"
# A broker that comes back after kill -9 waits for its own old session to end: keep that short.
_FIXED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
    "message.max.bytes": str(MAX_MESSAGE_BYTES),
    # As of new topics (ops/topics.py), also for those that an earlier version made.
    "compression.type": "uncompressed",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Retention waits after a start, or a stack that was stopped for longer than commands are kept would lose the last
    # of them before a decider has read them, and refuse to go on (docs/operations.md, Retention).
    "log.initial.task.delay.ms": str(5 * 60 * 1000),
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}

_LOGIN = "org.apache.kafka.common.security"
_LOGGING = """status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = kafka.log
appender.file.filePattern = kafka.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %c{1} %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


@dataclass(frozen=True)
class Layout:
    """Where one broker keeps what, below its data directory."""

    root: Path

    @property
    def properties(self) -> Path:
        """Its server.properties, written again at each start."""
        return self.root / "server.properties"

    @property
    def logging(self) -> Path:
        """Its log4j2 configuration."""
        return self.root / "log4j2.properties"

    @property
    def logging_uri(self) -> str:
        """The same as log4j is told of it: it reads URIs, a list of them at commas, and replaces `${…}`."""
        return self.logging.absolute().as_uri()

    @property
    def log(self) -> Path:
        """What the broker writes about itself."""
        return self.root / "kafka.log"

    @property
    def output(self) -> Path:
        """The JVM's standard output and error."""
        return self.root / "kafka.out"

    @property
    def ports(self) -> Path:
        """The ports it was last given, as JSON."""
        return self.root / "ports.json"

    @property
    def data(self) -> Path:
        """Kafka's own log directory: the truth."""
        return self.root / "data"

    @property
    def is_formatted(self) -> bool:
        """Whether the storage tool has prepared the log directory."""
        return (self.data / "meta.properties").is_file()


@dataclass(frozen=True)
class Ports:
    """The broker's two listeners on loopback."""

    listener: int
    controller: int

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return f"{LOOPBACK}:{self.listener}"


def write_settings(layout: Layout, ports: Ports, password: str | None) -> None:
    """Write server.properties and the logging configuration for these ports.

    Args:
        layout: where.
        ports: the two listeners.
        password: of the broker's own user; None for a broker that lets everybody in.
    """
    protocol = "PLAINTEXT" if password is None else "SASL_PLAINTEXT"
    values = (
        _FIXED
        | ({} if password is None else _closed(password))
        | {
            "listeners": f"BROKER://{LOOPBACK}:{ports.listener},CONTROLLER://{LOOPBACK}:{ports.controller}",
            "advertised.listeners": f"BROKER://{LOOPBACK}:{ports.listener}",
            "inter.broker.listener.name": "BROKER",
            "listener.security.protocol.map": f"BROKER:{protocol},CONTROLLER:{protocol}",
            "controller.quorum.voters": f"1@{LOOPBACK}:{ports.controller}",
            "log.dirs": layout.data.name,
        }
    )
    text = "".join(f"{name}={value}\n" for name, value in values.items())
    write_text(layout.properties, text)
    layout.logging.write_text(_LOGGING, encoding="utf-8")


def _closed(password: str) -> dict[str, str]:
    """Nobody is let in without a password, on either listener, and nobody may do what no rule allows."""
    own = f'username="{BROKER_USER}" password="{password}" user_{BROKER_USER}="{password}"'
    plain = f"{_LOGIN}.plain.PlainLoginModule required {own};"
    return {
        "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
        "sasl.mechanism.inter.broker.protocol": PLAIN,
        "sasl.mechanism.controller.protocol": PLAIN,
        "listener.name.broker.plain.sasl.jaas.config": plain,
        f"listener.name.broker.{SCRAM.lower()}.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        "listener.name.controller.sasl.enabled.mechanisms": PLAIN,
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{BROKER_USER};User:{INSTALLATION}",
    }

"""The settings of a processor, from the plain text that a role is started with."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust

from host.errors import SettingsRefused
from schemas.event_signatures import LogSignatures, load_signatures
from schemas.members import instance_id, member_name
from schemas.topics import DEFAULT_PARTITIONS, Topics

STALL_AFTER_S = 60.0
SESSION_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class ProcessorSettings:
    """The settings of a processor.

    Attributes:
        role: The processor's name.
        bootstrap_servers: Kafka's addresses, separated by commas.
        topics: The topics' names.
        partitions: Partitions of the log.
        data_dir: The stack's directory; the processor keeps nothing valuable in it.
        instance_id: Its unique name in the consumer group: a process that starts under it takes its place at once.
        status_file: Where it writes its status; None for nowhere.
        kafka_settings: A JSON file of SASL and TLS settings; None for none.
        stall_after_s: The process ends if it is behind and makes no progress for this long.
        signatures: Verifies which facts a decider signed; None if nothing is signed.
        session_timeout_s: The group reassigns its partitions if it sends no heartbeat for this long.
    """

    role: str
    bootstrap_servers: str
    topics: Topics
    partitions: int
    data_dir: Path
    instance_id: str
    status_file: Path | None
    kafka_settings: Path | None
    stall_after_s: float
    session_timeout_s: float
    signatures: LogSignatures | None

    @property
    def group(self) -> str:
        """The consumer group."""
        return f"{self.topics.prefix}-{self.role}"


def read_settings(settings: Mapping[str, str], role: str) -> ProcessorSettings:
    """The settings in a role's plain text (docs/architecture.md, Processes).

    Args:
        settings: the role's settings.
        role: its name, and its worker id if none is set.

    Raises:
        SettingsRefused: one is missing or is not a number.
        KeysUnreadable: the record of where the signed part of the log begins is damaged.
    """
    try:
        topics = Topics(settings.get("topic_prefix") or "placet")
        named = {"worker_id": settings.get("worker_id") or role, "data_dir": settings["data_dir"]}
        return ProcessorSettings(
            role=role,
            bootstrap_servers=settings["bootstrap_servers"],
            topics=topics,
            partitions=int(settings.get("partitions") or DEFAULT_PARTITIONS),
            data_dir=Path(settings["data_dir"]),
            instance_id=instance_id(member_name(named, socket.gethostname()), [topics.executions]),
            status_file=_path(settings.get("status_file")),
            kafka_settings=_path(settings.get("kafka_settings")),
            stall_after_s=float(settings.get("stall_after_s") or STALL_AFTER_S),
            session_timeout_s=float(settings.get("session_timeout_s") or SESSION_TIMEOUT_S),
            signatures=load_signatures(settings),
        )
    except (KeyError, ValueError) as error:
        raise SettingsRefused(f"The settings of the {role} processor cannot be used: {error!r}.") from error


def credentials(found: Mapping[str, Any]) -> Any:
    """The same settings as faust's credentials; None if none are needed.

    Raises:
        SettingsRefused: SASL without a name or password.
    """
    context = found.get("ssl_context")
    if not found.get("security_protocol", "PLAINTEXT").startswith("SASL"):
        return faust.SSLCredentials(context) if context else None
    try:
        return faust.SASLCredentials(
            username=found["sasl_plain_username"],
            password=found["sasl_plain_password"],
            mechanism=found.get("sasl_mechanism", "PLAIN"),
            ssl_context=context,
        )
    except KeyError as error:
        raise SettingsRefused(f"The Kafka settings name SASL without {error}.") from error


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None

"""Where the stack under load is, as plain values that go to another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from log.kafka.settings import settings_file
from ops.config import DataDir
from ops.files import read_json
from ops.kafka.acl import INSTALLATION
from ops.kafka.security import client_settings
from ops.role import GRPC
from ops.status import read_stack

TENANT = PROJECT = "default"
AGENT = "bench"
# Whoever plays a part, and the role that makes it one.
SUBJECTS = {AGENT: "agent", "watcher": "reviewer", "reviewer": "reviewer", "operator": "operator"}
MEASURED = ("kafka", "decider", "projector", "gateway")


@dataclass(frozen=True, slots=True)
class Site:
    """A stack: its addresses, and a token for each part that is played."""

    data_dir: str
    url: str
    bootstrap_servers: str
    kafka_settings: str
    topic_prefix: str
    partitions: int
    database_url: str
    agent: str
    agent_token: str
    watcher_token: str
    reviewer_token: str
    operator_token: str

    @property
    def directory(self) -> DataDir:
        """The stack's data directory."""
        return DataDir(Path(self.data_dir))

    @property
    def security(self) -> dict[str, Any]:
        """How the owner signs in at the stack's broker."""
        return client_settings(settings_file(self.kafka_settings, INSTALLATION))

    @property
    def grpc_address(self) -> str:
        """Where the stack serves gRPC.

        Raises:
            StopIteration: it does not.
        """
        parts = read_stack(self.directory).components
        return next(part.address for part in parts if part.name == GRPC.name and part.address)

    def pids(self) -> dict[str, int]:
        """Process ids of the broker, decider, projector and gateway that run now."""
        parts = read_stack(self.directory).components
        return {part.name: part.pid for part in parts if part.name in MEASURED and part.pid is not None}


def site_of(directory: DataDir, token_of: Callable[[str, str], str]) -> Site:
    """The stack that runs in a directory, whichever version started it.

    Args:
        directory: its data directory.
        token_of: issues a token for a subject with a role.
    """
    config = read_json(directory.config) or {}
    tokens = {subject: token_of(subject, role) for subject, role in SUBJECTS.items()}
    return Site(
        data_dir=str(directory.root),
        url=config["url"],
        bootstrap_servers=config["bootstrap_servers"],
        kafka_settings=config["kafka_settings"],
        topic_prefix=config["topic_prefix"],
        partitions=config["partitions"],
        database_url=config["database_url"],
        agent=AGENT,
        agent_token=tokens[AGENT],
        watcher_token=tokens["watcher"],
        reviewer_token=tokens["reviewer"],
        operator_token=tokens["operator"],
    )

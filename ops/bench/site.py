"""Where the stack under load is, as plain values that go to another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.config import DataDir, load_config
from ops.kafka.acl import INSTALLATION
from ops.kafka.security import client_settings
from ops.status import read_stack

TENANT = PROJECT = "default"
MEASURED = ("kafka", "decider", "projector", "gateway")


@dataclass(frozen=True, slots=True)
class Site:
    """A stack: its addresses, and a token for each part that is played."""

    data_dir: str
    url: str
    bootstrap_servers: str
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
        return client_settings(load_config(self.directory.config).kafka_settings_of(INSTALLATION))

    def pids(self) -> dict[str, int]:
        """Process ids of the broker, decider, projector and gateway that run now."""
        parts = read_stack(self.directory).components
        return {part.name: part.pid for part in parts if part.name in MEASURED and part.pid is not None}

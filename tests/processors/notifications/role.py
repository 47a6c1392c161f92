"""The notifier as a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from log.kafka.log import KafkaLog
from log.places import TopicPartition
from ops.process import spawn
from tests.processors.history import History
from tests.processors.notifications.receiver import SECRET
from tests.processors.role import Role, produce

PROGRAM = """
import json, logging, sys
logging.basicConfig(level="DEBUG", format="%(asctime)s %(levelname)s %(name)s %(message)s")
for name in ("faust", "aiokafka", "mode", "asyncio"):
    logging.getLogger(name).setLevel("INFO")
from services.processors.notifications.main import run
run(json.loads(sys.argv[1]))
"""
LINK_BASE = "http://127.0.0.1:1"


@dataclass
class NotifierRole(Role):
    """One notifier at a time, started again at will."""

    worker_id: str = "notifier"
    variables: dict[str, str] = field(default_factory=lambda: {"HOOK_SECRET": SECRET})
    sent: dict[int, int] = field(default_factory=dict)

    @property
    def log(self) -> str:
        path = self.directory / "notifier.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def file(self) -> Path:
        return self.directory / "notifications.yaml"

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), "notifications_file": str(self.file), "gateway_url": LINK_BASE}

    def tell(self, *notifications: Mapping[str, Any]) -> None:
        """Write the notifications file."""
        self.file.write_text(yaml.safe_dump({"notifications": list(notifications)}))

    def start(self) -> None:
        command = (sys.executable, "-c", PROGRAM, json.dumps(self.settings()))
        self.process = spawn(command, self.directory / "notifier.log", {**os.environ, **self.variables})

    def start_ready(self) -> None:
        self.start()
        self.wait_ready()

    async def produce(self, *found: History) -> None:
        """Append what was not appended yet."""
        for history in found:
            records = history.records[self.sent.get(history.partition, 0) :]
            await produce(self.bootstrap_servers, self.topics.executions, history.partition, records)
            self.sent[history.partition] = len(history.records)

    async def dead_letters(self) -> list[dict[str, str]]:
        """The headers of every dead letter."""
        log = KafkaLog(self.bootstrap_servers, self.topics)
        try:
            found: list[dict[str, str]] = []
            for partition in range(self.partitions):
                tp = TopicPartition(self.topics.dead_letters, partition)
                async for records in log.read(tp, *await log.bounds(tp)):
                    found += [{name: value.decode() for name, value in raw.headers} for raw in records]
            return found
        finally:
            await log.close()


def to_webhook(url: str, name: str = "all", **parts: Any) -> dict[str, Any]:
    """A notification to one webhook; `when` and `delivery` may be given."""
    everything = ["hold_opened", "hold_escalated", "hold_expired", "hold_delegated", "hold_resolved"]
    return {
        "id": name,
        "when": {"events": everything, **parts.get("when", {})},
        "to": [{"webhook": {"url": url, "secret_env": "HOOK_SECRET"}}],
        "delivery": {"timeout_seconds": 2, **parts.get("delivery", {})},
    }

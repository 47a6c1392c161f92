"""The embedded broker as a member of a stack: started again, with back-off, when it dies."""

from __future__ import annotations

import time
from pathlib import Path

from ops.errors import OpsError
from ops.files import unusable
from ops.kafka.access import Access
from ops.kafka.broker import Broker, BrokerConfig
from ops.restarts import restart_delay_s
from ops.status import BACKING_OFF, KAFKA, READY, Component


class KafkaChild:
    """A stack's own Kafka."""

    name = KAFKA

    def __init__(self, data_dir: Path, access: Access) -> None:
        self.restarts = 0
        self._root = data_dir
        self._broker = Broker(BrokerConfig(data_dir, access=access))
        self._failures = 0
        self._start_at = 0.0

    def start(self) -> str:
        """Start it and wait until it serves.

        Returns:
            Its bootstrap servers.

        Raises:
            OpsError: It cannot start; the message says what to do.
        """
        self._broker.start()
        return self._broker.bootstrap_servers

    def tick(self, now: float) -> str | None:
        """Start it again when it has died; returns one sentence about what happened, if something did."""
        if self._broker.is_running or now < self._start_at:
            return None
        try:
            self._broker.kill()
            self._broker.start()
        except (OpsError, OSError) as error:
            self._failures += 1
            self._start_at = time.monotonic() + restart_delay_s(self._failures)
            return str(unusable(error, self._root) if isinstance(error, OSError) else error)
        self._failures = 0
        self.restarts += 1
        return "Kafka had ended and was started again"

    def stop(self) -> None:
        """Stop it cleanly."""
        self._broker.stop()

    @property
    def component(self) -> Component:
        """How it is now."""
        if not self._broker.is_running:
            return Component(KAFKA, None, BACKING_OFF, None, self.restarts)
        return Component(KAFKA, self._broker.pid, READY, self._broker.bootstrap_servers, self.restarts)

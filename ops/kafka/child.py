"""The embedded broker as a member of a stack: started again, with back-off, when it dies.

Starting it again takes a while, in which the supervisor has other parts to watch: each look takes one step.
"""

from __future__ import annotations

import time
from pathlib import Path

from ops.component import BACKING_OFF, KAFKA, READY, STARTING, Component
from ops.errors import DataDirectoryUnusableError, OpsError
from ops.files import unusable
from ops.kafka.access import Access
from ops.kafka.broker import Broker, BrokerConfig
from ops.kafka.log_files import METADATA, has_metadata, has_partitions
from ops.restarts import HEALTHY_AFTER_S, describe_exit, restart_delay_s


class KafkaChild:
    """A stack's own Kafka."""

    name = KAFKA

    def __init__(self, data_dir: Path, access: Access) -> None:
        self.restarts = 0
        self._root = data_dir
        self._broker = Broker(BrokerConfig(data_dir, access=access))
        self._state = STARTING
        self._failures = 0
        self._start_at = self._served_at = 0.0
        self._refused = ""

    def start(self) -> str:
        """Start it and wait until it serves.

        Returns:
            Its bootstrap servers.

        Raises:
            OpsError: It cannot start; the message says what to do.
        """
        self._broker.start()
        self._state, self._served_at = READY, time.monotonic()
        return self._broker.bootstrap_servers

    def tick(self, now: float) -> str | None:
        """Notice its death, start it again when its time has come, look whether it serves: one of these at a time.

        Args:
            now: Monotonic seconds.

        Returns:
            One sentence about what happened, if something did.
        """
        try:
            return self._step(now)
        except (OpsError, OSError) as error:
            self._refused = str(unusable(error, self._root) if isinstance(error, OSError) else error)
            self._wait(self._failures + 1)
            return self._refused

    def stop(self) -> None:
        """Stop it cleanly; one that does not serve yet has nobody to be polite to, and is killed."""
        if self._state == READY:
            self._broker.stop()
        else:
            self._broker.kill()

    @property
    def component(self) -> Component:
        """How it is now."""
        if not self._broker.is_running:
            return Component(KAFKA, None, BACKING_OFF, None, self.restarts, self._refused)
        address = self._broker.bootstrap_servers
        return Component(KAFKA, self._broker.pid, self._state, address, self.restarts, self._refused)

    def _step(self, now: float) -> str | None:
        if self._state == READY:
            return None if self._broker.is_running else self._ended(now)
        if self._state == BACKING_OFF:
            if now >= self._start_at:
                self._launch()
            return None
        if not self._broker.serves():
            return None
        self._state, self._served_at, self._refused = READY, time.monotonic(), ""
        return "Kafka had ended and was started again"

    def _ended(self, now: float) -> str:
        code = self._broker.exit_code
        delay_s = self._wait(1 if now - self._served_at > HEALTHY_AFTER_S else self._failures + 1)
        how = "" if code is None else f" ({describe_exit(code)})"
        return f"Kafka ended{how}; starting it again in {delay_s:.1f} s"

    def _wait(self, failures: int) -> float:
        self._state, self._failures = BACKING_OFF, failures
        delay_s = restart_delay_s(failures)
        self._start_at = time.monotonic() + delay_s
        return delay_s

    def _launch(self) -> None:
        self._broker.kill()
        layout = self._broker.layout
        if not layout.is_formatted:
            raise DataDirectoryUnusableError(
                f"The log of this stack is no longer in {layout.data}, and no empty log is created in its"
                " place: put it back there."
            )
        if has_partitions(layout.data) and not has_metadata(layout.data):
            raise DataDirectoryUnusableError(
                f"{layout.data / METADATA}, the only record of Kafka's topics, is missing or empty, and no empty log"
                " is created: restore all of it from a copy."
            )
        self._broker.launch()
        self.restarts += 1
        self._state = STARTING

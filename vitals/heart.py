"""The heartbeat sender of a process: every second it writes the status file and a heartbeat to the log, in a thread.

The thread makes a busy or hanging event loop visible in the heartbeats instead of stopping them, and keeps this work
off the process's own loop. If the whole process is stopped, its heartbeats stop, and the others report it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from log.kafka.settings import client_settings
from log.kafka.voice import KafkaVoice
from schemas.topics import Topics
from vitals.pulse import Pulse
from vitals.status_file import write_status
from vitals.word import BEAT_S, SILENT_AFTER_S, encode

logger = logging.getLogger(__name__)

JOIN_WITHIN_S = 6.0
# Less than the process waits for the thread, whose event loop cannot continue once the interpreter ends.
FAREWELL_WITHIN_S = 4.0
LAST_BEAT_WITHIN_S = 0.5


class Heart:
    """Sends the heartbeats of one pulse, from `start` to `stop`."""

    def __init__(self, pulse: Pulse, voice: KafkaVoice | None, status_file: Path | None) -> None:
        """Prepare the sender.

        Args:
            pulse: the process's status.
            voice: sends heartbeats to the log; None for the status file alone.
            status_file: the file; None for the log alone.
        """
        self._pulse = pulse
        self._voice = voice
        self._file = status_file
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self.write()
        self._thread.start()

    def stop(self) -> None:
        """Send a last heartbeat and end."""
        self._ended.set()
        self._thread.join(JOIN_WITHIN_S)

    def write(self) -> None:
        """Write the status file now, so that a change does not wait for the next heartbeat."""
        word = self._pulse.word()
        write_status(
            self._file,
            word.state,
            word.address,
            role=word.role,
            name=word.name,
            host=word.host,
            lag_records=word.lag_records,
            stalled_ms=word.stalled_ms,
            loop_age_ms=word.loop_age_ms,
            kafka_age_ms=word.kafka_age_ms,
            partitions=list(word.partitions),
            reason=word.reason,
            disk=word.disk,
            clock=word.clock,
        )

    def _run(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        speaking: asyncio.Task[None] | None = None
        while not self._ended.is_set():
            self.write()
            # In a task, because a broker that does not answer must not delay the status file, which reports that.
            if self._voice is not None and (speaking is None or speaking.done()):
                speaking = asyncio.create_task(self._speak(self._voice))
            await asyncio.to_thread(self._ended.wait, BEAT_S)
        if self._voice is not None:
            try:
                async with asyncio.timeout(FAREWELL_WITHIN_S):
                    await self._farewell(self._voice, speaking)
            except TimeoutError:
                logger.info("the last heartbeat took longer than %g s and was abandoned", FAREWELL_WITHIN_S)

    async def _farewell(self, voice: KafkaVoice, speaking: asyncio.Task[None] | None) -> None:
        """Send the last heartbeat, if Kafka has answered recently."""
        if speaking is not None:
            await asyncio.wait({speaking}, timeout=LAST_BEAT_WITHIN_S)
            speaking.cancel()
        age_ms = self._pulse.word().kafka_age_ms
        if age_ms is not None and age_ms < SILENT_AFTER_S * 1000:
            await self._speak(voice)
        await voice.close()

    async def _speak(self, voice: KafkaVoice) -> None:
        word = self._pulse.word()
        if await voice.say(word.key, encode(word)):
            self._pulse.acknowledged()


def heart_of(settings: Mapping[str, str], pulse: Pulse) -> Heart:
    """The heartbeat sender of the process that a role's settings start.

    Raises:
        SettingsRefused: the Kafka settings cannot be used.
    """
    topics = Topics(settings.get("topic_prefix") or "placet")
    security = client_settings(settings.get("kafka_settings"))
    voice = KafkaVoice(settings["bootstrap_servers"], security, topics.heartbeats)
    file = settings.get("status_file")
    return Heart(pulse, voice, Path(file) if file else None)

"""Dead letters of messages that no target accepted: which fact was not reported, and why, without its bytes.

The fact itself stays in its topic, which is kept for ever.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from schemas.dead_letters import letter_headers
from schemas.topics import Topics
from services.processors.errors import TrustError
from services.processors.notifications.notice import Notice

UNDELIVERABLE = "undeliverable"
WITHIN_S = 30.0


class DeadLettersNotWritten(TrustError):
    """A dead letter could not be written; the message stays in the outbox and is tried again after a restart."""


class DeadLetters:
    """Writes them through faust's producer."""

    def __init__(self, app: Any, topics: Topics, partitions: int) -> None:
        self._app = app
        self._topics = topics
        self._partitions = partitions

    async def write(self, notices: Sequence[Notice], why: str) -> None:
        """Write one letter for each notice, and wait until every replica has them.

        Raises:
            DeadLettersNotWritten: they could not be written in time.
        """
        try:
            async with asyncio.timeout(WITHIN_S):
                await asyncio.gather(*[await self._send(notice, why) for notice in notices])
        except Exception as error:
            raise DeadLettersNotWritten(
                f"Dead letters could not be written ({type(error).__name__})."
            ) from error

    async def _send(self, notice: Notice, why: str) -> Any:
        source = notice.source
        origin = (self._topics.executions, source.partition, source.offset)
        headers = (
            *letter_headers(*origin, source.timestamp_ms, UNDELIVERABLE, why),
            ("placet_left_out_sha256", source.sha256.encode()),
        )
        return await self._app.producer.send(
            self._topics.dead_letters,
            source.key,
            b"",
            partition=source.partition % self._partitions,
            timestamp=None,
            headers=list(headers),
        )

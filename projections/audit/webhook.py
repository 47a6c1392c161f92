"""Heads posted to an outside address: each at least once, in order, and none is lost.

After each answer, the number of the last head taken is stored in a file beside the heads. If the answer is not 2xx,
the post is retried at growing intervals; meanwhile the views continue and the heads wait in their files.
"""

import asyncio
import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from host.json_files import read_json_file
from host.key_files import SigningKey
from host.outgoing_http import ProxyUnusable, http_client
from host.outgoing_tls import TlsRefused
from projections.audit.head_files import HeadFiles, HeadsUnusable
from schemas.audit import Head, call_signature

logger = logging.getLogger(__name__)

SIGNATURE_HEADER = "Placet-Signature"
TIMEOUT_S = 10.0
RETRY_FIRST_S, RETRY_MOST_S = 1.0, 60.0
HEADS_A_TURN = 100


@dataclass(slots=True)
class Webhook:
    """Posts the heads in the files. `woken` is set when there can be new ones."""

    url: str
    files: HeadFiles
    key: SigningKey
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    retry_first_s: float = RETRY_FIRST_S

    @property
    def cursor_file(self) -> Path:
        """The file with the number of the last head taken, per tenant."""
        return self.files.directory / "webhook.json"

    async def run(self) -> None:
        """Post until cancelled.

        Raises:
            HeadsUnusable: the heads cannot be read, or the number of the last one posted cannot be stored.
        """
        wait_s = self.retry_first_s
        async with self._client() as client:
            while True:
                self.woken.clear()
                if await self._post_all(client):
                    wait_s = self.retry_first_s
                    await self.woken.wait()
                else:
                    await asyncio.sleep(wait_s)
                    wait_s = min(RETRY_MOST_S, wait_s * 2)

    @staticmethod
    def _client() -> httpx.AsyncClient:
        try:
            return http_client(timeout=TIMEOUT_S, follow_redirects=False)
        except TlsRefused as error:
            raise HeadsUnusable(f"{error}.") from error
        except ProxyUnusable as error:
            raise HeadsUnusable(str(error)) from error

    async def _post_all(self, client: httpx.AsyncClient) -> bool:
        taken = self._taken()
        for tenant in self.files.tenants():
            while heads := self.files.after(tenant, taken.get(tenant, 0), HEADS_A_TURN):
                for head in heads:
                    if not await self._post(client, head):
                        return False
                    taken[tenant] = head.number
                    self._keep(taken)
        return True

    async def _post(self, client: httpx.AsyncClient, head: Head) -> bool:
        body = head.line.encode()
        headers = {"Content-Type": "application/json", SIGNATURE_HEADER: call_signature(self.key, body)}
        host = urlsplit(self.url).hostname
        try:
            answer = await client.post(self.url, content=body, headers=headers)
        except httpx.HTTPError as error:
            logger.warning(
                "audit head %d was not accepted by %s (%s)", head.number, host, type(error).__name__
            )
            return False
        if not answer.is_success:
            logger.warning("audit head %d was not accepted by %s (%d)", head.number, host, answer.status_code)
        return answer.is_success

    def _taken(self) -> dict[str, int]:
        try:
            found = read_json_file(self.cursor_file)
            return {str(tenant): int(number) for tenant, number in found.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, TypeError):
            # At least once: without the file, all heads are sent again.
            logger.warning("%s is damaged: all audit heads are posted again", self.cursor_file)
            return {}

    def _keep(self, taken: dict[str, int]) -> None:
        fresh = self.cursor_file.with_suffix(".fresh")
        try:
            fresh.write_text(json.dumps(taken))
            os.replace(fresh, self.cursor_file)
        except OSError as error:
            raise HeadsUnusable(f"{self.cursor_file} cannot be written: {error}.") from error

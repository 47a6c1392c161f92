"""Heads posted to an address outside: each at least once, in order, and none is lost.

How far it has come is kept in a file beside the heads, after each answer. Who does not answer with 2xx is asked
again, ever more slowly; meanwhile the views go on and the heads wait in their files.
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
    """Posts what is in the heads' files. `woken` is set when there may be more."""

    url: str
    files: HeadFiles
    key: SigningKey
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    retry_first_s: float = RETRY_FIRST_S

    @property
    def cursor_file(self) -> Path:
        """Per tenant, the number of the last head that was taken."""
        return self.files.directory / "webhook.json"

    async def run(self) -> None:
        """Post until cancelled.

        Raises:
            HeadsUnusable: heads cannot be read, or how far they were posted cannot be kept.
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
            logger.warning("audit head %d was not taken by %s (%s)", head.number, host, type(error).__name__)
            return False
        if not answer.is_success:
            logger.warning("audit head %d was not taken by %s (%d)", head.number, host, answer.status_code)
        return answer.is_success

    def _taken(self) -> dict[str, int]:
        try:
            found = read_json_file(self.cursor_file)
            return {str(tenant): int(number) for tenant, number in found.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, TypeError):
            # At least once: without the file all are sent again.
            logger.warning("%s is damaged: all audit heads are posted again", self.cursor_file)
            return {}

    def _keep(self, taken: dict[str, int]) -> None:
        fresh = self.cursor_file.with_suffix(".fresh")
        try:
            fresh.write_text(json.dumps(taken))
            os.replace(fresh, self.cursor_file)
        except OSError as error:
            raise HeadsUnusable(f"{self.cursor_file} cannot be written: {error}.") from error

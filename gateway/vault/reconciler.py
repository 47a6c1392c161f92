"""Keeps the vault in step with the log: values erased there are erased here, even if the gateway died in between.

1. At the start everything that is erased by the views is erased again: there may have been no time for it, or the
   vault may have been restored from a backup that still had it.
2. From then on the gateway's own tail reports erasures, without a gap.
3. Regularly, values that were sealed long ago and never reached the log are shredded: their command was lost or
   refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Literal

from gateway.live.reader import Subject
from gateway.problems import Problem
from gateway.vault.access import ERASE_WITHIN_S, VaultAccess
from gateway.vault.vault import Owner, Sealed, Vault
from gateway.views import GatewayViews
from projections.queries.erasures import Erasure, erasures_since
from projections.store.port import ViewError
from schemas.events.definitions import DataKeyDestroyed
from schemas.events.holds import SecretsErased
from schemas.ids import derived_id, split_execution_key
from schemas.record import Event

logger = logging.getLogger(__name__)

SWEEP_EVERY_S = 600.0
AGAIN_AFTER_S = 2.0
# A command waits for its decision no longer than the log keeps it; after a day it is not repeated either.
ORPHAN_AFTER_MS = 24 * 60 * 60 * 1000
# The log's time and the gateway's may differ, and the views may be behind.
MARGIN_MS = 24 * 60 * 60 * 1000


class VaultReconciler:
    """Keeps the vault in step with the log, for one gateway."""

    def __init__(self, vault_access: VaultAccess, views: GatewayViews) -> None:
        """Make a reconciler that has read nothing yet."""
        self._vault_access = vault_access
        self._views = views
        self._due: list[Erasure] = []
        self._told = asyncio.Event()

    def note(self, events: Iterable[Event]) -> None:
        """Take in what the tail has read."""
        for event in events:
            if isinstance(event.body, SecretsErased | DataKeyDestroyed):
                self._due.append(erasure_of(event))
                self._told.set()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        await self._until_done(self._catch_up)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_EVERY_S):
                    await self._told.wait()
            self._told.clear()
            await self._until_done(self._erase_due)
            await self._until_done(self.sweep)

    async def sweep(self) -> None:
        """Shred values that were sealed long ago and that the log does not name."""
        now_ms = time.time_ns() // 1_000_000
        while found := await self._vault_access.run(
            lambda vault: vault.unconfirmed(now_ms - ORPHAN_AFTER_MS)
        ):
            landed = [one.handle for one in found if await self._has_landed(one)]
            await self._settle(landed, [one.handle for one in found if one.handle not in set(landed)])
        await self._vault_access.run(lambda vault: vault.set_mark(now_ms))

    async def _settle(self, landed: list[str], orphans: list[str]) -> None:
        await self._vault_access.run(lambda vault: vault.settle(landed, orphans), ERASE_WITHIN_S)
        if orphans:
            logger.info("%d sealed values that the log does not name were erased", len(orphans))

    async def _catch_up(self) -> None:
        projects, mark_ms = await self._vault_access.run(
            lambda vault: (vault.projects(), vault.mark()), ERASE_WITHIN_S
        )
        for tenant, project in projects:
            for erasure in await self._known(tenant, project, mark_ms - MARGIN_MS):
                await self._erase(erasure)

    async def _known(self, tenant: str, project: str, since_ms: int) -> list[Erasure]:
        found, _ = await self._views.read(lambda moment: erasures_since(moment, tenant, project, since_ms))
        return found

    async def _erase_due(self) -> None:
        while self._due:
            await self._erase(self._due[0])
            del self._due[0]

    async def _erase(self, erasure: Erasure) -> None:
        await self._vault_access.run(lambda vault: _carry_out(vault, erasure), ERASE_WITHIN_S)

    async def _has_landed(self, sealed: Sealed) -> bool:
        owner = sealed.owner
        kind: Literal["call", "request"] = "call" if owner.kind == "call" else "request"
        place, parts = (owner.tenant, owner.project), (owner.execution_id, kind, owner.subject_id)
        subject = (
            Subject("call", *place, owner.execution_id, owner.subject_id)
            if kind == "call"
            else Subject("request", *place, "", derived_id("hold", *place, *parts))
        )
        found = await self._views.lookups.find(subject)
        row = found.row or {}
        texts = (row.get("arguments"), row.get("approved_arguments"), row.get("response"))
        return any(sealed.handle in text for text in texts if text)

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (Problem, ViewError) as error:
                logger.warning("the vault does not follow the log yet: %s", error)
                await asyncio.sleep(AGAIN_AFTER_S)
            else:
                return


def erasure_of(event: Event) -> Erasure:
    """Return the erasure that an event requires."""
    body = event.body
    if isinstance(body, DataKeyDestroyed):
        return Erasure(event.meta.tenant, body.project, key_name=body.name)
    assert isinstance(body, SecretsErased)
    tenant, project, execution_id = split_execution_key(event.key)
    return Erasure(tenant, project, execution_id, body.call_id, body.request_id)


def _carry_out(vault: Vault, erasure: Erasure) -> None:
    if erasure.key_name:
        vault.destroy_key(erasure.tenant, erasure.project, erasure.key_name)
        return
    kind, subject_id = ("call", erasure.call_id) if erasure.call_id else ("request", erasure.request_id)
    vault.erase(Owner(erasure.tenant, erasure.project, erasure.execution_id, kind, subject_id))

"""Access to the vault for requests: outside of the event loop, with its errors as refusals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gateway.problems import Problem
from gateway.vault.store import VaultDamaged, VaultSilent, VaultUnavailable
from gateway.vault.vault import Damaged, Gone, NeverSealed, Opened, Owner, Vault
from gateway.vault.wrapping import MasterKeyWrong
from host.key_files import KeysUnreadable
from schemas.refusals import Refusal
from schemas.sensitive import Marked, Path, placeholders, pointer

logger = logging.getLogger(__name__)

THREADS = 4
# A request that needs the vault is answered within this time, whatever its database does.
ANSWER_S = 5.0
AGAIN_AFTER_S = 0.1
# An erasure also cleans the database's files, which takes time in proportion to their size.
ERASE_WITHIN_S = 30.0
ERASED = "the sensitive values were erased: they are no longer available"
NEVER_SEALED = (
    "no sensitive value was ever sealed for this place under this handle: the handle was made up or copied, or "
    "the vault was lost; give the value itself, through the gateway"
)
T = TypeVar("T")


class VaultAccess:
    """Seals, delivers and erases for one gateway.

    Attributes:
        damage: the damage found in the vault's file since it was opened; empty if it is sound.
    """

    def __init__(self, open_vault: Callable[[], Vault]) -> None:
        """Make the access to a vault that `start` opens."""
        self._open_vault = open_vault
        self._vault: Vault | None = None
        self.damage = ""
        self._is_usable = True
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="vault")

    async def start(self) -> None:
        """Open the vault; if its database does not answer now, wait until it does.

        Raises:
            VaultUnavailable: it cannot be opened at all.
        """
        waited = False
        while self._vault is None:
            try:
                self._vault = await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._open_vault
                )
            except VaultSilent as error:
                if not waited:
                    logger.info("waiting for the vault: %s", error)
                waited = True
                await asyncio.sleep(AGAIN_AFTER_S)

    async def stop(self) -> None:
        """Close the vault. Work that does not end at once is abandoned: its answer has no reader any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        vault, self._vault = self._vault, None
        if vault is not None:
            await asyncio.to_thread(vault.close)

    async def seal(self, owner: Owner, by: str, marked: Sequence[Marked]) -> dict[Path, dict[str, str]]:
        """Seal marked values; return the placeholder of each, by its path.

        Raises:
            Problem: 503, the vault cannot be used now.
        """
        values = {pointer(one.path): one.value for one in marked}
        sealed = await self.run(lambda vault: vault.seal(owner, by, values))
        return {one.path: sealed[pointer(one.path)] for one in marked}

    async def deliver(
        self, owner: Owner, arguments: Any, marked: Collection[Path] = ()
    ) -> list[dict[str, Any]]:
        """Return the values that the placeholders in arguments stand for, as they are delivered.

        Args:
            owner: the owner that the values must belong to.
            arguments: with placeholders.
            marked: the paths that are certainly sensitive; at other paths, a value may only look like a placeholder.

        Raises:
            Problem: 409 expired, the values were erased or never existed; 503, the vault cannot be used now.
        """
        asked = [(pointer(path), handle) for path, handle, _ in placeholders(arguments)]
        if not asked:
            return []
        certain = {pointer(path) for path in marked}

        def opened(vault: Vault) -> list[tuple[str, Opened]]:
            known = vault.known(owner, asked)
            wanted = [one for one in asked if one in known or one[0] in certain]
            return list(zip([path for path, _ in wanted], vault.open(owner, wanted), strict=True))

        try:
            found = await self.run(opened)
        except NeverSealed as error:
            raise Problem(Refusal.EXPIRED, NEVER_SEALED) from error
        except Gone as error:
            raise Problem(Refusal.EXPIRED, ERASED) from error
        return [
            {"path": path, "handle": one.handle, "nonce": one.nonce.hex(), "value": one.value}
            for path, one in found
        ]

    async def run(self, work: Callable[[Vault], T], within_s: float = ANSWER_S) -> T:
        """Run work on the vault in a thread.

        Work that was begun may still complete after its time is over. So all work here can be repeated, and its
        result is not used before it completes: a value that was sealed for no command is shredded after a day.

        Args:
            work: the work.
            within_s: how long to wait for it.

        Raises:
            Gone: as `Vault.open`.
            Problem: 503, the vault cannot be used now, or does not answer in time.
        """
        vault = self._vault
        if vault is None:
            raise Problem(Refusal.UNAVAILABLE, "the vault is not open yet", retry_after=1)
        try:
            async with asyncio.timeout(within_s):
                result = await asyncio.get_running_loop().run_in_executor(self._threads, work, vault)
        except (TimeoutError, VaultUnavailable, MasterKeyWrong, Damaged, KeysUnreadable, OSError) as error:
            if isinstance(error, VaultDamaged):
                self.damage = str(error)
            self._is_usable = False
            # Each use fails during an outage: `vitals.logs` writes this once in ten seconds.
            logger.error("the vault cannot be used: %s", str(error) or f"no answer within {within_s:.0f} s")
            raise Problem(
                Refusal.UNAVAILABLE, "sensitive values cannot be read or written now", retry_after=1
            ) from error
        if not self._is_usable:
            self._is_usable = True
            # A warning, because it can also change at each use: then only warnings are limited.
            logger.warning("the vault can be used again")
        return result

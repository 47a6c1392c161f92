"""Tries a command in a child of this process: a command that ends its decider then ends only that child.

The child is a fork, so it decides with exactly the writer's state. It uses no connection: it decides and exits.
Questions for a helper process count as not answered in the child (`CelHelper.leave`).
"""

import asyncio
import logging
import os
import resource
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

# A decision takes milliseconds; on a busy machine, some more.
LIMIT_S = 30.0
# The memory of a decision in addition to the process's: with more, the kernel might choose to kill another process.
MEMORY_MAX_BYTES = 1 << 30
FIRST_PAUSE_S = 0.001
PAUSE_MAX_S = 0.05
STATM = Path("/proc/self/statm")

logger = logging.getLogger(__name__)


class Trial(Protocol):
    """Finds out whether a piece of work can be done without ending the process that does it."""

    async def survives(self, attempt: Callable[[], None]) -> bool:
        """True if a process did it and survived; its results are discarded."""
        ...


async def _at_once() -> None:
    return


@dataclass(frozen=True, slots=True)
class ForkedTrial:
    """Tries work in a child.

    Attributes:
        leave: called in the child first: it gives up what only the parent process may use.
        ready: awaited before a child is forked; if a thread were importing then, the child could hang.
        limit_s: a child that takes longer is killed, and has not survived.
    """

    leave: Callable[[], None] = lambda: None
    ready: Callable[[], Awaitable[None]] = _at_once
    limit_s: float = LIMIT_S

    async def survives(self, attempt: Callable[[], None]) -> bool:
        """See `Trial.survives`. If no child can be forked, nothing is known, and the work counts as survived."""
        await self.ready()
        try:
            child = os.fork()
        except OSError as error:
            logger.warning("a command could not be tried in a process of its own: %s", error)
            return True
        if child == 0:
            self._try(attempt)
        code = await self._outcome(child)
        if code != 0:
            logger.error("a command was tried in a process of its own, which ended (%s)", code)
        return code == 0

    def _try(self, attempt: Callable[[], None]) -> NoReturn:
        code = 1
        try:
            # The wake-up descriptor belongs to the parent's loop.
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            # The timer ends the child even if its parent has ended and cannot kill it.
            signal.setitimer(signal.ITIMER_REAL, self.limit_s)
            _bound_memory()
            self.leave()
            attempt()
            code = 0
        except Exception:
            logger.exception("a command that was tried could not be decided")
        finally:
            # None of the parent's exit handlers may run here.
            os._exit(code)

    async def _outcome(self, child: int) -> int:
        """The exit code of a child, which is killed if it takes too long."""
        pause_s, code = FIRST_PAUSE_S, None
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.limit_s
        try:
            while loop.time() < give_up_at:
                if (code := _exit_code(child)) is not None:
                    return code
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MAX_S)
        finally:
            if code is None:
                _end(child)
        return -signal.SIGKILL


def _exit_code(child: int) -> int | None:
    """The exit code of a child; −n if signal n ended it, None while it runs."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _bound_memory() -> None:
    # Only Linux reports a process's memory here.
    if STATM.exists():
        has_bytes = int(STATM.read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = has_bytes + MEMORY_MAX_BYTES
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))

"""A tool that is kept running: started again with back-off when it ends, its health watched, stopped by a signal."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from host.errors import EXIT_FAILED
from ops.errors import OpsError, UsageError
from ops.process import STOP_SIGNALS
from ops.restarts import HEALTHY_AFTER_S, describe_exit, restart_delay_s
from ops.tools.child import Launch, ToolProcess
from ops.tools.health import NO_ANSWER, SERVING, watch_health

# With the delays of `ops.restarts`, the last of these starts is about three seconds after the first.
FAILURES_MAX = 8
STOP_GRACE_S = 10.0


class ToolFailedError(OpsError):
    """The tool ended again and again soon after its start."""

    exit_code = EXIT_FAILED


@dataclass(frozen=True)
class Happened:
    """Something to tell about a tool.

    Attributes:
        event: started, ready, health, ended, stopping, killed or stopped.
        text: the same as a sentence.
        fields: its details for programs.
    """

    event: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[Happened], None]


class Supervision:
    """Keeps one tool running."""

    def __init__(self, launch: Launch, tell: Tell, stop_grace_s: float = STOP_GRACE_S) -> None:
        self._launch = launch
        self._tell = tell
        self._stop_grace_s = stop_grace_s
        self._stop_asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._health: str | None = None
        self._was_ready = False

    async def run(self) -> None:
        """Run the tool until SIGTERM, SIGINT or SIGHUP, which are passed on to it.

        Raises:
            UsageError: The command cannot be started at all.
            ToolFailedError: It ended too often soon after its start.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._ask_stop, number)
        try:
            await self._keep_running()
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    async def _keep_running(self) -> None:
        failures = 0
        child: ToolProcess | None = self._first()
        while child is not None:
            started_at = time.monotonic()
            try:
                await self._until_ended_or_stop(child)
                if self._stop_asked.done():
                    await self._stop(child, self._stop_asked.result())
                    return
            finally:
                code = child.collect()
            failures = 0 if time.monotonic() - started_at > HEALTHY_AFTER_S else failures
            child, failures = await self._again(describe_exit(code), failures)
        self._tell(Happened("stopped", "The tool is stopped."))

    def _first(self) -> ToolProcess:
        try:
            return self._start()
        except OSError as error:
            raise UsageError(
                f"The tool's command {self._launch.command[0]!r} cannot be started in {self._launch.directory} "
                f"({error.strerror or error}): install it, or correct `command`."
            ) from error

    async def _again(self, how: str, failures: int) -> tuple[ToolProcess | None, int]:
        """Start it again; a start can fail, too, while the program is replaced.

        Returns:
            The process, None if a stop was asked for; and the failures in a row.
        """
        while True:
            failures += 1
            await self._pause(how, failures)
            if self._stop_asked.done():
                return None, failures
            try:
                return self._start(), failures
            except OSError as error:
                how = error.strerror or str(error)

    def _start(self) -> ToolProcess:
        child = ToolProcess(self._launch)
        self._health, self._was_ready = None, False
        self._tell(Happened("started", f"The tool was started (process {child.pid}).", {"pid": child.pid}))
        return child

    async def _until_ended_or_stop(self, child: ToolProcess) -> None:
        ended = asyncio.create_task(child.wait_ended())
        watching = asyncio.create_task(watch_health(self._launch.port, self._health_changed))
        try:
            any_of: set[asyncio.Future[Any]] = {ended, self._stop_asked, watching}
            await asyncio.wait(any_of, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            watching.cancel()
        if watching.done():
            watching.result()

    async def _pause(self, how: str, failures: int) -> None:
        if failures >= FAILURES_MAX:
            text = f"The tool ended ({how}), and is not started again."
            self._tell(Happened("ended", text, {"cause": how, "restart_in_seconds": None}))
            raise ToolFailedError(
                f"The tool ended {failures} times soon after its start (at last: {how}) and is not started again: "
                "read what it printed."
            )
        delay_s = restart_delay_s(failures)
        when = f"in {delay_s:.1f} s" if delay_s >= 0.05 else "at once"
        text = f"The tool ended ({how}); starting it again {when}."
        self._tell(Happened("ended", text, {"cause": how, "restart_in_seconds": delay_s}))
        await asyncio.wait({self._stop_asked}, timeout=delay_s)

    async def _stop(self, child: ToolProcess, number: int) -> None:
        name = signal.Signals(number).name
        self._tell(Happened("stopping", f"{name} is passed on to the tool.", {"signal": name}))
        if not await child.stop(number, self._stop_grace_s):
            self._tell(Happened("killed", f"The tool did not end in {self._stop_grace_s:g} s and is killed."))
        code = child.collect()
        self._tell(Happened("stopped", f"The tool is stopped ({describe_exit(code)}).", {"exit_code": code}))

    def _ask_stop(self, number: int) -> None:
        with suppress(asyncio.InvalidStateError):
            self._stop_asked.set_result(number)

    def _health_changed(self, state: str) -> None:
        before, self._health = self._health, state
        if state == SERVING and not self._was_ready:
            self._was_ready = True
            port = self._launch.port
            self._tell(Happened("ready", f"The tool is ready: port {port} says SERVING.", {"port": port}))
        elif state != NO_ANSWER or before is not None:
            text = f"The tool's health is {state}" + ("." if before is None else f", after {before}.")
            self._tell(Happened("health", text, {"health": state, "before": before}))

"""Deciders as processes: started, stopped, killed at any await, paused past their session and woken again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from log.errors import LogError, MemberReplaced
from log.memory.log import MemoryLog
from schemas.envelope import Signer, Verifier
from schemas.ids import derived_id
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.assembly import Assembly
from services.runtime.definitions_book import DefinitionsBook
from services.runtime.worker import Worker
from tests.simulation.faults import Faults
from tests.simulation.process import Process, ProcessLog

SESSION_S = 6.0
# Where the code that runs now runs.
RUNS_ON: ContextVar[Machine | None] = ContextVar("RUNS_ON", default=None)


@dataclass
class Life:
    """What a supervisor was asked to keep running, and what runs now."""

    wanted: bool = True
    process: Process | None = None
    worker: Worker | None = None
    task: asyncio.Task[None] | None = None


@dataclass
class Machine:
    """Where a decider runs: its supervisor starts a new process whenever one ended without being asked to."""

    name: str
    member: str
    log: MemoryLog
    faults: Faults
    rng: random.Random
    verifier: Callable[[], Verifier]
    signer: Signer
    partitions: int
    clock_ahead_ms: int
    now_ms: Callable[[], int]
    happened: Counter[str]
    life: Life | None = None
    incarnations: int = 0
    _ending: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def worker(self) -> Worker | None:
        """The decider that runs here now."""
        return None if self.life is None else self.life.worker

    def start(self) -> None:
        """Let a decider run here from now on."""
        if self.life is None:
            self.life = life = Life()
            life.task = asyncio.create_task(self._supervise(life), name=self.name)

    def stop(self) -> None:
        """Ask it to end (SIGTERM); it says good-bye to the group."""
        life = self._let_go()
        if life is not None and life.worker is not None:
            life.worker.stop()

    def kill(self) -> None:
        """End it at once, wherever it is (SIGKILL). The group notices when its session is over."""
        life = self._let_go()
        if life is None or life.process is None or life.task is None:
            return
        self.happened["killed"] += 1
        life.process.dead = True
        life.process.awake.set()
        life.task.cancel()
        asyncio.get_running_loop().call_later(SESSION_S, _expel, life.process)

    def crash(self) -> None:
        """Kill it, and let its supervisor start it again."""
        self.kill()
        asyncio.get_running_loop().call_later(self.rng.uniform(0.2, 3.0), self.start)

    def pause(self) -> None:
        """Let it do nothing (SIGSTOP). Past its session, the group gives its partitions to others."""
        process = None if self.life is None else self.life.process
        if process is not None and process.awake.is_set():
            process.awake.clear()
            self.happened["paused"] += 1
            asyncio.get_running_loop().call_later(SESSION_S, self._expel_if_still, process)

    def resume(self) -> None:
        """Let it go on (SIGCONT): it still believes what it believed, until it hears of the group."""
        process = None if self.life is None else self.life.process
        if process is not None and not process.awake.is_set():
            process.awake.set()
            asyncio.get_running_loop().call_later(self.rng.uniform(0.01, 5.0), _rejoin, process)

    async def end(self) -> None:
        """Kill it, and wait until nothing of it runs any more."""
        self.kill()
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _let_go(self) -> Life | None:
        self.resume()
        life, self.life = self.life, None
        if life is not None and life.task is not None:
            life.wanted = False
            self._ending.append(life.task)
        return life

    def _expel_if_still(self, process: Process) -> None:
        if not process.awake.is_set():
            self.happened["expelled"] += 1
            _expel(process)

    async def _supervise(self, life: Life) -> None:
        RUNS_ON.set(self)
        while life.wanted:
            self.incarnations += 1
            life.process = process = Process(f"{self.name}.{self.incarnations}")
            try:
                await self._run(life, process)
            except LogError as error:
                self.happened["replaced" if isinstance(error, MemberReplaced) else "restarted"] += 1
                _expel(process)
            finally:
                life.worker = None
            if life.wanted:
                await asyncio.sleep(self.rng.uniform(0.5, 3.0))

    async def _run(self, life: Life, process: Process) -> None:
        log = ProcessLog(self.log, process, self.faults)
        empty = Definitions(policies=PolicySet())
        book = DefinitionsBook(log, empty)
        await book.load()
        assembly = Assembly(
            log=log,
            verifier=self.verifier(),
            book=book,
            empty=empty,
            worker_id=process.name,
            partitions=self.partitions,
            fresh_id=lambda: derived_id(process.name, self.rng.random()),
            local_ms=lambda: self.now_ms() + self.clock_ahead_ms,
            signer=self.signer,
        )
        worker = Worker(log, process.name, assembly.build, self.rng.random, self.member)
        book.listeners.add(worker.wake)
        if life.wanted:
            life.worker = worker
            await _together(worker, book)


async def _together(worker: Worker, book: DefinitionsBook) -> None:
    work = asyncio.create_task(worker.run(), name=f"{worker.worker_id} work")
    follow = asyncio.create_task(book.follow(), name=f"{worker.worker_id} definitions")
    try:
        await asyncio.wait([work, follow], return_when=asyncio.FIRST_COMPLETED)
        if follow.done():
            follow.result()
        await work
    finally:
        work.cancel()
        follow.cancel()
        await asyncio.gather(work, follow, return_exceptions=True)


def _expel(process: Process) -> None:
    """What the group does when a member's session is over: the member itself hears nothing of it."""
    feed = process.feed
    if feed is not None:
        feed._group.leave(feed)


def _rejoin(process: Process) -> None:
    feed = process.feed
    if feed is None or feed._closed or process.dead or feed in feed._group._members:
        return
    if any(other.name == feed.name for other in feed._group._members):
        feed.replaced()
        return
    # What it held when it was expelled is not its any more; it sees the change only if it gets something else.
    feed.assigned = frozenset()
    feed._group.join(feed)

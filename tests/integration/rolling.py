"""Clients that never stop asking, of several gateways, while the processes behind them are restarted."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from placet import Placet
from placet.sync import RunningExecution
from tests.integration.doors import Caller, Tenant
from tests.servers.stack import wait_for

GIVE_UP_S = 30.0
AGAIN_AFTER_S = 0.1
PAUSE_S = 0.2
# What the documents name as passing: ask again under the same key.
PASSING = (429, 503)
PENDING = ("proposed", "held")


@dataclass
class Told:
    """What the clients have lived through.

    Attributes:
        done: (execution, call) of each call that was run and reported, once each.
        wrong: answers that no document names as passing.
        passing: broken connections, 429 and 503, after which the same was asked again.
        longest_s: how long the slowest request took, with all its repeats.
    """

    done: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    longest_s: float = 0.0


@dataclass
class Clients:
    """Agents and a reviewer of one tenant, each a thread, as long as the block lasts."""

    tenant: Tenant
    urls: list[str]
    told: Told = field(default_factory=Told)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Clients:
        # Made here: a token's file is locked while it is issued, and threads need not share that.
        tokens = self.tenant.bot.token, self.tenant.rita.token
        for run in (self._of_several_gateways, self._of_several_gateways, self._of_one_gateway):
            thread = threading.Thread(target=self._until_stopped, args=(run, *tokens))
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * GIVE_UP_S)

    def made_progress(self) -> Callable[[], bool]:
        """Whether calls have been made, from their beginning to their end, since this was called."""
        begun = len(self.told.done)
        return lambda: len(self.told.done) > begun + 2 * len(self._threads)

    def _until_stopped(self, run: Callable[[str, str], None], bot: str, rita: str) -> None:
        while not self._stop.wait(PAUSE_S):
            try:
                run(bot, rita)
            except Exception as error:  # a client that fails is what the test is about
                self.told.wrong.append(f"{type(error).__name__}: {error}")
                return

    def _of_several_gateways(self, bot: str, rita: str) -> None:
        """A payment: held, approved, consumed and reported, each request at the next gateway."""
        run_id, asker = f"roll-{uuid.uuid4().hex[:8]}", Asker(self.urls, self.told)
        with asker.client:
            asker.post("/executions", bot, {"execution_id": run_id, "agent": "bot"})
            calls = f"/executions/{run_id}/tool-calls"
            call = asker.post(calls, bot, {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}})
            while call["status"] == "proposed":
                call = asker.get(f"{calls}/c1?wait=5", bot)
            word = {"decision": "approve", "digest": call["digest"]}
            asker.post(f"/holds/{call['hold_id']}/decision", rita, word)
            while call["status"] in PENDING:
                call = asker.get(f"{calls}/c1?wait=5", bot)
            attempt = {"attempt_id": uuid.uuid4().hex}
            asker.post(f"{calls}/c1/consume", bot, {**attempt, "digest": call["digest"]})
            asker.post(f"{calls}/c1/result", bot, {**attempt, "outcome": "succeeded", "output": "paid"})
            asker.post(f"/executions/{run_id}/complete", bot, {})
        self.told.done.append((run_id, "c1"))

    def _of_one_gateway(self, bot: str, _: str) -> None:
        """A read through the client library, which knows the first gateway only."""
        with Placet(self.urls[0], token=bot, agent="bot") as placet, placet.execution() as run:
            call_id = f"read-{uuid.uuid4().hex[:8]}"

            @run.gated(call_id=call_id)
            def read_file() -> None:
                self.told.done.append((run.id, call_id))

            read_file()


@dataclass
class Asker:
    """One client's requests: each at the next gateway, and again under its key until it is answered."""

    urls: list[str]
    told: Told
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=10))
    _turn: itertools.count[int] = field(default_factory=itertools.count)
    _cursor: str = ""

    def post(self, path: str, token: str, body: dict[str, Any]) -> Any:
        """Write, and remember up to where that is to be seen."""
        return self._ask("POST", path, token, json=body)

    def get(self, path: str, token: str) -> Any:
        """Read, no older than what was written."""
        separator = "&" if "?" in path else "?"
        return self._ask("GET", f"{path}{separator}after={self._cursor}" if self._cursor else path, token)

    def _ask(self, method: str, path: str, token: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": uuid.uuid4().hex}
        begun = time.monotonic()
        while time.monotonic() - begun < GIVE_UP_S:
            url = self.urls[next(self._turn) % len(self.urls)]
            try:
                answer = self.client.request(method, f"{url}/v1{path}", headers=headers, **more)
            except httpx.TransportError as error:
                self.told.passing.append(type(error).__name__)
            else:
                if answer.is_success:
                    self.told.longest_s = max(self.told.longest_s, time.monotonic() - begun)
                    self._cursor = answer.json().get("cursor") or self._cursor
                    return answer.json()
                if answer.status_code not in PASSING:
                    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
                self.told.passing.append(str(answer.status_code))
            time.sleep(AGAIN_AFTER_S)
        raise AssertionError(f"{method} {path}: not answered within {GIVE_UP_S} s")


@contextmanager
def waiting_for_people(tenant: Tenant, url: str) -> Iterator[dict[str, Any]]:
    """Agents of one gateway, over REST, that wait for a person from the beginning of the block to its end.

    What is yielded has, after the block, what came back: `paid` of a held call, `answer` of a question.
    """
    found: dict[str, Any] = {}
    bot, rita = tenant.bot.token, tenant.rita

    def pay(run: RunningExecution) -> None:
        @run.gated(call_id="c1")
        def send_money(amount: float) -> str:
            return f"paid {amount}"

        found["paid"] = send_money(5)

    def ask(run: RunningExecution) -> None:
        found["answer"] = run.ask("Which account?").response

    def in_a_run(work: Callable[[RunningExecution], None]) -> None:
        with Placet(url, token=bot, agent="bot", transport="rest") as placet, placet.execution() as run:
            work(run)

    with ThreadPoolExecutor() as threads:
        running = [threads.submit(in_a_run, work) for work in (pay, ask)]
        holds = wait_for(lambda: _waiting(rita), lambda items: len(items) == len(running))
        yield found
        for hold in holds:
            approval = {"decision": "approve", "digest": hold["digest"]}
            word = approval if hold["call_id"] else {"decision": "respond", "value": "GB29"}
            assert rita.post(f"/holds/{hold['hold_id']}/decision", word).status_code == 200
        for each in running:
            each.result(GIVE_UP_S)


def _waiting(rita: Caller) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = rita.get("/holds?status=open").json()["items"]
    return items

"""Workers of conversations: they take turns on, reply, ask, run calls, give turns back, and are lost in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas import commands as k
from schemas import conversation_commands as t
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.ids import derived_id
from schemas.message import Message
from schemas.record import Event
from tests.simulation.agents import AGENT, RIVAL, Agent
from tests.simulation.definitions import UNPUBLISHED
from tests.simulation.turns_seen import ConversationSeen, TurnSeen

# Calls that people who are slow let wait for less time than a world has to come to its rest.
TOOLS = ("read_file", "send_money", "move_stock", "halt_plant", "retry_mail", UNPUBLISHED)
QUESTION_MS = 15_000
# A permission is granted by nobody who wrote to the agent before it was asked.
KINDS: tuple[k.RequestKind, ...] = ("clarification", "permission")
# With leases as short as a world's: one renewal that is early, some that are due, and some that come too late.
RENEWS_AFTER_S = (0.5, 7.0, 7.0, 11.5)
OVERSLEEPS_S = (11.0, 20.0)


@dataclass
class TurnWorker:
    """One process that looks for turns in a conversation; `agent` is that, as this process reaches it."""

    actor: Actor
    agent: Agent
    rng: random.Random
    calm: asyncio.Event

    async def run(self) -> None:
        """Take on a turn now and then, for ever."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.3, 3.0))
            seen = self.agent.conversation
            if seen.waits_for_a_worker() and seen.turns[seen.open[0]].state == "waiting":
                await self._take_on(seen.open[0])
            elif seen.turns and not self.calm.is_set() and self.rng.random() < 0.03:
                # It has not looked well: the turn is another worker's, waits for a person, is not next, or has ended.
                await self._take_on(self.rng.choice(list(seen.turns)))

    async def _take_on(self, turn_id: str) -> None:
        attempt_id = derived_id("turn", self.actor.subject, self.rng.random())
        if not self.calm.is_set() and self.rng.random() < 0.05:
            # Everybody can read off which attempt had the turn last.
            attempt_id = self.agent.conversation.turns[turn_id].attempt_id or attempt_id
        attempt = Attempt(self.agent, self.actor, turn_id, attempt_id, self.rng, self.calm)
        trace = await attempt.ask(t.ClaimTurn(turn_id=turn_id, attempt_id=attempt_id))
        if not _is_given(trace, attempt_id):
            return
        if self.calm.is_set() or self.rng.random() > 0.08:
            await attempt.work()


@dataclass
class Attempt:
    """One attempt at a turn."""

    agent: Agent
    actor: Actor
    turn_id: str
    attempt_id: str
    rng: random.Random
    calm: asyncio.Event

    @property
    def seen(self) -> ConversationSeen:
        """The conversation as this worker's gateway has seen it."""
        return self.agent.conversation

    @property
    def turn(self) -> TurnSeen:
        """The turn as this worker's gateway has seen it."""
        return self.seen.turns[self.turn_id]

    async def work(self) -> None:
        """Do some of what agents do in a turn, and end it, unless it is given back or its worker is lost."""
        steps: list[Callable[[], Awaitable[bool]]] = [
            self._reply,
            self._reply,
            self._renew,
            self._renew,
            self._oversleep,
            self._question,
            self._question,
            self._call,
            self._call,
            self._stop,
        ]
        for _ in range(self.rng.randint(0, 4)):
            if self.calm.is_set():
                break
            if not await self.rng.choice(steps)():
                return
        if not self.calm.is_set() and self.rng.random() < 0.08:
            return
        await self.end("completed" if self.rng.random() < 0.8 else "failed")
        if self.rng.random() < 0.1:
            await self.end("completed")
        if self.rng.random() < 0.05:
            await self.ask(k.CompleteExecution())

    async def end(self, outcome: t.TurnOutcome) -> None:
        """End the turn, with a last reply or without one."""
        reply = "that is all" if outcome == "completed" and self.rng.random() < 0.7 else ""
        body = t.EndTurn(turn_id=self.turn_id, attempt_id=self.attempt_id, outcome=outcome, reply=reply)
        await self.ask(body)

    async def ask(self, body: Message, actor: Actor | None = None) -> list[Event]:
        """Ask in the worker's name, or in another one's."""
        return await self.agent.ask(body, actor or self.actor)

    async def _reply(self) -> bool:
        body = t.PostReply(
            turn_id=self.turn_id,
            attempt_id=self.attempt_id,
            number=self.turn.replies + 1,
            text=self.rng.choice(("well", "so", "now")),
        )
        chance = self.rng.random()
        if chance < 0.1:
            body = body.model_copy(update={"number": body.number + self.rng.choice((1, 2))})
        elif chance < 0.2:
            # The attempt's id is no secret: another account of the agent tries to speak for it.
            await self.ask(body, RIVAL if self.actor == AGENT else AGENT)
        await self.ask(body)
        if chance > 0.8:
            await self.ask(body.model_copy(update={"text": self.rng.choice((body.text, "else"))}))
        return True

    async def _renew(self) -> bool:
        await asyncio.sleep(self.rng.choice(RENEWS_AFTER_S))
        await self.ask(t.RenewTurn(turn_id=self.turn_id, attempt_id=self.attempt_id))
        return True

    async def _oversleep(self) -> bool:
        """Work on past the lease: whatever is said then must not count."""
        await asyncio.sleep(self.rng.uniform(*OVERSLEEPS_S))
        return await self._reply()

    async def _stop(self) -> bool:
        await self._give_back("")
        return False

    async def _give_back(self, hold_id: str) -> None:
        await self.ask(t.YieldTurn(turn_id=self.turn_id, attempt_id=self.attempt_id, hold_id=hold_id))

    async def _question(self) -> bool:
        """Ask what a later attempt asks in the same words, and wait for the answer without a worker."""
        request_id = f"{self.turn_id}.question"
        kind = KINDS[sum(self.turn_id.encode()) % len(KINDS)]
        body = k.RequestHumanInput(
            request_id=request_id, kind=kind, question="which one?", timeout_ms=QUESTION_MS
        )
        await self.ask(body)
        return await self._wait_for(request_id)

    async def _call(self) -> bool:
        """Propose what a later attempt proposes in the same words, and run it as soon as it may."""
        call_id = f"{self.turn_id}.call"
        tool = TOOLS[sum(call_id.encode()) % len(TOOLS)]
        arguments = canonical({"amount": 7, "to": "turn"})
        await self.ask(k.ProposeToolCall(call_id=call_id, tool=tool, arguments=arguments))
        call = self.agent.gateway.seen(self.agent.key, call_id)
        if call.last == "ToolCallReleased":
            await self.agent.attempt(call_id)
            return True
        return await self._wait_for(call_id)

    async def _wait_for(self, name: str) -> bool:
        """Give the turn back until the hold has ended; where it had ended before, now and then all the same."""
        hold_id = self.seen.holds.get(name, "")
        if self.rng.random() < 0.05:
            hold_id = self.rng.choice((*self.seen.holds.values(), "nobody's"))
        if hold_id not in self.seen.open_holds and self.rng.random() < 0.8:
            return True
        if self.rng.random() < 0.4:
            # The answer may come before the turn is given back.
            await asyncio.sleep(self.rng.uniform(0.0, 9.0))
        await self._give_back(hold_id)
        return False


def _is_given(trace: Sequence[Event], attempt_id: str) -> bool:
    """Whether an answer gives an attempt the turn."""
    bodies: list[Any] = [event.body for event in trace if event.type == "TurnClaimed"]
    return any(body.attempt_id == attempt_id for body in bodies)

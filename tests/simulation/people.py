"""People: reviewers who race, come late, look at old arguments; an operator who steers and publishes."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

from log.errors import LogUnreachable
from log.places import TopicPartition
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.envelope import Draft
from schemas.ids import definition_key, derived_id
from schemas.message import Message
from schemas.record import Event
from tests.simulation.definitions import (
    BOTH_ACCOUNTS,
    NEIGHBOUR,
    OLDER,
    OPERATOR,
    PROJECT,
    REMEMBERED,
    ROOT,
    SHARED,
    TENANT,
    TENANTS_OPERATOR,
    policy,
    some_change,
    tool,
)
from tests.simulation.gateway import Gateway

RITA = Actor(subject="rita", tenant=TENANT, project=PROJECT, roles=("reviewer",))
TESS = Actor(subject="tess", tenant=TENANT, project=PROJECT, roles=("treasurer", "reviewer"))
# The same person by an older account.
TESS_AGAIN = Actor(subject=OLDER, tenant=TENANT, project=PROJECT, roles=("treasurer", "reviewer"))
REVIEWERS = (RITA, TESS, TESS_AGAIN, OPERATOR)


@dataclass
class Reviewer:
    """One person in front of an inbox."""

    actor: Actor
    gateway: Gateway
    rng: random.Random
    names: bool = False
    asked: int = 0
    given_up: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Look at the inbox now and then, for ever."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 6.0))
            waiting = [h for h in self.gateway.holds.values() if h.body.hold_id not in self.given_up]  # type: ignore[attr-defined]
            if waiting:
                await self._consider(self.rng.choice(waiting))

    async def _consider(self, opened: Event) -> None:
        hold: Any = opened.body
        await asyncio.sleep(self._pondering_s(hold))
        if self.rng.random() < 0.1:
            await self._ask(
                opened.key, self.rng.choice((k.ClaimHold(hold_id=hold.hold_id), self._delegation(hold)))
            )
        command = self._decision(hold)
        trace = await self._ask(opened.key, command, hold_id=hold.hold_id, digest=command.digest)
        if any(event.type == "DecisionRefused" for event in trace) and self.rng.random() < 0.7:
            self.given_up.add(hold.hold_id)

    def _pondering_s(self, hold: Any) -> float:
        """How long somebody thinks; some decide only when it is about to be too late, or is."""
        if hold.deadline_at_ms is None or self.rng.random() < 0.75:
            return self.rng.choice((0.0, 0.5, 3.0, 20.0))
        left_s: float = (hold.deadline_at_ms - self.gateway.history.now_ms()) / 1000
        return max(0.0, left_s + self.rng.uniform(-1.0, 2.0))

    def _decision(self, hold: Any) -> k.DecideHold:
        digest = hold.digest
        if self.rng.random() < 0.15:
            # What was on the screen a while ago.
            digest = self.rng.choice([*self.gateway.old_digests[-10:], "0" * 64])
        shared = SHARED in hold.question
        kind = self.rng.choice(("approve", "approve", "approve", "edit", "reject", "respond"))
        if shared and kind == "respond":
            kind = "approve"
        if hold.request_id and kind != "reject":
            # A question takes nothing but its answer.
            kind = "respond"
        edited = canonical({"amount": self.rng.randint(1, 99)}) if kind == "edit" else None
        value = None
        if kind == "respond":
            value = "true" if hold.request_id and hold.kind == "permission" else '"so be it"'
        scope, remember = ("once", None)
        fits = any(name in hold.question for name in REMEMBERED)
        if kind == "approve" and self.rng.random() < (0.8 if fits else 0.05):
            scope, remember = self._remembering(shared)
        return k.DecideHold(
            hold_id=hold.hold_id,
            decision=kind,
            digest=digest,
            edited_arguments=edited,
            value=value,
            scope=scope,
            remember=remember,
        )

    def _remembering(self, shared: bool) -> tuple[k.Scope, str]:
        """For which calls like it an approval is to count: any of the run, or of all runs with few uses or none.

        Of two who have to agree, one sometimes asks for more than the other.
        """
        tests = {"amount": {"at_most": 90}, "to": {"any": True}}
        if shared:
            tests["amount"] = {"at_most": self.rng.choice((90, 90, 90, 90, 99))}
            return self.rng.choice(("execution", "execution", "rule")), canonical({"arguments": tests})
        if self.rng.random() < 0.2:
            return "execution", canonical({"arguments": tests})
        uses = self.rng.choice((1, 4, 6, None))
        return "rule", canonical({"arguments": tests, "uses": uses})

    def _delegation(self, hold: Any) -> k.DelegateHold:
        return k.DelegateHold(hold_id=hold.hold_id, to=OLDER if self.names and self.asked % 2 else "rita")

    async def _ask(self, key: bytes, body: Message, **noted: Any) -> list[Event]:
        self.asked += 1
        command_id = derived_id("ask", self.actor.subject, self.asked, self.rng.random())
        return await self.gateway.ask(self.actor.subject, key, body, self.actor, command_id, **noted)


@dataclass
class Operator:
    """Publishes definitions, and pauses, resumes, revokes and cancels; in the end reports harm."""

    gateway: Gateway
    rng: random.Random
    four_eyes: bool = False
    names: bool = False
    published: int = 0

    async def publish_basics(self, *more: str) -> None:
        """What the world begins with, and some more tools."""
        for name in (
            "read_file",
            "drop_table",
            "send_money",
            "move_stock",
            "halt_plant",
            "retry_mail",
            SHARED,
        ):
            await self._publish("tool", tool(name))
        await self._publish("policy", policy(1, self.four_eyes, self.names))
        await self._publish("principal", BOTH_ACCOUNTS)
        await self._publish_next_door()

    async def run(self, keys: list[bytes]) -> None:
        """Interfere now and then, for ever."""
        while True:
            await asyncio.sleep(self.rng.uniform(5.0, 25.0))
            if self.rng.random() < 0.5:
                await self._publish(*some_change(self.rng, self.four_eyes, self.names))
            else:
                await self._steer(self.rng.choice(keys))

    async def resume_all(self, keys: list[bytes]) -> None:
        """Let every paused run go on."""
        for key in keys:
            await self._ask(key, k.ResumeExecution())

    async def report_all(self, keys: list[bytes]) -> None:
        """Report the first call of every run, whether it has run or not."""
        for key in keys:
            await self._ask(key, k.ReportImpact(call_id="c0", reason="it did harm"))

    async def _steer(self, key: bytes) -> None:
        choice = self.rng.random()
        if choice < 0.4:
            await self._ask(key, k.PauseExecution())
            await asyncio.sleep(self.rng.uniform(0.0, 8.0))
            await self._ask(key, k.ResumeExecution())
        elif choice < 0.8:
            await self._ask(key, k.RevokeGrant(call_id="c0"))
        else:
            await self._ask(key, k.CancelExecution())

    async def _ask(self, key: bytes, body: Message) -> None:
        self.published += 1
        command_id = derived_id("operator", self.published)
        await self.gateway.ask("olga", key, body, OPERATOR, command_id)

    async def _publish_next_door(self) -> None:
        """Let another project allow everything, and give its own people roles: nothing of it counts here."""
        every = {"id": "all", "then": "allow"}
        await self._publish(
            "policy", {"policy": "open", "scope": {"agent": "bot"}, "rules": [every]}, NEIGHBOUR
        )
        await self._publish("tool", tool("move_stock", 7), NEIGHBOUR)
        taken = {"principal": "anybody", "subjects": ["rita", "tess"], "roles": [], "disabled": True}
        await self._publish("principal", taken, NEIGHBOUR)

    async def _publish(self, kind: str, document: dict[str, Any], by: Actor | None = None) -> None:
        self.published += 1
        body = _publishing(kind, document)
        # Tools are the tenant's, the policy is the project's: a call looks for both in both.
        actor = by or {"principal": ROOT, "tool": TENANTS_OPERATOR}.get(kind, OPERATOR)
        command_id = derived_id("publish", self.published)
        draft = Draft(body, actor, command_id, definition_key(TENANT, kind, body.name, actor.project))
        tp = TopicPartition(self.gateway.reached.topics.definition_commands, 0)
        for _ in range(3):
            try:
                await self.gateway.reached.send(tp, self.gateway.signer.sign([draft])[0])
            except LogUnreachable:
                await asyncio.sleep(0.5)
            else:
                return


def _publishing(kind: str, document: dict[str, Any]) -> k.PublishPolicy | k.PublishPrincipal | k.PublishTool:
    text = json.dumps(document)
    match kind:
        case "policy":
            return k.PublishPolicy(name=document["policy"], document=text)
        case "principal":
            return k.PublishPrincipal(name=document["principal"], document=text)
    return k.PublishTool(name=document["name"], definition=text)

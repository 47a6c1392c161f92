"""Runs that the decider's own code decided, as the API tells their events."""

from __future__ import annotations

import json
from typing import Any

from ops.fork.recorded import Run, read_run
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from tests.domain.steps import consumed, decided, reported
from tests.domain.world import RITA, World, the

EXECUTION = "x"


class Story:
    """One run of the agent bot, step by step."""

    def __init__(self, request: str = "Pay the March invoice", **world: Any) -> None:
        self.world = World(**world)
        self.world.ask(k.StartExecution(agent="bot", request=request))

    def propose(self, call_id: str, tool: str, **arguments: Any) -> Any:
        """Propose a call; the hold that it opened, or None."""
        body = k.ProposeToolCall(call_id=call_id, tool=tool, arguments=canonical(arguments))
        bodies = self.world.ask(body)
        return next((one for one in bodies if type(one).__name__ == "HoldOpened"), None)

    def decide(self, hold: Any, decision: str, by: Actor = RITA, **content: Any) -> Any:
        """Decide a hold; the decision that was recorded."""
        return the(decided(self.world, hold, decision, by, **content), "DecisionRecorded")

    def run(self, call_id: str, output: Any = None, error: str = "") -> None:
        """Consume a released call and report what it returned."""
        digest = self.world.state().calls[call_id].digest
        consumed(self.world, digest, f"a-{call_id}", call_id)
        outcome = {"error": error} if error else {"output": canonical(output)}
        reported(self.world, "failed" if error else "succeeded", f"a-{call_id}", call_id, **outcome)

    def paid(self, call_id: str, output: Any, decision: str = "approve", **arguments: Any) -> Any:
        """A payment that a person let run: the decision."""
        recorded = self.decide(self.propose(call_id, "pay", **(arguments or {"amount": 5})), decision)
        self.run(call_id, output)
        return recorded

    def ask(self, request_id: str, answer: Any, kind: str = "clarification") -> Any:
        """A question, and its answer: the decision."""
        asked = k.RequestHumanInput(request_id=request_id, kind=kind, question="Which account?")
        hold = the(self.world.ask(asked), "HoldOpened")
        bodies = self.world.ask(
            k.DecideHold(hold_id=hold.hold_id, decision="respond", digest="", value=canonical(answer)), RITA
        )
        return the(bodies, "DecisionRecorded")

    def expire(self, hold: Any) -> None:
        """Let a hold's time pass."""
        self.world.now_ms = hold.deadline_at_ms
        self.world.ask(k.ExpireDue(subject_id=hold.hold_id, deadline_at_ms=hold.deadline_at_ms, attempt=1))

    def items(self) -> list[dict[str, Any]]:
        """The events as the API returns them."""
        return [
            {
                "event_id": event.meta.event_id,
                "version": event.meta.version,
                "type": event.type,
                "data": json.loads(event.body.model_dump_json()),
            }
            for event in self.world.events
        ]

    def read(self) -> Run:
        """The run, as a fork reads it."""
        return read_run(EXECUTION, self.items())

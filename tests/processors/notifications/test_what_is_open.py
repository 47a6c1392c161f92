"""Whatever anybody does in a run: what the facts keep is what the decider has as open, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings

from schemas.events.executions import ExecutionStarted
from services.domain.execution.evolve import evolve, start
from services.domain.state import TERMINAL_CALLS, Execution
from services.processors.notifications.facts import Facts
from services.processors.notifications.notice import Call, Hold, Source
from tests.domain import test_machine


@dataclass
class Kept:
    """What is kept of one run, in memory."""

    agent: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)

    def agent_of(self, key: bytes) -> str:
        return self.agent

    def start(self, key: bytes, agent: str) -> None:
        self.agent = agent

    def end(self, key: bytes) -> None:
        self.agent = ""

    def call(self, key: bytes, call_id: str) -> Call | None:
        return self.calls.get(call_id)

    def put_call(self, key: bytes, call_id: str, call: Call) -> None:
        self.calls[call_id] = call

    def drop_call(self, key: bytes, call_id: str) -> None:
        self.calls.pop(call_id, None)

    def hold(self, key: bytes, hold_id: str) -> Hold | None:
        return self.holds.get(hold_id)

    def put_hold(self, key: bytes, hold_id: str, hold: Hold) -> None:
        self.holds[hold_id] = hold

    def drop_hold(self, key: bytes, hold_id: str) -> None:
        self.holds.pop(hold_id, None)


class Followed(test_machine.Machine):
    """Runs as the decider's own tests make them, followed by what tells people of them."""

    def teardown(self) -> None:
        kept, state = Kept(), None
        facts = Facts(kept)
        events = self.world.events
        for index, event in enumerate(events):
            notice = facts.follow(event, Source(0, event.offset, 0, event.key, ""))
            assert notice is None or notice.hold.agent == "bot"
            if isinstance(event.body, ExecutionStarted):
                state = start(("acme", "main", "x"), event.body)
            assert state is not None
            state = evolve(state, event.body, event.meta.at_ms)
            if index + 1 == len(events) or events[index + 1].meta.command_id != event.meta.command_id:
                check_kept(kept, state)


def check_kept(kept: Kept, state: Execution) -> None:
    """After each command."""
    assert kept.calls.keys() == {
        call.call_id for call in state.calls.values() if call.status not in TERMINAL_CALLS
    }
    assert kept.holds.keys() == {hold.hold_id for hold in state.holds.values() if hold.status == "open"}
    assert bool(kept.agent) == (not state.closed)


TestFollowed = Followed.TestCase
TestFollowed.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)

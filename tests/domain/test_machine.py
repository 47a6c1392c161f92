"""Any sequence of commands by anybody, with time passing and definitions changing: what must hold holds.

A hypothesis state machine drives the pure decider; its own small model knows only what people did.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from schemas import commands as k
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from services.domain.execution.evolve import evolve, start
from services.domain.state import TERMINAL_CALLS, Call
from services.runtime.executions_partition import ExecutionsPartition
from tests.actions.handling import HANDLING, said
from tests.domain.world import ANNA, BOT, CLARA, OLGA, OTHER_BOT, RITA, RULES, TOOLS, World, published
from tests.domain.world import rule as policy_rule

TOOL = st.sampled_from([tool["name"] for tool in TOOLS] + ["unknown"])
SELDOM = st.sampled_from([False] * 7 + [True])
STEERING = st.sampled_from([k.PauseExecution(), k.ResumeExecution(), k.CancelExecution()])
ATTEMPT = st.sampled_from(["a", "b"])
AMOUNT = st.sampled_from(["5", "7", "2000"])
PEOPLE = st.sampled_from([RITA, CLARA, OLGA, ANNA])
ANYBODY = st.sampled_from([BOT, OTHER_BOT, RITA, CLARA, OLGA, ANNA])
# Mostly the one who may: a run in which everything is refused shows little.
MOSTLY_BOT = st.sampled_from([BOT] * 9 + [OTHER_BOT])
MOSTLY_PEOPLE = st.sampled_from([RITA, RITA, CLARA, CLARA, OLGA, ANNA, BOT])


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.last: tuple[Message, Any, str] | None = None
        self.proposed = 0
        self.stopped_by_people = False
        self.effects: dict[str, list[c.GrantConsumed]] = {}

    def ask(self, body: Message, actor: Any) -> list[Message]:
        said = self.world.ask(body, actor)
        self.last = (body, actor, f"command-{self.world.asked}")
        for event in said:
            if isinstance(event, c.GrantConsumed):
                self.effects.setdefault(event.call_id, []).append(event)
        return said

    def holds(self, data: st.DataObject) -> list[str]:
        """Mostly the open ones."""
        holds = self.world.state().holds
        keep_ended = data.draw(SELDOM)
        return sorted(name for name, hold in holds.items() if keep_ended or hold.status == "open")

    def a_call(self, data: st.DataObject, status: str) -> Call | None:
        """Mostly one in the status that matters."""
        calls = self.world.state().calls
        any_status = data.draw(SELDOM)
        names = sorted(name for name, call in calls.items() if any_status or call.status == status)
        return calls[data.draw(st.sampled_from(names))] if names else None

    @initialize()
    def begin(self) -> None:
        self.ask(k.StartExecution(agent="bot"), BOT)

    @rule(tool=TOOL, amount=AMOUNT, actor=MOSTLY_BOT, reuse=SELDOM)
    def propose(self, tool: str, amount: str, actor: Any, reuse: bool) -> None:
        self.proposed += not reuse
        command = k.ProposeToolCall(
            call_id=f"c{self.proposed}", tool=tool, arguments=f'{{"amount":{amount}}}'
        )
        assert self.ask(command, actor), "a command always leaves a trace"

    @rule(
        data=st.data(),
        actor=MOSTLY_PEOPLE,
        decision=st.sampled_from(["approve", "edit", "reject", "respond"]),
    )
    def decide(self, data: st.DataObject, actor: Any, decision: Any) -> None:
        holds = self.holds(data)
        if not holds:
            return
        hold = self.world.state().holds[data.draw(st.sampled_from(holds))]
        call = self.world.state().calls.get(hold.call_id)
        requesters = call.requesters if call else ()
        stale = data.draw(SELDOM)
        command = k.DecideHold(
            hold_id=hold.hold_id,
            decision=decision,
            digest="0" * 64 if stale else hold.digest,
            edited_arguments=f'{{"amount":{data.draw(AMOUNT)}}}' if decision == "edit" else None,
            value='"yes"' if decision == "respond" else None,
        )
        said = self.ask(command, actor)
        recorded = [event for event in said if isinstance(event, h.DecisionRecorded)]
        if recorded:
            assert hold.status == "open"
            assert not (stale and hold.call_id)
            # An escalation that was due came before the decision.
            self.check_authority(self.world.state().holds[hold.hold_id], requesters, actor)
            edited = self.world.state().calls.get(hold.call_id) if decision == "edit" else None
            if edited is not None and edited.tool == "pay":
                assert "2000" not in edited.arguments, "the policy denies that much, edited as well"

    def check_authority(self, hold: Any, requesters: tuple[str, ...], actor: Any) -> None:
        """The model's own reading of the rules."""
        assert actor.agent is None
        assert not hold.exclude_requester or actor.subject not in (hold.requester, *requesters)
        if not hold.delegations or hold.delegations[-1].to != actor.subject:
            allowed = set(hold.roles) or {"reviewer", "operator"}
            assert allowed & set(actor.roles)

    @rule(data=st.data(), attempt=ATTEMPT, actor=MOSTLY_BOT, stale=SELDOM)
    def consume(self, data: st.DataObject, attempt: str, actor: Any, stale: bool) -> None:
        call = self.a_call(data, "released")
        if call is None:
            return
        digest = "0" * 64 if stale else call.digest
        said = self.ask(k.ConsumeGrant(call_id=call.call_id, digest=digest, attempt_id=attempt), actor)
        if any(isinstance(event, c.GrantConsumed) for event in said):
            assert actor is BOT
            assert not stale
            assert call.status == "released" or call.tool == "again"

    @rule(data=st.data(), attempt=ATTEMPT, outcome=st.sampled_from(["succeeded", "failed", "unknown"]))
    def report(self, data: st.DataObject, attempt: str, outcome: Any) -> None:
        call = self.a_call(data, "consumed")
        if call is not None:
            self.ask(k.ReportResult(call_id=call.call_id, attempt_id=attempt, outcome=outcome), BOT)

    @rule(actor=ANYBODY, body=STEERING, really=SELDOM)
    def steer(self, actor: Any, body: Message, really: bool) -> None:
        if not really and not isinstance(body, k.ResumeExecution):
            return
        said = {type(event).__name__ for event in self.ask(body, actor)}
        if "ExecutionPaused" in said:
            self.stopped_by_people = self.stopped_by_people or actor.agent is None
        if "ExecutionResumed" in said:
            assert actor.agent is None or not self.stopped_by_people, "what a person stopped, a person starts"
            self.stopped_by_people = False

    @rule(data=st.data(), actor=ANYBODY, really=SELDOM)
    def revoke(self, data: st.DataObject, actor: Any, really: bool) -> None:
        call = self.a_call(data, "released")
        if really and call is not None:
            self.ask(k.RevokeGrant(call_id=call.call_id), actor)

    @rule(
        data=st.data(),
        actor=PEOPLE,
        name=st.sampled_from(list(HANDLING)),
    )
    def handle(self, data: st.DataObject, actor: Any, name: str) -> None:
        holds = sorted(self.world.state().holds)
        if not holds:
            return
        hold_id = data.draw(st.sampled_from(holds))
        self.ask(said(name, hold_id, somebody="anna"), actor)

    @rule(seconds=st.sampled_from([1, 1, 1, 301, 601, 1000]))
    def wait(self, seconds: int) -> None:
        self.world.later(seconds)

    @rule()
    def nudge(self) -> None:
        due = self.world.state().next_due
        if due is not None:
            body = k.ExpireDue(subject_id=due[1], deadline_at_ms=due[0], attempt=1)
            said = self.ask(body, OLGA)
            assert bool(said) == (due[0] <= self.world.now_ms), "an early nudge leaves nothing behind"

    @rule(strict=SELDOM)
    def publish(self, strict: bool) -> None:
        rules = [policy_rule("none", "*", "deny")] if strict else RULES
        self.world.definitions = published(self.world.definitions, rules)

    @rule()
    def repeat(self) -> None:
        """The very same command again: no events."""
        if self.last is None:
            return
        body, actor, command_id = self.last
        if any(event.meta.command_id == command_id for event in self.world.events):
            assert self.world.ask(body, actor, command_id) == []

    def teardown(self) -> None:
        """What a whole history must show; looked at once, at its end."""
        self.replay_equals_live()
        self.one_terminal_state_and_none_after_it()
        self.every_release_rests_on_a_verdict_or_a_decision()
        self.at_most_one_effect_unless_a_person_or_the_definition_said_so()

    def replay_equals_live(self) -> None:
        if not self.world.events:
            return
        again = ExecutionsPartition(lambda: self.world.definitions)
        for event in self.world.events:
            again.apply(event)
        assert again.live == self.world.partition.live
        assert again.recent == self.world.partition.recent

    @invariant()
    def next_due_is_the_earliest(self) -> None:
        if self.world.events:
            state = self.world.state()
            assert state.next_due == min(((at, name) for name, at in state.due.items()), default=None)

    @invariant()
    def what_is_open_is_counted(self) -> None:
        if self.world.events:
            state = self.world.state()
            calls = [call for call in state.calls.values() if call.status not in TERMINAL_CALLS]
            requests = [hold for hold in state.holds.values() if hold.status == "open" and not hold.call_id]
            assert state.open_count == len(calls) + len(requests)
            unjudged = {call.call_id for call in calls if call.status == "proposed" and not call.judged}
            assert set(state.parked) == unjudged
            assert state.lifecycle == "paused" or not unjudged, "in this world one decision judges them all"

    def one_terminal_state_and_none_after_it(self) -> None:
        ended: dict[str, str] = {}
        state = None
        for event in self.world.events:
            if state is None:
                state = start(("acme", "main", "x"), event.body)  # type: ignore[arg-type]
                continue
            state = evolve(state, event.body, event.meta.at_ms)
            for call_id, status in ended.items():
                assert state.calls[call_id].status == status, "a call's end is final"
            ended = {
                call.call_id: call.status for call in state.calls.values() if call.status in TERMINAL_CALLS
            }

    def every_release_rests_on_a_verdict_or_a_decision(self) -> None:
        said = [event.body for event in self.world.events]
        allowed = {
            (v.call_id, v.revision)
            for v in said
            if isinstance(v, c.PolicyVerdictIssued) and v.effect == "allow"
        }
        decided = {
            d.decision_id
            for d in said
            if isinstance(d, h.DecisionRecorded) and d.decision in ("approve", "edit")
        }
        for event in said:
            if isinstance(event, c.ToolCallReleased):
                assert (event.call_id, event.revision) in allowed or event.decision_id in decided

    def at_most_one_effect_unless_a_person_or_the_definition_said_so(self) -> None:
        said = [event.body for event in self.world.events]
        for call_id, consumed in self.effects.items():
            attempts = [event.attempt_id for event in consumed]
            assert len(attempts) == len(set(attempts)), "each run has an attempt id of its own"
            releases = sum(isinstance(e, c.ToolCallReleased) and e.call_id == call_id for e in said)
            idempotent = self.world.state().calls[call_id].tool == "again"
            assert len(consumed) <= releases or idempotent
            digests = {e.digest for e in said if isinstance(e, c.ToolCallReleased) and e.call_id == call_id}
            assert {event.digest for event in consumed} <= digests


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)

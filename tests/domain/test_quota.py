"""What may be open in one execution, and how often people hand one hold on or edit one call.

And that whatever ends or resumes an execution at its limit fits one decision.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.events.calls import CALL_EVENTS
from schemas.events.executions import EXECUTION_EVENTS
from schemas.events.holds import HOLD_EVENTS
from schemas.events.rules import RuleMade
from schemas.headers import event_record
from schemas.limits import (
    ARGUMENTS_MAX_BYTES,
    DECISION_MAX_BYTES,
    DELEGATIONS_MAX,
    EDITS_MAX,
    ID_MAX_CHARS,
    INPUT_SCHEMA_MAX_BYTES,
    OPEN_MAX,
    PARKED_MAX_BYTES,
    PART_MAX_BYTES,
    TEXT_MAX_CHARS,
)
from schemas.message import Message
from schemas.principals import People
from schemas.record import Event, EventMeta
from schemas.trace_context import TRACEPARENT_CHARS
from services.domain.context import Context
from services.domain.definitions import Definitions
from services.domain.execution.decisions import ROLLBACK_MAX
from services.domain.execution.sizes import FIELD_BYTES, _value_bytes, events_bytes
from services.domain.memory.standing_rules import ACTIVE_MAX
from services.domain.policy import PolicySet
from services.domain.publishing import evolve
from services.domain.state import Execution
from tests.domain.steps import TESSA, ask_two, code, consumed, decided, held, proposed, reported, started
from tests.domain.test_delegations import hand_on
from tests.domain.test_rule_definitions import document
from tests.domain.world import BOT, OLGA, RITA, RULES, TOOLS, World, names, published, rule, the
from tests.schemas import samples

LONGEST = ID_MAX_CHARS
TENANT, PROJECT, EXECUTION = "t" * LONGEST, "p" * LONGEST, "x" * LONGEST
# No text of a person takes more: every character four bytes of UTF-8.
LONG_TEXT = "\U0001f642" * TEXT_MAX_CHARS
LONG_RESULT = '"' + "r" * (ARGUMENTS_MAX_BYTES - 2) + '"'
NUDGE = k.ExpireDue(subject_id="-", deadline_at_ms=0, attempt=1)


@dataclass
class LongWorld(World):
    """A world in which every id is as long as it may be. `sizes` are those of the decisions, one after another."""

    sizes: list[int] = field(default_factory=list)

    def longest(self, body: Message, actor: Any = BOT) -> list[Message]:
        before = len(self.events)
        said = self.ask(body, actor, f"{self.asked:0{LONGEST}}", EXECUTION)
        self.sizes.append(sum(map(_largest, self.events[before:])))
        return said

    def open(self, count: int, tool: str = "halt") -> None:
        for number in range(count):
            body = k.ProposeToolCall(call_id=f"{number:0{LONGEST}}", tool=tool, arguments="{}")
            assert "CommandRefused" not in names(self.longest(body))

    def nudge(self) -> None:
        """Let the timer work off everything that is due at once, part by part."""
        while (due := self.partition.due_of(self.key(EXECUTION))) is not None and due[0] <= self.now_ms:
            assert self.longest(NUDGE, OLGA), "a nudge that is due gets something done"


def _largest(event: Event) -> int:
    """What an event takes in a batch, with every header as long as it can be."""
    far = 10**17
    meta = event.meta._replace(term=far, version=far, command_digest="d" * 32, command_offset=far)
    return event_record(event.body, meta, event.key).size_bytes()


def long_world(
    rules: list[dict[str, Any]] | None = None, tools: list[dict[str, Any]] | None = None
) -> LongWorld:
    definitions = published(Definitions(policies=PolicySet()), rules or RULES, tools or TOOLS, TENANT)
    world = LongWorld(definitions=definitions, tenant=TENANT, project=PROJECT)
    world.longest(k.StartExecution(agent="bot"))
    return world


def nudged(world: World) -> list[list[Any]]:
    """What the timer's nudges make of parked calls, part by part."""
    parts: list[list[Any]] = []
    while world.state().parked:
        parts.append(world.ask(NUDGE, OLGA))
        assert parts[-1], "a nudge that is due gets something done"
    return parts


def test_propose_beyond_the_quota_is_refused_until_a_call_has_ended() -> None:
    world = started()
    for number in range(OPEN_MAX):
        proposed(world, "read", f"c{number}")

    refused = proposed(world, "read", "one-more")
    assert code(refused) == "quota"
    assert str(OPEN_MAX) in the(refused, "CommandRefused").detail
    assert code(proposed(world, "read", "c7")) == "duplicate", "a repeat is answered whatever is open"

    consumed(world, world.state().calls["c0"].digest, call_id="c0")
    assert code(proposed(world, "read", "one-more")) == "quota", "a call that runs is open"
    reported(world, "succeeded", call_id="c0")
    assert names(proposed(world, "read", "one-more"))[-1] == "ToolCallReleased"


def test_hold_that_goes_round_in_circles_is_handed_on_so_often_and_no_more() -> None:
    world = started()
    hold = held(world)
    assert names(hand_on(world, hold, RITA, "a0")) == ["HoldDelegated"]
    for number in range(1, DELEGATIONS_MAX):
        assert names(hand_on(world, hold, _delegate(number - 1), f"a{number % 2}")) == ["HoldDelegated"]

    refused = hand_on(world, hold, _delegate(DELEGATIONS_MAX - 1), f"a{DELEGATIONS_MAX % 2}")

    assert code(refused) == "quota"
    assert str(DELEGATIONS_MAX) in the(refused, "CommandRefused").detail
    assert code(hand_on(world, hold, RITA, "zoe")) == "quota", "whoever hands it on"
    assert code(hand_on(world, hold, RITA, "rita")) == "invalid", "told first"
    decision = decided(world, hold, "approve", _delegate(DELEGATIONS_MAX - 1))
    assert names(decision) == ["DecisionRecorded", "ToolCallReleased"]


def _delegate(number: int) -> Actor:
    return RITA.model_copy(update={"subject": f"a{number % 2}", "roles": ()})


def test_call_knows_its_holds_that_were_handed_on_and_no_others() -> None:
    """Whose request a call is must not be looked for in all holds of a long run."""
    world = started()
    ask_two(world)
    other, hold = held(world, call_id="other"), held(world)
    hand_on(world, other, RITA, "zoe")
    hand_on(world, hold, RITA, "a0")
    hand_on(world, hold, _delegate(0), "a1")
    again = the(decided(world, hold, "edit", _delegate(1), edited_arguments='{"amount":1}'), "HoldOpened")
    hand_on(world, again, TESSA, "zoe")

    assert world.state().calls["c"].handed_on == (hold.hold_id, again.hold_id)


def test_call_is_edited_so_often_and_no_more() -> None:
    world = started()
    ask_two(world)
    hold = held(world)
    for number in range(EDITS_MAX):
        by = (RITA, TESSA)[number % 2]
        edited = decided(world, hold, "edit", by, edited_arguments=f'{{"amount":{number + 1}}}')
        hold = the(edited, "HoldOpened")

    refused = decided(world, hold, "edit", RITA, edited_arguments='{"amount":0}')

    assert code(refused) == "quota"
    assert str(EDITS_MAX) in the(refused, "DecisionRefused").detail
    denied = decided(world, hold, "edit", RITA, edited_arguments='{"amount":5000}')
    assert code(denied) == "edit_denied", "told first"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_request_counts_as_open_until_it_is_answered() -> None:
    world = started()
    for number in range(OPEN_MAX - 1):
        held(world, call_id=f"c{number}")
    question = k.RequestHumanInput(request_id="q", kind="clarification", question="?")
    hold = the(world.ask(question), "HoldOpened")

    assert code(proposed(world, "read", "more")) == "quota"
    assert code(world.ask(question.model_copy(update={"request_id": "r"}))) == "quota"
    world.ask(k.DecideHold(hold_id=hold.hold_id, decision="respond", value='"so"'), RITA)
    assert names(proposed(world, "read", "more"))[-1] == "ToolCallReleased"


@pytest.mark.parametrize(
    "ending",
    [
        k.CancelExecution(reason=LONG_TEXT),
        k.CompleteExecution(result=LONG_RESULT),
        k.FailExecution(error=LONG_TEXT),
    ],
    ids=lambda ending: type(ending).__name__,
)
def test_end_at_the_quota_with_the_longest_ids_fits_one_decision(ending: Message) -> None:
    world = long_world()
    world.open(OPEN_MAX)

    said = world.longest(ending, OLGA)

    assert len(said) == 2 * OPEN_MAX + 1
    assert world.sizes[-1] < DECISION_MAX_BYTES
    assert world.state(EXECUTION).open_count == 0


def test_rejection_that_halts_at_the_quota_fits_one_decision() -> None:
    world = long_world()
    world.open(OPEN_MAX)
    hold = next(iter(world.state(EXECUTION).holds.values()))

    decision = k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest, feedback=LONG_TEXT)
    said = world.longest(decision, RITA)

    assert names(said)[-1] == "ExecutionFailed"
    assert world.sizes[-1] < DECISION_MAX_BYTES


def test_rejection_that_halts_at_the_quota_and_contradicts_every_rule_there_may_be_fits_one_decision() -> (
    None
):
    world = long_world()
    world.open(OPEN_MAX)
    state = world.state(EXECUTION)
    hold = next(iter(state.holds.values()))
    for number in range(ACTIVE_MAX):
        rule_id = f"{number:0{LONGEST}}"
        text = document(
            rule_id, project=PROJECT, tool="halt", arguments={}, expires_at_ms=world.now_ms + 10_000_000,
            tool_version=state.calls[hold.call_id].tool_version, policy_rules=["p/halts"], risk_max="medium",
        )  # fmt: skip
        made = RuleMade(rule_id=rule_id, status="active", reason="", document=text, by="rita")
        world.definitions = evolve(world.definitions, made, TENANT, world.definitions.through_offset + 1)

    decision = k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest, feedback=LONG_TEXT)
    said = world.longest(decision, RITA)

    assert names(said).count("RuleContradicted") == ACTIVE_MAX
    assert names(said)[-1] == "ExecutionFailed"
    assert world.sizes[-1] < DECISION_MAX_BYTES


def test_rejection_that_rolls_back_at_the_quota_fits_one_decision() -> None:
    mild = [{"name": "back", "annotations": {"destructiveHint": False}}]
    world = long_world([rule("backs", "back", "hold", on_reject="rollback")], mild)
    world.open(OPEN_MAX, "back")
    entry = world.partition.live[world.key(EXECUTION)]
    held_call = next(iter(entry.state.calls.values()))
    calls = entry.state.calls
    for number in range(1, ROLLBACK_MAX + 1):
        name = f"s{number:0{LONGEST - 1}}"
        calls = calls.set(name, replace(held_call, call_id=name, status="succeeded", succeeded_as=number))
    entry.state = replace(entry.state, calls=calls)
    hold = entry.state.holds[held_call.hold_id]

    decision = k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest, feedback=LONG_TEXT)
    said = world.longest(decision.model_copy(update={"view_digest": hold.view_digest}), RITA)

    assert len(the(said, "RollbackStarted").calls) == ROLLBACK_MAX
    assert world.sizes[-1] < DECISION_MAX_BYTES


def test_everything_due_at_the_quota_expires_in_parts_that_each_fit_one_decision() -> None:
    world = long_world()
    world.open(OPEN_MAX, "pay-nothing")
    last = max(world.state(EXECUTION).holds.values(), key=lambda hold: hold.call_id)
    world.later(15 * 60)

    decision = k.DecideHold(hold_id=last.hold_id, decision="approve", digest=last.digest)
    first = world.longest(decision, RITA)
    assert code(first) == "unavailable", "late is not let through while earlier deadlines are worked off"
    world.nudge()

    assert max(world.sizes[-2:]) < DECISION_MAX_BYTES
    assert {call.status for call in world.state(EXECUTION).calls.values()} == {"expired"}
    assert code(world.longest(decision, RITA)) == "expired"


def test_command_that_does_not_fit_beside_what_expired_is_refused_and_taken_when_asked_again() -> None:
    world = long_world([*RULES, rule("all", "large", "allow")], [*TOOLS, {"name": "large"}])
    world.open(PART_MAX_BYTES // 4_000, "pay-nothing")
    world.later(15 * 60)
    text = canonical({"text": "a" * (ARGUMENTS_MAX_BYTES - 11)})
    large = k.ProposeToolCall(call_id="large", tool="large", arguments=text, context=text)

    first = world.longest(large)
    assert code(first) == "unavailable"
    assert names(first).count("HoldExpired") == PART_MAX_BYTES // 4_000
    assert names(world.longest(large))[-1] == "ToolCallReleased"
    assert max(world.sizes) < DECISION_MAX_BYTES < sum(world.sizes[-2:])


def test_resume_at_the_quota_judges_all_in_parts_though_the_tool_grew_in_the_pause() -> None:
    world = long_world([rule("waits", "*", "hold")], [{"name": "wide"}])
    world.longest(k.PauseExecution(), OLGA)
    world.open(OPEN_MAX, "wide")
    schema = {"type": "object", "description": "d" * (INPUT_SCHEMA_MAX_BYTES - 200)}
    world.definitions = published(
        world.definitions, tools=[{"name": "wide", "inputSchema": schema}], tenant=TENANT
    )

    before = world.asked

    world.longest(k.ResumeExecution(feedback=LONG_TEXT), OLGA)
    world.nudge()

    assert max(world.sizes) < DECISION_MAX_BYTES
    assert world.asked - before > 10, "no one decision could hold them all"
    assert {call.status for call in world.state(EXECUTION).calls.values()} == {"held"}


def test_resume_judges_calls_of_the_largest_size_one_part_after_another_in_the_order_of_their_ids() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    arguments = '{"text":"' + "a" * (ARGUMENTS_MAX_BYTES - 11) + '"}'
    for number in (3, 1, 2):
        assert names(proposed(world, "read", f"c{number}", arguments)) == ["ToolCallProposed"]

    parts: list[list[Any]] = [world.ask(k.ResumeExecution(), OLGA), *nudged(world)]

    released = [[body.call_id for body in part if hasattr(body, "grant_id")] for part in parts]
    assert released == [["c1"], ["c2"], ["c3"]]
    assert world.partition.due_of(world.key()) == world.state().next_due


def test_pause_and_cancel_between_two_parts_of_a_resume_take_hold_at_once() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    arguments = '{"text":"' + "a" * (PART_MAX_BYTES // 2) + '"}'
    for number in range(4):
        proposed(world, "read", f"c{number}", arguments)
    world.ask(k.ResumeExecution(), OLGA)
    left = world.state().parked
    assert left

    assert names(world.ask(k.PauseExecution(), OLGA)) == ["ExecutionPaused"]
    assert world.ask(NUDGE, OLGA) == [], "nothing is judged in a pause"
    assert world.state().parked == left
    said = world.ask(k.CancelExecution(), OLGA)

    assert names(said)[-1] == "ExecutionCancelled"
    assert (world.state().parked, world.state().open_count) == ((), 0)
    assert world.partition.due_of(world.key()) is None


def test_propose_in_a_pause_is_refused_when_too_many_bytes_wait() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    arguments = '{"text":"' + "a" * (ARGUMENTS_MAX_BYTES - 11) + '"}'
    calls = PARKED_MAX_BYTES // ARGUMENTS_MAX_BYTES - 1
    for number in range(calls):
        proposed(world, "read", f"c{number}", arguments)

    assert names(proposed(world, "read", "fits", "{}")) == ["ToolCallProposed"]
    assert code(proposed(world, "read", "more", arguments)) == "quota"
    world.ask(k.ResumeExecution(), OLGA)
    nudged(world)
    assert names(proposed(world, "read", "more", arguments))[-1] == "ToolCallReleased"


@given(
    model=st.sampled_from((*EXECUTION_EVENTS, *CALL_EVENTS, *HOLD_EVENTS)),
    text=st.text(max_size=300),
    ids=st.lists(st.integers(1, LONGEST), min_size=4, max_size=4),
)
def test_events_bytes_is_never_less_than_the_record_takes(model: Any, text: str, ids: list[int]) -> None:
    tenant, project, execution_id, command_id = ("i" * length for length in ids)
    texts = [name for name, about in model.model_fields.items() if about.annotation is str]
    body = samples.full(model).model_copy(update=dict.fromkeys(texts, text))
    state = Execution(
        tenant=tenant, project=project, execution_id=execution_id,
        agent="", user="", workspace="", request="", context="{}", start_digest="",
    )  # fmt: skip
    ctx = Context(BOT, command_id, 0, 0, lambda name: None, lambda execution, call: None, People().of("acme"))  # type: ignore[arg-type, return-value]
    far = 10**17
    meta = EventMeta("e" * 36, 2**40, far, far, command_id, "d" * 32, tenant, far, "t" * TRACEPARENT_CHARS)
    record = event_record(body, meta, f"{tenant}/{project}/{execution_id}".encode())

    assert events_bytes(state, ctx, [body]) >= record.size_bytes()


def test_events_bytes_counts_every_text_of_a_list() -> None:
    assert _value_bytes(("ab", "ü")) == 3 * FIELD_BYTES + 4

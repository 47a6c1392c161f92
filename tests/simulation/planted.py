"""Bugs to plant: each changes production code at one named place, as a programmer's mistake would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from immutables import Map
from msgspec.structs import replace

from schemas.commands import DecideHold
from schemas.events.calls import ToolCallProposed, ToolCallReleased
from schemas.events.log import WriterClaimed
from schemas.principals import People, TenantPeople
from schemas.record import Event, RawRecord
from schemas.term import NO_CLAIM, TermRule
from services.domain.authority import authority
from services.domain.definitions import Definitions
from services.domain.execution import calls, decisions, execution, expiry, holds, probes, results, verdicts
from services.domain.execution.verdicts import release
from services.domain.memory import coverage, memory, rule_uses, standing_rules
from services.domain.memory.rule_uses import USED_UP, RuleUses
from services.domain.memory.standing_rules import StandingRules
from services.domain.policy import scopes
from services.processors.fold import PartitionFold
from services.runtime import rounds
from services.runtime.answered import Answered
from services.runtime.deadlines import Deadlines
from services.runtime.executions_partition import ExecutionsPartition
from services.runtime.rounds import Round, Rounds
from services.runtime.rule_changes import PendingRuleChanges
from services.runtime.writer import PartitionWriter
from tests.simulation import planted_turns

Patch = pytest.MonkeyPatch
FULL_BATCH_RECORDS = 6


@dataclass(frozen=True)
class PlantedBug:
    """A mistake, the invariants of which the checker must name one, and the world that showed it last."""

    plant: Callable[[Patch], None]
    told_by: tuple[str, ...]
    world: int = 0


def skip_the_digest_check_of_a_decision(patch: Patch) -> None:
    patch.setattr(holds, "_other_digest", lambda hold, command: None)


def skip_the_digest_check_of_a_consumption(patch: Patch) -> None:
    problem = calls._consumption_problem

    def careless(state: Any, call: Any, command: Any, ctx: Any) -> Any:
        return problem(state, call, command.model_copy(update={"digest": call.digest}), ctx)

    patch.setattr(calls, "_consumption_problem", careless)


def drop_the_dedupe(patch: Patch) -> None:
    patch.setattr(ExecutionsPartition, "seen", lambda self, key, command_id, digest: "new")


def remember_ids_for_a_whole_partition(patch: Patch) -> None:
    """Take for a repeat what was refused on another key."""
    seen = ExecutionsPartition.seen

    def careless(self: ExecutionsPartition, key: bytes, command_id: str, digest: str) -> str:
        refused = (each.seen(command_id, digest) for each in self.orphans.by_key.values())
        found = seen(self, key, command_id, digest)
        return next((each for each in refused if each != "new"), "new") if found == "new" else found

    patch.setattr(ExecutionsPartition, "seen", careless)


def take_another_body_for_a_repeat(patch: Patch) -> None:
    """Leave no trace of a body whose command id was used for another one."""
    seen = Answered.seen

    def careless(self: Answered, command_id: str, digest: str) -> str:
        return "repeated" if seen(self, command_id, digest) == "reused" else seen(self, command_id, digest)

    patch.setattr(Answered, "seen", careless)


def decide_every_body_of_an_id(patch: Patch) -> None:
    """Take what is another body for another command."""
    seen = Answered.seen

    def careless(self: Answered, command_id: str, digest: str) -> str:
        return "new" if seen(self, command_id, digest) == "reused" else seen(self, command_id, digest)

    patch.setattr(Answered, "seen", careless)


def commit_the_offset_first(patch: Patch) -> None:
    """Say that everything that came in is dealt with, and then deal with it."""
    decide = PartitionWriter._round

    async def committing(self: PartitionWriter, raws: Iterator[RawRecord]) -> None:
        if self._inbox:
            first = self._begin()
            self.rounds.alive(first, self._inbox[-1].offset)
            await self._append(first)
        await decide(self, raws)

    patch.setattr(PartitionWriter, "_round", committing)


def ignore_terms(patch: Patch) -> None:
    def admits(self: TermRule, event: Event, raw: RawRecord | None = None) -> bool:
        if isinstance(event.body, WriterClaimed):
            return self.admits_claim(event.body.after, event.offset)
        return self.claim != NO_CLAIM

    patch.setattr(TermRule, "admits", admits)


def release_on_timeout(patch: Patch) -> None:
    def released(hold: Any, call: Any) -> list[Any]:
        return [
            ToolCallReleased(
                call_id=call.call_id,
                revision=call.revision,
                digest=call.digest,
                grant_id="timeout",
                decision_id="",
                released_by="decision",
                arguments=call.arguments,
                expires_at_ms=hold.deadline_at_ms + 40_000,
            )
        ]

    patch.setattr(expiry, "_call_ended", released)


def take_another_tenants_key(patch: Patch) -> None:
    patch.setattr(rounds, "check_address", lambda command, of_topic, partition, partitions: None)


def run_a_consumed_call_again(patch: Patch) -> None:
    patch.setattr(calls, "_may_run_again", lambda call, ctx: True)


def take_a_result_from_who_reads_off_the_attempt(patch: Patch) -> None:
    patch.setattr(results, "not_theirs", lambda call, attempt_id, ctx: None)


def retry_an_unknown_outcome(patch: Patch) -> None:
    def again(state: Any, call: Any, reason: str, ctx: Any) -> list[Any]:
        return [release(call, call.decision_id, "decision", ctx)]

    patch.setattr(expiry, "outcome_unknown_events", again)


def take_a_batch_wherever_it_lands(patch: Patch) -> None:
    async def append(self: PartitionWriter, round_: Round) -> None:
        if round_.records:
            await self.appender.append(self.events_tp, round_.records)

    patch.setattr(PartitionWriter, "_append", append)


def decide_by_a_clock_that_is_behind(patch: Patch) -> None:
    decide_one = Rounds.decide_one

    def behind(self: Rounds, round_: Round, raw: RawRecord) -> None:
        decide_one(self, round_, raw._replace(timestamp_ms=raw.timestamp_ms - 60_000))

    patch.setattr(Rounds, "decide_one", behind)


def release_what_was_approved_late(patch: Patch) -> None:
    """Let a decision come before the deadline that has passed."""
    decide = execution.decide

    def late(state: Any, command: Any, ctx: Any) -> Any:
        if state is not None and isinstance(command, DecideHold):
            return holds.decide_hold(state, command, ctx)
        return decide(state, command, ctx)

    patch.setattr(execution, "decide", late)


def lose_what_a_full_batch_did_not_take(patch: Patch) -> None:
    append = PartitionWriter._append

    async def full(self: PartitionWriter, round_: Round) -> None:
        del round_.records[FULL_BATCH_RECORDS:]
        await append(self, round_)

    patch.setattr(PartitionWriter, "_append", full)


def let_an_editor_approve_the_edit(patch: Patch) -> None:
    patch.setattr(authority, "requesters_of", lambda state, hold, call, people: {hold.requester})


def count_accounts_instead_of_people(patch: Patch) -> None:
    patch.setattr(TenantPeople, "name_of", lambda self, subject: subject)


def give_authority_by_an_account_that_was_taken_away(patch: Patch) -> None:
    patch.setattr(TenantPeople, "_is_nobodys", lambda self, name: False)


def believe_the_roles_of_a_token(patch: Patch) -> None:
    patch.setattr(TenantPeople, "resolved", lambda self, actor: actor)


def never_look_at_the_time(patch: Patch) -> None:
    async def nothing(self: Deadlines, send: Any) -> None:
        self._heap.clear()

    patch.setattr(Deadlines, "nudge_due", nothing)


def run_what_changed_after_the_release(patch: Patch) -> None:
    patch.setattr(calls, "stricter_now", lambda state, call, ctx: [])


def take_a_rivals_claim_for_a_death(patch: Patch) -> None:
    patch.setattr(rounds, "ABANDON_AFTER_DEATHS", 1)


def never_give_a_command_up(patch: Patch) -> None:
    patch.setattr(rounds, "ABANDON_AFTER_DEATHS", 1_000)


def ignore_the_limit_of_a_rule(patch: Patch) -> None:
    problem = rule_uses._problem

    def unlimited(state: Any, rule: Any, actor: Any, now_ms: int) -> Any:
        found = problem(state, rule, actor, now_ms)
        return None if found == USED_UP else found

    patch.setattr(rule_uses, "_problem", unlimited)


def consume_at_once_unasked(patch: Patch) -> None:
    """Consume what is let through though its proposal names no attempt."""
    at_once = calls._consumed_at_once

    def unasked(call: Any, outcome: Any, attempt_id: str | None, ctx: Any) -> Any:
        return at_once(call, outcome, attempt_id or "nobodys", ctx)

    patch.setattr(calls, "_consumed_at_once", unasked)


def give_a_use_for_every_question(patch: Patch) -> None:
    """Forget which reservation was answered, so that one that is asked for again is counted again."""
    decide = rule_uses.decide

    def forgetful(state: RuleUses, rule: Any, command: Any, actor: Any, now_ms: int) -> Any:
        return decide(replace(state, uses=Map()), rule, command, actor, now_ms)

    patch.setattr(rule_uses, "decide", forgetful)


def release_without_waiting_for_a_use(patch: Patch) -> None:
    waiting = verdicts._by_memory

    def at_once(call: Any, verdict: Any, document: Any) -> Any:
        return waiting(call, verdict, document.model_copy(update={"uses": None}))

    patch.setattr(verdicts, "_by_memory", at_once)


def use_a_rule_that_rests(patch: Patch) -> None:
    def every(self: StandingRules, tenant: str, project: str, agent: str, tool: str) -> Any:
        rules = sorted(self.by_id.values(), key=lambda rule: rule.rule_id)
        return tuple(
            rule
            for rule in rules
            if (rule.tenant, rule.document.agent, rule.document.tool) == (tenant, agent, tool)
        )

    patch.setattr(StandingRules, "active", every)
    patch.setattr(PendingRuleChanges, "rests", lambda self, rule: False)


def judge_by_the_policy_of_another_project(patch: Patch) -> None:
    patch.setattr(scopes, "DIMENSIONS", ("agent", "user", "workspace", "tenant"))


def take_the_tool_of_another_project(patch: Patch) -> None:
    def next_door(self: Definitions, tenant: str, name: str, project: str) -> Any:
        return self.tools.get((tenant, "side", name)) or self.tools.get((tenant, "*", name))

    patch.setattr(Definitions, "tool", next_door)


def count_the_people_of_another_project(patch: Patch) -> None:
    of = People.of
    patch.setattr(People, "of", lambda self, tenant, project="*": of(self, tenant, "side"))


def look_at_the_names_of_arguments_only(patch: Patch) -> None:
    patch.setattr(coverage, "fits", lambda tests, arguments: tests.keys() == arguments.keys())


def remember_what_the_last_voter_asks_for(patch: Patch) -> None:
    patch.setattr(memory, "_unlike_an_earlier_vote", lambda *_: None)


def let_makers_activate_their_rule(patch: Patch) -> None:
    patch.setattr(standing_rules, "_own", lambda *_: frozenset())


def run_planted_calls(patch: Patch) -> None:
    """Take an approval of a planted call for a real one's, and forget the last look at a decision's events."""
    patch.setattr(decisions, "_on_probe", decisions._approved)
    patch.setattr(probes, "with_probes", lambda _state, events, _now_ms: events)


def forget_to_tell_of_planted_calls(patch: Patch) -> None:
    patch.setattr(probes, "_end_of", lambda state, planted, probe, event: None)


def count_planted_calls_after_a_resume(patch: Patch) -> None:
    """Read the calls that were open at the checkpoint again, and do not look whether they were planted."""
    count = PartitionFold._count

    def careless(self: PartitionFold, event: Event) -> None:
        is_read_again = event.offset <= self._known.through_offset
        if is_read_again and isinstance(event.body, ToolCallProposed):
            event = event._replace(body=event.body.model_copy(update={"probe": None}))
        count(self, event)

    patch.setattr(PartitionFold, "_count", careless)


BUGS = {
    bug.plant.__name__: bug
    for bug in (
        PlantedBug(skip_the_digest_check_of_a_decision, ("I1",)),
        PlantedBug(skip_the_digest_check_of_a_consumption, ("I1",), 1),
        PlantedBug(drop_the_dedupe, ("I2",)),
        PlantedBug(remember_ids_for_a_whole_partition, ("I3", "I12"), 13),
        PlantedBug(take_another_body_for_a_repeat, ("I3", "I12")),
        PlantedBug(decide_every_body_of_an_id, ("I2",)),
        PlantedBug(commit_the_offset_first, ("I3", "I12"), 1),
        PlantedBug(ignore_terms, ("I3", "I6", "I7", "I8")),
        PlantedBug(release_on_timeout, ("I5",)),
        PlantedBug(take_another_tenants_key, ("I9",)),
        PlantedBug(run_a_consumed_call_again, ("I1", "I2"), 10),
        PlantedBug(consume_at_once_unasked, ("I1", "I2")),
        PlantedBug(take_a_result_from_who_reads_off_the_attempt, ("I2",), 1),
        PlantedBug(retry_an_unknown_outcome, ("I1", "I5")),
        PlantedBug(take_a_batch_wherever_it_lands, ("I3", "I6", "I12"), 52),
        PlantedBug(decide_by_a_clock_that_is_behind, ("I5",)),
        PlantedBug(release_what_was_approved_late, ("I5",)),
        PlantedBug(lose_what_a_full_batch_did_not_take, ("I3", "I6", "I12"), 1),
        PlantedBug(let_an_editor_approve_the_edit, ("I10",), 30),
        PlantedBug(count_accounts_instead_of_people, ("I10",), 7),
        PlantedBug(give_authority_by_an_account_that_was_taken_away, ("I10",), 58),
        PlantedBug(believe_the_roles_of_a_token, ("I10",), 9),
        PlantedBug(never_look_at_the_time, ("I12",), 1),
        PlantedBug(run_what_changed_after_the_release, ("I1",), 16),
        PlantedBug(take_a_rivals_claim_for_a_death, ("I3",)),
        PlantedBug(never_give_a_command_up, ("I12",)),
        PlantedBug(ignore_the_limit_of_a_rule, ("I2",), 1),
        PlantedBug(give_a_use_for_every_question, ("I2",), 54),
        PlantedBug(release_without_waiting_for_a_use, ("I2",), 1),
        PlantedBug(use_a_rule_that_rests, ("I5",), 34),
        PlantedBug(judge_by_the_policy_of_another_project, ("I9",)),
        PlantedBug(take_the_tool_of_another_project, ("I1",), 2),
        PlantedBug(count_the_people_of_another_project, ("I10",), 7),
        PlantedBug(look_at_the_names_of_arguments_only, ("I1",)),
        PlantedBug(remember_what_the_last_voter_asks_for, ("I10",), 7),
        PlantedBug(let_makers_activate_their_rule, ("I10",), 1),
        PlantedBug(run_planted_calls, ("I1",), 15),
        PlantedBug(forget_to_tell_of_planted_calls, ("I4",), 15),
        PlantedBug(count_planted_calls_after_a_resume, ("I6",), 15),
        PlantedBug(planted_turns.leave_a_turn_suspended, ("I4", "I12"), 5),
        PlantedBug(planted_turns.wait_for_an_answer_that_has_come, ("I4", "I12"), 23),
        PlantedBug(planted_turns.take_a_resumed_turn_for_a_suspended_one, ("I12",), 2),
        PlantedBug(planted_turns.let_two_attempts_at_a_turn, ("I4",), 2),
        PlantedBug(planted_turns.take_turns_on_in_any_order, ("I4",), 2),
        PlantedBug(planted_turns.believe_who_names_the_attempt, ("I3",), 11),
        PlantedBug(planted_turns.post_a_reply_under_any_number, ("I6",), 2),
        PlantedBug(planted_turns.never_end_a_lease, ("I5", "I12"), 2),
        PlantedBug(planted_turns.leave_turns_open_at_the_end, ("I4",), 11),
        PlantedBug(planted_turns.let_senders_grant_what_they_asked_for, ("I10",), 5),
    )
}

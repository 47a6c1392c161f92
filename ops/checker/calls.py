"""The checker's own model of a call and its holds: which event may follow which, and what must agree.

It is a table of what is permitted, not a fold to decide by, and it shares nothing with `services.domain`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from ops.checker.agreed import who_may_no_more
from ops.checker.facts import Fact
from ops.checker.hold_seen import HoldSeen
from ops.checker.probes import Planted, is_for_it, planted
from ops.checker.published import Published
from ops.checker.rules import OF_RUN
from ops.checker.run_facts import RunFacts
from ops.checker.scratch import Part, Scratch, Shelf, short
from ops.checker.trust import CallWords, OfClass, TrustSeen, count, follow_sample, is_sampled, said
from ops.checker.turn_seen import TurnSeen
from ops.checker.violations import Violation
from schemas.canonical import parse_strict

TERMINAL = frozenset({"denied", "expired", "cancelled", "revoked", "succeeded", "failed"})
STATES = TERMINAL | {"proposed", "held", "released", "consumed", "outcome_unknown"}
# Event → the states of its call in which it may be recorded. "" is a call that does not exist yet.
PERMITTED: dict[str, frozenset[str]] = {
    "ToolCallProposed": frozenset({"", "held", "released"}),
    "PolicyVerdictIssued": frozenset({"proposed", "released"}),
    "ToolCallReleased": frozenset({"proposed", "held", "outcome_unknown"}),
    "ToolCallDenied": frozenset({"proposed", "held", "released"}),
    "ToolCallCancelled": frozenset({"proposed", "held", "released"}),
    "GrantConsumed": frozenset({"released", "consumed", "outcome_unknown"}),
    "LeaseRenewed": frozenset({"consumed"}),
    "GrantRevoked": frozenset({"released"}),
    # Also of a call that is released again; that an attempt has had it is checked beside.
    "ImpactReported": STATES,
    "ProbeEnded": frozenset({"held"}),
    "ToolCallSucceeded": frozenset({"consumed", "outcome_unknown"}),
    "ToolCallFailed": frozenset({"consumed", "outcome_unknown"}),
    "ToolCallOutcomeUnknown": frozenset({"consumed"}),
}
NEVER_RUN = frozenset({"denied", "expired", "cancelled", "revoked"})


@dataclass(slots=True)
class CallSeen:
    """What the log says of one call so far."""

    state: str = ""
    revision: int = 0
    digest: str = ""
    # Of all arguments that were ever proposed only this much is kept.
    arguments_sha: bytes = b""
    agent: str = ""
    tool: str = ""
    tool_version: str = ""
    trust_class: str = ""
    words: CallWords = field(default_factory=CallWords)
    expires_at_ms: int = 0
    run_deadline_at_ms: int = 0
    latest_end_at_ms: int = 0
    attempts: list[str] = field(default_factory=list)
    # How many of them are of earlier releases. Before each run needed an attempt of its own, one could be of several.
    attempts_before: int = 0
    # Who consumed for the attempt that runs.
    runner: str = ""
    # Also those who had handed the hold on to whom edited it.
    proposers: list[str] = field(default_factory=list)
    allowed_by: str = ""
    # The hold by which a person released it, empty where nobody did.
    released_by_hold: str = ""
    # Who has reported that it did harm.
    reporters: list[str] = field(default_factory=list)
    # How many of those who write in the conversation had done so when it was proposed first.
    senders: int = 0
    planted: Planted | None = None


class Runs:
    """All executions, with their calls and holds."""

    def __init__(self, scratch: Scratch) -> None:
        self.facts: Shelf[RunFacts] = Shelf(scratch, "run", RunFacts)
        self.calls: Shelf[CallSeen] = Shelf(scratch, "call", CallSeen)
        self.holds: Shelf[HoldSeen] = Shelf(scratch, "hold", HoldSeen)
        self.turns: Shelf[TurnSeen] = Shelf(scratch, "turn", TurnSeen)
        self.trust = TrustSeen(scratch)


class RunSeen:
    """One execution as the log tells it, with a report of everything that must not be there."""

    def __init__(
        self,
        key: str,
        facts: RunFacts,
        runs: Runs,
        published: Published,
        report: Callable[[Violation], None],
        adopted_through: int = -1,
    ) -> None:
        self.facts = facts
        self.calls: Part[CallSeen] = Part(runs.calls, key)
        self.holds: Part[HoldSeen] = Part(runs.holds, key)
        self.turns: Part[TurnSeen] = Part(runs.turns, key)
        self.trust = runs.trust
        self.published = published
        self.report = report
        self.adopted_through = adopted_through
        self.tenant, self.project = facts.tenant, facts.project
        # The planted call whose hold the fact that is being read has ended.
        self.to_tell = ""

    def call(self, fact: Fact) -> None:
        """Take an event about a call."""
        call = self.calls.setdefault(fact.body.call_id, CallSeen())
        permitted = PERMITTED[fact.type]
        if call.state not in permitted:
            self._say(_number(call.state, fact.type), fact, f"{fact.type} of a call that is {call.state!r}")
        _STEPS[fact.type](self, call, fact)
        self._follow_sample(call, fact)

    def decision_of(self, fact: Fact) -> tuple[str, bool]:
        """The decision recorded by the same command on the same call, and whether it ended the hold."""
        command_id, decision, call_id, resolves = self.facts.decision
        if command_id != fact.command_id or call_id != fact.body.call_id:
            return "", False
        return decision, resolves

    def decided(self, fact: Fact) -> None:
        """Remember the decision of the command that is being read."""
        self.facts.decision = (fact.command_id, fact.body.decision, fact.body.call_id, fact.body.resolves)
        self.facts.decided_hold = fact.body.hold_id
        if (call := self.calls.get(fact.body.call_id)) is not None:
            in_doubt = call.state == "outcome_unknown"
            said(self.trust, self.of_class(call), call.words, fact, in_doubt=in_doubt)
            self._follow_sample(call, fact)
            if call.planted is not None:
                call.planted.voted(fact.body)
        if fact.body.scope == "execution" and fact.body.resolves:
            self.facts.memory[OF_RUN + fact.body.decision_id] = fact.body.remember or "{}"

    def of_class(self, call: CallSeen) -> OfClass:
        """The calls that a fact about this one counts for."""
        return OfClass((self.tenant, self.project, call.agent, call.tool), call.trust_class)

    def count(self, call: CallSeen, fact: Fact, kind: str, *by: str) -> None:
        """Count a fact about the calls of a call's class."""
        count(self.trust, self.of_class(call), call.words, fact, kind, *by)

    def _follow_sample(self, call: CallSeen, fact: Fact) -> None:
        is_open = call.state in ("proposed", "held")
        follow_sample(self.trust, self.of_class(call), call.words, fact, is_open=is_open)

    def say(self, invariant: str, fact: Fact, what: str, *evidence: object) -> None:
        """Report what a fact contradicts."""
        self.report(Violation(invariant, fact.where, what, (fact.key, *map(str, evidence))))

    _say = say

    def _proposed(self, call: CallSeen, fact: Fact) -> None:
        body = fact.body
        if body.revision != call.revision + 1:
            self._say(
                "I4", fact, "a revision that does not follow the last one", call.revision, body.revision
            )
        if body.digest != digest_of(self.tenant, body):
            self._say("I1", fact, "the digest is not that of tenant, agent, tool, version and arguments")
        tool = self.published.tool(self.tenant, self.project, body.tool, self.adopted_through)
        if body.tool_version != tool.version:
            self._say("I1", fact, "proposed with a tool version other than the one in force", body.tool)
        if not call.revision:
            call.senders = len(self.facts.senders)
            call.planted = planted(body)
            if call.planted is not None and not is_for_it(self.facts, fact):
                self._say("I4", fact, "a call planted in a run that was not opened for it alone")
            self.facts.has_calls = True
        call.state, call.revision, call.digest = "proposed", body.revision, body.digest
        call.arguments_sha, call.agent = short(body.arguments), body.agent
        call.tool, call.tool_version = body.tool, body.tool_version
        call.allowed_by, call.trust_class = "", ""
        call.words.requester = body.by
        call.proposers.append(body.by)

    def _judged(self, call: CallSeen, fact: Fact) -> None:
        if fact.body.revision != call.revision:
            self._say("I1", fact, "a verdict on another revision", call.revision, fact.body.revision)
        if fact.body.definitions_through != self.adopted_through:
            self._say("I1", fact, "judged by definitions that are not in force here", self.adopted_through)
        of_project, slash, _ = fact.body.policy_version.rpartition("/")
        if slash and of_project != self.project:
            self._say("I9", fact, "judged by a policy of another project", fact.body.policy_version)
        call.allowed_by = fact.command_id if fact.body.effect == "allow" else ""
        # What people say of a planted call counts for nothing.
        call.trust_class = "" if call.planted else fact.body.trust_class
        call.words.is_decided = False
        call.words.is_sampled = is_sampled(fact.body.adaptive)
        if fact.body.reason == "trusted":
            place = self.of_class(call).place
            self.trust.released(place, fact, call.digest, self.published, self.adopted_through, self.report)

    def _released(self, call: CallSeen, fact: Fact) -> None:
        body = fact.body
        if call.planted is not None:
            self._say("I1", fact, "a planted call was released")
        released = (body.revision, body.digest, short(body.arguments))
        if released != (call.revision, call.digest, call.arguments_sha):
            self._say("I1", fact, "what is released is not what was proposed", call.digest, body.digest)
        if body.released_by == "policy" and call.allowed_by != fact.command_id:
            self._say("I1", fact, "released by policy without its verdict")
        if body.released_by == "rule":
            self._released_by_rule(call, fact)
        call.released_by_hold = self.facts.decided_hold if body.released_by == "decision" else ""
        if body.asked is not None and (hold := self.holds.get(call.released_by_hold)) is not None:
            hold.narrow(parse_strict(body.asked))
        if body.released_by == "decision":
            decision, resolves = self.decision_of(fact)
            if decision not in ("approve", "edit") or not resolves:
                self._say("I5", fact, "released without a person's decision", decision or "none")
        call.state, call.expires_at_ms = "released", body.expires_at_ms
        call.attempts_before = len(call.attempts)

    def _released_by_rule(self, call: CallSeen, fact: Fact) -> None:
        if call.allowed_by != fact.command_id:
            self._say("I1", fact, "released by a rule without its verdict")
        people = self.published.people.at(self.tenant, self.project, self.adopted_through)
        if not fact.body.rule_id.startswith(OF_RUN):
            self.published.rules.released(fact, self.tenant, call, self.adopted_through, self.report, people)
            return
        text = self.facts.memory.get(fact.body.rule_id)
        if text is None:
            self._say("I5", fact, "released by a decision that the run has no record of", fact.body.rule_id)
        elif gone := who_may_no_more(parse_strict(text), (), people):
            self._say("I10", fact, "released by a decision of somebody who can no longer decide", *gone)

    def rule_asked(self, fact: Fact) -> None:
        """Take a rule that a decision asks for: it names all who made it."""
        makers = parse_strict(fact.body.document).get("makers")
        if makers is not None and {maker["by"] for maker in makers} != set(self.facts.makers):
            self._say(
                "I10", fact, "a rule that names people other than those who approved", *self.facts.makers
            )

    def _denied(self, call: CallSeen, fact: Fact) -> None:
        call.state = "expired" if fact.body.cause == "timeout" else "denied"

    def _consumed(self, call: CallSeen, fact: Fact) -> None:
        body = fact.body
        if call.planted is not None:
            self._say("I1", fact, "an attempt has a planted call")
        if (body.revision, body.digest) != (call.revision, call.digest):
            self._say(
                "I1", fact, "consumed with another digest than the released one", call.digest, body.digest
            )
        tool = self.published.tool(self.tenant, self.project, call.tool, self.adopted_through)
        if tool.version != call.tool_version:
            self._say("I1", fact, "consumed though the tool has changed since", call.tool)
        runs_again = call.state != "released"
        if runs_again and not tool.idempotent:
            self._say("I2", fact, "consumed twice though the tool is not idempotent", *call.attempts)
        if call.state == "released" and fact.at_ms >= call.expires_at_ms:
            self._say("I5", fact, "consumed after the release had expired", call.expires_at_ms, fact.at_ms)
        if runs_again and body.by != call.runner:
            self._say(
                "I2",
                fact,
                "consumed by a subject other than the one whose attempt runs it",
                call.runner,
                body.by,
            )
        if body.attempt_id in call.attempts[call.attempts_before :]:
            self._say("I2", fact, "the same attempt consumed one release twice", body.attempt_id)
        call.state, call.run_deadline_at_ms = "consumed", body.run_deadline_at_ms
        if body.lease_ms is not None:
            call.run_deadline_at_ms = min(call.run_deadline_at_ms, fact.at_ms + body.lease_ms)
        call.latest_end_at_ms = body.run_deadline_at_ms
        call.attempts.append(body.attempt_id)
        call.runner = body.by

    def _renewed(self, call: CallSeen, fact: Fact) -> None:
        body = fact.body
        if call.attempts and body.attempt_id != call.attempts[-1]:
            self._say("I2", fact, "a heartbeat of an attempt other than the one that runs", body.attempt_id)
        if call.attempts and body.by != call.runner:
            self._say(
                "I2",
                fact,
                "a heartbeat from a subject other than the one that consumed",
                call.runner,
                body.by,
            )
        if fact.at_ms >= call.run_deadline_at_ms:
            self._say("I5", fact, "renewed after its lease had ended", call.run_deadline_at_ms, fact.at_ms)
        call.run_deadline_at_ms = min(call.latest_end_at_ms, body.lease_until_ms)

    def _ended(self, call: CallSeen, fact: Fact) -> None:
        if call.attempts and fact.body.attempt_id != call.attempts[-1]:
            self._say("I2", fact, "a result of an attempt other than the one that runs", fact.body.attempt_id)
        is_settled = call.state == "outcome_unknown" and self.decision_of(fact)[1]
        if call.attempts and fact.body.by != call.runner and not is_settled:
            self._say(
                "I2",
                fact,
                "a result from a subject other than the one that consumed",
                call.runner,
                fact.body.by,
            )
        call.state = _ENDS[fact.type]
        if call.state == "failed":
            self.count(call, fact, "failure")


def digest_of(tenant: str, proposed: Any) -> str:
    """SHA-256 of RFC 8785 JSON over tenant, agent, tool, tool_version and arguments (protocol, REST)."""
    value = {
        "tenant": tenant,
        "agent": proposed.agent,
        "tool": proposed.tool,
        "tool_version": proposed.tool_version,
        "arguments": parse_strict(proposed.arguments),
    }
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def _number(state: str, event: str) -> str:
    if state in TERMINAL:
        return "I5" if event == "GrantConsumed" and state in NEVER_RUN else "I4"
    if state == "outcome_unknown" and event == "ToolCallProposed":
        return "I2"
    return "I1" if event in ("GrantConsumed", "ToolCallReleased") else "I4"


def _to(state: str) -> Callable[[RunSeen, CallSeen, Fact], None]:
    def step(run: RunSeen, call: CallSeen, fact: Fact) -> None:
        call.state = state

    return step


def _cancelled(run: RunSeen, call: CallSeen, fact: Fact) -> None:
    if call.words.is_sampled and not call.words.is_decided:
        run.count(call, fact, "withdrawal")
    call.state = "cancelled"


def _revoked(run: RunSeen, call: CallSeen, fact: Fact) -> None:
    if fact.body.reason == "expired" and fact.at_ms < call.expires_at_ms:
        run.say("I5", fact, "a release expired early", call.expires_at_ms, fact.at_ms)
    call.state = "expired" if fact.body.reason == "expired" else "revoked"
    if call.state == "revoked":
        run.count(call, fact, "revocation", fact.body.by)


def _impact(run: RunSeen, call: CallSeen, fact: Fact) -> None:
    body = fact.body
    if not call.attempts:
        run.say("I4", fact, "the impact of a call that no attempt has had", call.state)
    told = (body.revision, body.agent, body.tool, body.trust_class)
    known = (call.revision, call.agent, call.tool, call.trust_class)
    if told != known:
        run.say("I1", fact, "the impact of another call than the one that is named", *known)
    if body.by in call.reporters:
        run.say("I4", fact, "one subject has reported the same impact twice", body.by)
    call.reporters.append(body.by)
    run.count(call, fact, "impact", body.by)


def _probe_ended(run: RunSeen, call: CallSeen, fact: Fact) -> None:
    hold = run.holds.get(fact.body.hold_id)
    if call.planted is None or hold is None:
        run.say("I4", fact, "the end of a planted call that nobody has planted")
        return
    if call.planted.told:
        run.say("I4", fact, "the end of a planted call is told twice")
    call.planted.told = True
    for what in call.planted.misfits(fact.body, hold.state):
        run.say("I1", fact, what)


_ENDS = {"ToolCallSucceeded": "succeeded", "ToolCallFailed": "failed"}
_STEPS: dict[str, Callable[[RunSeen, CallSeen, Fact], None]] = {
    "ToolCallProposed": RunSeen._proposed,
    "PolicyVerdictIssued": RunSeen._judged,
    "ToolCallReleased": RunSeen._released,
    "ToolCallDenied": RunSeen._denied,
    "ToolCallCancelled": _cancelled,
    "GrantConsumed": RunSeen._consumed,
    "LeaseRenewed": RunSeen._renewed,
    "GrantRevoked": _revoked,
    "ImpactReported": _impact,
    "ProbeEnded": _probe_ended,
    "ToolCallSucceeded": RunSeen._ended,
    "ToolCallFailed": RunSeen._ended,
    "ToolCallOutcomeUnknown": _to("outcome_unknown"),
}

"""A seeded, realistic history of one partition, which knows by itself what trust it must give."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.canonical import sha256_hex
from schemas.events.calls import (
    GrantConsumed,
    GrantRevoked,
    PolicyVerdictIssued,
    ToolCallCancelled,
    ToolCallDenied,
    ToolCallFailed,
    ToolCallOutcomeUnknown,
    ToolCallProposed,
    ToolCallReleased,
    ToolCallSucceeded,
)
from schemas.events.holds import DecisionRecorded
from schemas.events.log import WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.ids import execution_key
from schemas.message import Message
from schemas.record import EventMeta, OutRecord, RawRecord

TENANTS = ("acme", "globex")
AGENTS = ("billing-bot", "mail bot/2")
TOOLS = ("send_money", "files/read", "search")
PROJECTS = ("main", "side")
CLASSES = ("amount=1e2&risk=money", "risk=reads")
PartKey = tuple[str, str, str, str]
START_MS = 1_770_000_000_000


@dataclass
class OpenCall:
    """A call under way, as the generator sees it."""

    part: PartKey
    key: bytes
    call_id: str
    revision: int = 1
    trust_class: str = ""


@dataclass
class History:
    """Records of one partition from offset 0; `expected` and `facts` are counted while they are made."""

    partition: int
    rng: random.Random
    records: list[OutRecord] = field(default_factory=list)
    expected: dict[PartKey, Counter[str]] = field(default_factory=dict)
    facts: dict[tuple[PartKey, str], list[tuple[int, str]]] = field(default_factory=dict)
    term: int = -1
    old_terms: list[int] = field(default_factory=list)
    unreadable: int = 0
    _calls: int = 0

    def claim(self, after: int | None = None) -> None:
        """A writer claims the partition; with another `after` than the claim in force it loses."""
        wins = after is None or after == self.term
        seen = self.term if after is None else after
        claim = WriterClaimed(claim_id=f"claim-{len(self.records)}", after=seen, worker="w")
        offset = self._append(b"_log/%d" % self.partition, claim, seen)
        if wins:
            self.old_terms.append(self.term)
            self.term = offset

    def add(self, key: bytes, body: Message, term: int | None = None) -> int:
        """An event of an execution; of a deposed writer where a term is given."""
        return self._append(key, body, self.term if term is None else term)

    def poison(self) -> None:
        """A record that nobody can read."""
        choices = (b"", b"\x00", b"not avro at all", b"\x00\x00\x00\xff\xff???", b"\x00\x00\x00\x00\x35")
        self.records.append(OutRecord(b"someone", self.rng.choice(choices), ()))
        self.unreadable += 1

    def propose(self, part: PartKey | None = None, term: int | None = None) -> OpenCall:
        """An agent proposes a call."""
        part = part or tuple(map(self.rng.choice, (TENANTS, PROJECTS, AGENTS, TOOLS)))  # type: ignore[assignment]
        assert part is not None
        self._calls += 1
        execution = f"e{self.partition}-{self._calls % 7}"
        trust_class = self.rng.choice(CLASSES)
        call = OpenCall(
            part, execution_key(part[0], part[1], execution), f"c{self._calls}", trust_class=trust_class
        )
        self._judged(call, term)
        return call

    def _judged(self, call: OpenCall, term: int | None) -> None:
        self.add(call.key, proposal(call), term)
        self.add(call.key, verdict(call), term)

    def decide(
        self, call: OpenCall, decision: str, *, resolves: bool = True, term: int | None = None
    ) -> None:
        """A person's word on the call."""
        offset = self.add(call.key, decision_on(call, decision, resolves), term)
        if resolves and term is None:
            self._expect(call, {"approve": "approvals", "edit": "edits"}.get(decision, "rejections"))
            fact = {"approve": "approval", "edit": "edit"}.get(decision, "rejection")
            if fact != "approval" or call.revision == 1:
                self._fact(call, offset, fact)
        if decision == "edit":
            call.revision += 1
            self._judged(call, term)

    def revoke(self, call: OpenCall, reason: str = "revoked") -> None:
        """A person takes a release back; or nobody used it in time."""
        revoked = GrantRevoked(call_id=call.call_id, revision=call.revision, reason=reason, by="ann")
        offset = self.add(call.key, revoked)
        if reason != "expired":
            self._fact(call, offset, "revocation")

    def end(self, call: OpenCall, kind: str, term: int | None = None) -> None:
        """The call succeeds, fails, or is denied or cancelled."""
        offset = self.add(call.key, ENDINGS[kind](call), term)
        if kind in ("successes", "failures") and term is None:
            self._expect(call, kind)
        if kind == "failures" and term is None:
            self._fact(call, offset, "failure")

    def doubt(self, call: OpenCall) -> None:
        """Nobody knows how it ended; what a person says then is about the outcome and is no evidence."""
        self.add(call.key, ToolCallOutcomeUnknown(call_id=call.call_id, attempt_id="a", reason="gone"))
        self._expect(call, "unknowns")
        self.add(call.key, decision_on(call, "respond", True))

    def live(self, steps: int) -> History:
        """Do many things at random."""
        if self.term < 0:
            self.claim()
        waiting: list[OpenCall] = []
        for _ in range(steps):
            self._step(waiting)
        return self

    def raws(self, start: int = 0, stop: int | None = None) -> list[RawRecord]:
        """The records as a reader gets them."""
        return [
            RawRecord(self.partition, offset, 0, record.key, record.value, record.headers)
            for offset, record in enumerate(self.records)
            if offset >= start and (stop is None or offset < stop)
        ]

    def _step(self, waiting: list[OpenCall]) -> None:
        chance = self.rng.random()
        if chance < 0.30 or not waiting:
            waiting.append(self.propose())
        elif chance < 0.50:
            self.decide(self.rng.choice(waiting), self.rng.choice(("approve", "approve", "edit")))
        elif chance < 0.55:
            self.decide(self.rng.choice(waiting), "approve", resolves=False)
        elif chance < 0.60:
            call = waiting.pop(self.rng.randrange(len(waiting)))
            self.decide(call, "reject")
            self.end(call, "denied")
        elif chance < 0.80:
            self._run(waiting.pop(self.rng.randrange(len(waiting))))
        elif chance < 0.82:
            self.end(waiting.pop(self.rng.randrange(len(waiting))), "cancelled")
        elif chance < 0.84:
            self.revoke(
                waiting.pop(self.rng.randrange(len(waiting))), self.rng.choice(("revoked", "expired"))
            )
        elif chance < 0.90:
            self._zombie(self.rng.choice(waiting))
        elif chance < 0.94:
            self.poison()
        elif chance < 0.96:
            self.claim()
        elif chance < 0.97:
            self.claim(after=self.rng.choice(self.old_terms))
        else:
            self.add(b"_log/%d" % self.partition, WriterAlive(commands_through=len(self.records)))

    def _run(self, call: OpenCall) -> None:
        self.add(call.key, released(call))
        self.add(call.key, consumed(call))
        if self.rng.random() < 0.1:
            self.doubt(call)
        self.end(call, self.rng.choice(("successes", "successes", "failures")))

    def _zombie(self, call: OpenCall) -> None:
        term = self.rng.choice(self.old_terms)
        act = self.rng.randrange(3)
        if act == 0:
            self.decide(call, "reject", term=term)
        elif act == 1:
            self.end(call, "failures", term=term)
        else:
            self.propose(call.part, term=term)

    def _expect(self, call: OpenCall, kind: str) -> None:
        self.expected.setdefault(call.part, Counter())[kind] += 1

    def _fact(self, call: OpenCall, offset: int, kind: str) -> None:
        name = call.part, call.trust_class
        if kind == "failure" and name not in self.facts:
            # A class begins with the first word of a person.
            return
        self.facts.setdefault(name, []).append((offset, kind))

    def _append(self, key: bytes, body: Message, term: int) -> int:
        offset = len(self.records)
        tenant = key.decode().split("/")[0]
        meta = EventMeta(
            event_id=f"event-{self.partition}-{offset}",
            at_ms=START_MS + offset,
            term=term,
            version=1,
            command_id=f"command-{offset}",
            command_digest=sha256_hex(str(offset)),
            tenant=tenant,
        )
        self.records.append(event_record(body, meta, key))
        return offset


def histories(partitions: int, steps: int, seed: int) -> list[History]:
    """One history a partition."""
    return [History(n, random.Random(f"{seed}/{n}")).live(steps) for n in range(partitions)]


def proposal(call: OpenCall) -> ToolCallProposed:
    return ToolCallProposed(
        call_id=call.call_id,
        revision=call.revision,
        agent=call.part[2],
        tool=call.part[3],
        tool_version="",
        arguments="{}",
        digest="d",
        context="{}",
        claims="{}",
        reason="",
        by="agent",
    )


def verdict(call: OpenCall, **changes: object) -> PolicyVerdictIssued:
    return PolicyVerdictIssued.model_validate(
        {
            "call_id": call.call_id,
            "revision": call.revision,
            "effect": "hold",
            "rules": (),
            "policy_version": "",
            "reason": "no_policy",
            "detail": "",
            "risk_score": 0.5,
            "risk_level": "medium",
            "risk_parts": (),
            "risk_required": 0.9,
            "trust": None,
            "definitions_through": 0,
            "trust_class": call.trust_class,
            **changes,
        }
    )


def decision_on(call: OpenCall, decision: str, resolves: bool) -> DecisionRecorded:
    fields = {"decision": decision, "scope": "once", "edited_arguments": None, "value": None}
    return DecisionRecorded.model_validate(
        {
            **fields,
            "decision_id": "d",
            "hold_id": "h",
            "call_id": call.call_id,
            "revision": call.revision,
            "digest": "d",
            "by": "ann",
            "roles": (),
            "feedback": "",
            "resolves": resolves,
        }
    )


def released(call: OpenCall) -> ToolCallReleased:
    return ToolCallReleased(
        call_id=call.call_id,
        revision=call.revision,
        digest="d",
        grant_id="g",
        decision_id="d",
        released_by="decision",
        arguments="{}",
        expires_at_ms=START_MS,
    )


def consumed(call: OpenCall) -> GrantConsumed:
    return GrantConsumed(
        call_id=call.call_id,
        revision=call.revision,
        digest="d",
        attempt_id="a",
        run_deadline_at_ms=START_MS,
        by="agent",
    )


ENDINGS: dict[str, Callable[[OpenCall], Message]] = {
    "successes": lambda call: ToolCallSucceeded(
        call_id=call.call_id, attempt_id="a", output="{}", duration_ms=1, by="agent"
    ),
    "failures": lambda call: ToolCallFailed(
        call_id=call.call_id, attempt_id="a", error="no", duration_ms=1, by="agent"
    ),
    "denied": lambda call: ToolCallDenied(
        call_id=call.call_id, revision=call.revision, cause="rejected", feedback="", decision_id="d"
    ),
    "cancelled": lambda call: ToolCallCancelled(call_id=call.call_id, reason="given up"),
}

"""Logs made by hand: a builder that appends as the decider does, and realistic histories of many executions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from schemas.canonical import call_digest, canonical, sha256_hex
from schemas.events import calls as c
from schemas.events import definitions as d
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events.log import DefinitionsAdopted, WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.ids import definition_key, derived_id, event_id, execution_key, reuse_event_id
from schemas.message import Message
from schemas.record import EventMeta, RawRecord
from schemas.topics import partition_of

TENANT = "acme"
PROJECT = "main"
AGENT = "billing-bot"
START_MS = 1_760_000_000_000
HOUR_MS = 3_600_000


@dataclass
class LogBuilder:
    """A topic being written: records by partition, each stamped as its writer would."""

    partitions: int = 4
    records: list[list[RawRecord]] = field(default_factory=list)
    term: dict[int, int] = field(default_factory=dict)
    versions: dict[bytes, int] = field(default_factory=dict)
    now_ms: int = START_MS
    commands: int = 0

    def __post_init__(self) -> None:
        self.records = [[] for _ in range(self.partitions)]

    def claim(self, partition: int, worker: str = "w1", after: int | None = None) -> int:
        """Append a claim; it is in force if `after` (by default the claim in force) is."""
        in_force = self.term.get(partition, -1)
        offset = len(self.records[partition])
        named = in_force if after is None else after
        body = WriterClaimed(
            claim_id=derived_id("claim", partition, offset, worker), after=named, worker=worker
        )
        self._append(
            partition, b"_log/%d" % partition, body, derived_id("c", partition, offset, worker), offset, 0
        )
        if named == in_force:
            self.term[partition] = offset
        return offset

    def claim_all(self) -> LogBuilder:
        for partition in range(self.partitions):
            self.claim(partition)
        return self

    def alive(self, partition: int) -> None:
        body = WriterAlive(commands_through=self.commands)
        self._append(partition, b"_log/%d" % partition, body, "", self.term[partition], 0)

    def adopted(self, partition: int, through_offset: int, versions: dict[str, int]) -> None:
        body = DefinitionsAdopted(
            through_offset=through_offset, through_record_id="r", through_term=0, versions=versions
        )
        self._append(partition, b"_log/%d" % partition, body, "adopt", self.term[partition], 0)

    def append(
        self,
        key: bytes,
        bodies: Sequence[Message],
        *,
        command_id: str | None = None,
        term: int | None = None,
        partition: int | None = None,
        digest: str = "",
    ) -> int:
        """Append one command's events; with another `term` than the claim in force they are a zombie's.

        With a `digest` they refuse another body of a command that is there already.

        Returns:
            The offset of the first.
        """
        where = partition_of(key, self.partitions) if partition is None else partition
        in_force = self.term[where]
        counts = term is None or term == in_force
        self.commands += 1
        command = command_id or derived_id("command", key, self.commands, term)
        first = len(self.records[where])
        for index, body in enumerate(bodies):
            version = self.versions.get(key, 0) + 1
            if counts:
                self.versions[key] = version
            self._append(
                where, key, body, command, in_force if term is None else term, version, index, digest
            )
        return first

    def append_raw(self, partition: int, value: bytes) -> int:
        """Append foreign bytes.

        Returns:
            Their offset.
        """
        offset = len(self.records[partition])
        self.records[partition].append(RawRecord(partition, offset, self.now_ms, b"x/y/z", value, ()))
        return offset

    def _append(
        self,
        partition: int,
        key: bytes,
        body: Message,
        command_id: str,
        term: int,
        version: int,
        index: int = 0,
        digest: str = "",
    ) -> None:
        self.now_ms += 7
        offset = len(self.records[partition])
        meta = EventMeta(
            event_id=_event_id(command_id, digest, term, index) or derived_id("log", partition, offset),
            at_ms=self.now_ms,
            term=term,
            version=version,
            command_id=command_id,
            command_digest=digest or sha256_hex(command_id)[:32],
            tenant=key.decode().split("/")[0] if version else "",
        )
        out = event_record(body, meta, key)
        self.records[partition].append(RawRecord(partition, offset, self.now_ms, key, out.value, out.headers))


def _event_id(command_id: str, digest: str, term: int, index: int) -> str:
    if digest:
        return reuse_event_id(command_id, digest, term)
    return event_id(command_id, term, index) if command_id else ""


def key_of(execution_id: str, tenant: str = TENANT, project: str = PROJECT) -> bytes:
    return execution_key(tenant, project, execution_id)


def started(agent: str = AGENT) -> x.ExecutionStarted:
    return x.ExecutionStarted(
        agent=agent, user="u-1", workspace="finance", request="Pay the March invoice", context="{}", by="svc"
    )


def proposed(
    call_id: str, arguments: dict[str, object] | None = None, *, revision: int = 1, tool: str = "send_money"
) -> c.ToolCallProposed:
    text = canonical(arguments or {"amount": 98.7, "recipient": "GB29NWBK60161331926819"})
    return c.ToolCallProposed(
        call_id=call_id,
        revision=revision,
        agent=AGENT,
        tool=tool,
        tool_version="v" * 64,
        arguments=text,
        digest=call_digest(TENANT, AGENT, tool, "v" * 64, text),
        context="{}",
        claims="{}",
        reason="the invoice is due",
        by="svc",
    )


def judged(call: c.ToolCallProposed, effect: c.Effect = "hold") -> c.PolicyVerdictIssued:
    return c.PolicyVerdictIssued(
        call_id=call.call_id,
        revision=call.revision,
        effect=effect,
        rules=("production@3/payments-over-limit",),
        policy_version="production@3",
        reason="rule",
        detail="",
        risk_score=0.62,
        risk_level="medium",
        risk_parts=("destructive", "open_world"),
        risk_required=0.9,
        trust=None,
        definitions_through=4,
    )


def hold_id_of(key: bytes, call_id: str, revision: int = 1) -> str:
    return derived_id("hold", *key.decode().split("/"), call_id, revision)


def held(key: bytes, call: c.ToolCallProposed, **changes: object) -> h.HoldOpened:
    fields: dict[str, object] = {
        "hold_id": hold_id_of(key, call.call_id, call.revision),
        "call_id": call.call_id,
        "request_id": "",
        "revision": call.revision,
        "digest": call.digest,
        "kind": "permission",
        "cause": "policy",
        "question": "Pay 98.7 to GB29NWBK60161331926819?",
        "options": "[]",
        "input_schema": '{"properties":{"amount":{"type":"number"}},"type":"object"}',
        "requester": "svc",
        "roles": ("treasurer",),
        "quorum": 1,
        "exclude_requester": True,
        "deadline_at_ms": START_MS + HOUR_MS,
        "on_timeout": "deny",
        "default_value": None,
        "escalate_at_ms": None,
        "escalate_roles": (),
        "on_reject": "feedback",
    }
    return h.HoldOpened.model_validate(fields | changes)


def decided(hold: h.HoldOpened, decision: str = "approve", **changes: object) -> h.DecisionRecorded:
    fields: dict[str, object] = {
        "decision_id": derived_id("decision", hold.hold_id, decision),
        "hold_id": hold.hold_id,
        "call_id": hold.call_id,
        "revision": hold.revision,
        "digest": hold.digest,
        "decision": decision,
        "by": "ann@acme",
        "roles": ("treasurer",),
        "feedback": "",
        "edited_arguments": None,
        "value": None,
        "scope": "once",
        "resolves": True,
    }
    return h.DecisionRecorded.model_validate(fields | changes)


def released(
    call: c.ToolCallProposed, decision_id: str = "", released_by: str = "decision"
) -> c.ToolCallReleased:
    return c.ToolCallReleased.model_validate(
        {
            "call_id": call.call_id,
            "revision": call.revision,
            "digest": call.digest,
            "grant_id": derived_id("grant", call.call_id, call.revision),
            "decision_id": decision_id or derived_id("policy", call.call_id),
            "released_by": released_by,
            "arguments": call.arguments,
            "expires_at_ms": START_MS + HOUR_MS,
        }
    )


def consumed(call: c.ToolCallProposed) -> c.GrantConsumed:
    return c.GrantConsumed(
        call_id=call.call_id,
        revision=call.revision,
        digest=call.digest,
        attempt_id=derived_id("attempt", call.call_id),
        run_deadline_at_ms=START_MS + HOUR_MS,
        by="svc",
    )


def succeeded(call: c.ToolCallProposed) -> c.ToolCallSucceeded:
    return c.ToolCallSucceeded(
        call_id=call.call_id,
        attempt_id=derived_id("attempt", call.call_id),
        output='{"receipt":"R-1"}',
        duration_ms=120,
        by="svc",
    )


def failed(call: c.ToolCallProposed) -> c.ToolCallFailed:
    return c.ToolCallFailed(
        call_id=call.call_id, attempt_id=derived_id("attempt", call.call_id), error="no funds",
        duration_ms=15, by="svc",
    )  # fmt: skip


def denied(call: c.ToolCallProposed, cause: str, feedback: str = "") -> c.ToolCallDenied:
    return c.ToolCallDenied.model_validate(
        {
            "call_id": call.call_id,
            "revision": call.revision,
            "cause": cause,
            "feedback": feedback,
            "decision_id": "",
        }
    )


def policy_published(name: str, version: int) -> d.PolicyPublished:
    document = canonical({"policy": name, "rules": [], "note": version})
    return d.PolicyPublished(name=name, version=version, document=document, by="ops@acme")


def tool_published(name: str, version: int) -> d.ToolPublished:
    definition = canonical({"name": name, "description": f"v{version}", "inputSchema": {}})
    return d.ToolPublished(
        name=name, version=version, tool_version=sha256_hex(definition), definition=definition, by="ops@acme"
    )


def policy_key(name: str, tenant: str = TENANT) -> bytes:
    return definition_key(tenant, "policy", name)


def tool_key(name: str, tenant: str = TENANT) -> bytes:
    return definition_key(tenant, "tool", name)


def held_cycle(key: bytes, call_id: str, amount: float) -> Iterator[list[Message]]:
    """One call that a person approves, command by command."""
    call = proposed(call_id, {"amount": amount, "recipient": "GB29NWBK60161331926819"})
    hold = held(key, call)
    yield [call, judged(call), hold]
    word = decided(hold)
    yield [word, released(call, word.decision_id)]
    yield [consumed(call)]
    yield [succeeded(call)]


def allowed_cycle(call_id: str) -> Iterator[list[Message]]:
    """One call that the policy lets go."""
    call = proposed(call_id, {"path": "/inbox"}, tool="list_mail")
    yield [call, judged(call, "allow"), released(call, released_by="policy")]
    yield [consumed(call)]
    yield [succeeded(call)]


def rejected_cycle(key: bytes, call_id: str) -> Iterator[list[Message]]:
    """One call that a person rejects."""
    call = proposed(call_id)
    hold = held(key, call)
    yield [call, judged(call), hold]
    yield [decided(hold, "reject", feedback="not this account"), denied(call, "rejected", "not this account")]


def run_of(index: int, draw: random.Random, tenant: str = TENANT) -> tuple[bytes, Iterator[list[Message]]]:
    """One execution with a few calls, command by command."""
    key = key_of(f"run-{index}", tenant)

    def commands() -> Iterator[list[Message]]:
        yield [started()]
        for number in range(draw.choice((1, 1, 2, 3))):
            call_id = f"call-{number}"
            kind = draw.random()
            if kind < 0.6:
                yield from held_cycle(key, call_id, draw.randint(1, 100_000) / 100)
            elif kind < 0.9:
                yield from allowed_cycle(call_id)
            else:
                yield from rejected_cycle(key, call_id)
        yield [x.ExecutionCompleted(result='{"done":true}', by="svc")]

    return key, commands()


def many_runs(
    builder: LogBuilder, runs: int, *, seed: int = 1, at_once: int = 50, tenant: str = TENANT
) -> LogBuilder:
    """Append many executions, some fifty of them under way at any time."""
    draw = random.Random(seed)
    waiting = iter(range(runs))
    active = [run_of(index, draw, tenant) for index, _ in zip(waiting, range(at_once), strict=False)]
    while active:
        slot = draw.randrange(len(active))
        key, commands = active[slot]
        if (bodies := next(commands, None)) is not None:
            builder.append(key, bodies)
        elif (index := next(waiting, None)) is not None:
            active[slot] = run_of(index, draw, tenant)
        else:
            active.pop(slot)
    return builder

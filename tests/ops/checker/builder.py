"""A small log by hand: one execution's events as records, to say one thing wrong and see it told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from log.places import TopicPartition
from ops.checker.calls import digest_of
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events.definitions import PolicyPublished, PolicyRetired, PrincipalPublished
from schemas.events.log import DefinitionsAdopted, WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.ids import TENANT_WIDE, event_id
from schemas.message import Message
from schemas.record import EventMeta, RawRecord

START_MS = 1_780_000_000_000
EVENTS = TopicPartition("placet.executions", 0)
DEFINITIONS = TopicPartition("placet.definitions", 0)
KEY = b"acme/main/x"
HOLD_MS = 60_000


@dataclass
class Story:
    """Events of one partition in order; each is right unless it is told otherwise."""

    raws: list[RawRecord] = field(default_factory=list)
    term: int = 0
    version: int = 0
    now_ms: int = START_MS
    asked: int = 0
    digest: str = ""
    through: int = -1
    definitions: list[RawRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claim(-1)

    def publishes(self, name: str, *subjects: str, **document: Any) -> None:
        """A principal, adopted at once."""
        text = json.dumps({"principal": name, "subjects": subjects, **document})
        body = PrincipalPublished(name=name, version=len(self.definitions), document=text, by="root")
        self._publish(body, f"acme/principal/{name}")

    def publishes_policy(
        self, name: str, version: int = 1, *, project: str = TENANT_WIDE, **document: Any
    ) -> None:
        """A version of a policy, adopted at once."""
        text = json.dumps({"policy": name, **document})
        body = PolicyPublished(name=name, version=version, document=text, by="root", project=project)
        self._publish(
            body, f"acme/policy/{name}" if project == TENANT_WIDE else f"acme/{project}/policy/{name}"
        )

    def retires_policy(self, name: str, version: int = 1) -> None:
        """A policy that is in force no more, adopted at once."""
        self._publish(PolicyRetired(name=name, version=version, reason="", by="root"), f"acme/policy/{name}")

    def _publish(self, body: Message, key: str) -> None:
        if not self.definitions:
            claim = WriterClaimed(claim_id="d", after=-1, worker="w")
            self._define(claim, b"_log/0", EventMeta("claim-d", self.now_ms, -1, 0, "d", "", ""))
        offset = len(self.definitions)
        version = 1 + sum(raw.key == key.encode() for raw in self.definitions)
        meta = EventMeta(f"p-{offset}", self.now_ms, 0, version, f"publish-{offset}", "", "acme")
        self._define(body, key.encode(), meta)
        self.adopts(offset, f"p-{offset}")
        self.through = offset

    def _define(self, body: Message, key: bytes, meta: EventMeta) -> None:
        offset = len(self.definitions)
        self.definitions.append(RawRecord(0, offset, self.now_ms, *event_record(body, meta, key)))

    def claim(self, after: int) -> None:
        """A claim; afterwards its term is told, whether it counts or not."""
        offset = len(self.raws)
        self._add(
            WriterClaimed(claim_id=f"c{offset}", after=after, worker="w"),
            b"_log/0",
            after,
            0,
            f"c{offset}",
            "",
        )
        self.term = offset

    def says(self, *bodies: Message, command_id: str = "", tenant: str = "acme", key: bytes = KEY) -> str:
        """The events of one command."""
        self.asked += 1
        name = command_id or f"command-{self.asked}"
        for body in bodies:
            self.version += 1
            self._add(body, key, self.term, self.version, name, tenant)
        return name

    def adopts(self, offset: int, record_id: str) -> None:
        body = DefinitionsAdopted(
            through_offset=offset, through_record_id=record_id, through_term=0, versions={}
        )
        self._add(body, b"_log/0", self.term, 0, f"adopted-{offset}", "")

    def tries_alone(self, command_offset: int) -> None:
        """A new writer that says which command it decides next."""
        self.claim(self.term)
        body = WriterAlive(commands_through=command_offset - 1, attempting=command_offset)
        self._add(body, b"_log/0", self.term, 0, f"alive-{self.term}", "")

    def starts(self) -> None:
        self.says(x.ExecutionStarted(agent="bot", user="", workspace="", request="", context="{}", by="bot"))

    def proposed(self, revision: int = 1, arguments: str = '{"a":1}', by: str = "bot") -> c.ToolCallProposed:
        plain = c.ToolCallProposed(
            call_id="c",
            revision=revision,
            agent="bot",
            tool="pay",
            tool_version="",
            arguments=arguments,
            digest="",
            context="{}",
            claims="{}",
            reason="",
            by=by,
        )
        self.digest = digest_of("acme", plain)
        return plain.model_copy(update={"digest": self.digest})

    def verdict(self, effect: Any, revision: int = 1) -> c.PolicyVerdictIssued:
        return c.PolicyVerdictIssued(
            call_id="c",
            revision=revision,
            effect=effect,
            rules=(),
            policy_version="",
            reason="",
            detail="",
            risk_score=0.0,
            risk_level="low",
            risk_parts=(),
            risk_required=0.0,
            trust=None,
            definitions_through=self.through,
        )

    def hold(self, hold_id: str = "h", **changes: Any) -> h.HoldOpened:
        plain = h.HoldOpened(
            hold_id=hold_id,
            call_id="c",
            request_id="",
            revision=1,
            digest=self.digest,
            kind="permission",
            cause="policy",
            question="?",
            options="[]",
            input_schema="{}",
            requester="bot",
            roles=(),
            quorum=1,
            exclude_requester=False,
            deadline_at_ms=self.now_ms + HOLD_MS,
            on_timeout="deny",
            default_value=None,
            escalate_at_ms=None,
            escalate_roles=(),
            on_reject="feedback",
        )
        return plain.model_copy(update=changes)

    def decision(self, decision: Any = "approve", by: str = "rita", **changes: Any) -> h.DecisionRecorded:
        plain = h.DecisionRecorded(
            decision_id="d",
            hold_id="h",
            call_id="c",
            revision=1,
            digest=self.digest,
            decision=decision,
            by=by,
            roles=("reviewer",),
            feedback="",
            edited_arguments=None,
            value=None,
            scope="once",
            resolves=True,
        )
        return plain.model_copy(update=changes)

    def release(self, by: Any = "decision", **changes: Any) -> c.ToolCallReleased:
        plain = c.ToolCallReleased(
            call_id="c",
            revision=1,
            digest=self.digest,
            grant_id="g",
            decision_id="d",
            released_by=by,
            arguments='{"a":1}',
            expires_at_ms=self.now_ms + HOLD_MS,
        )
        return plain.model_copy(update=changes)

    def consumed(self, attempt_id: str = "a", **changes: Any) -> c.GrantConsumed:
        plain = c.GrantConsumed(
            call_id="c",
            revision=1,
            digest=self.digest,
            attempt_id=attempt_id,
            run_deadline_at_ms=self.now_ms + HOLD_MS,
            by="bot",
        )
        return plain.model_copy(update=changes)

    def succeeded(self, attempt_id: str = "a", by: str = "bot") -> c.ToolCallSucceeded:
        return c.ToolCallSucceeded(call_id="c", attempt_id=attempt_id, output="1", duration_ms=1, by=by)

    def held(self, **changes: Any) -> None:
        """A run with a call that waits for a person."""
        self.starts()
        proposed = self.proposed()
        self.says(proposed, self.verdict("hold"), self.hold(**changes))

    def released(self) -> None:
        """A run with a call that a person let go."""
        self.held()
        self.says(self.decision(), self.release())

    def _add(self, body: Message, key: bytes, term: int, version: int, command_id: str, tenant: str) -> None:
        offset = len(self.raws)
        meta = EventMeta(
            event_id(command_id, term, offset), self.now_ms, term, version, command_id, "", tenant
        )
        self.raws.append(RawRecord(0, offset, self.now_ms, *event_record(body, meta, key)))


def asked_of(**changes: object) -> str:
    """What an edit asked for, as its release says it."""
    plain = {"roles": ["reviewer"], "reviewers": [], "excluded": [], "quorum": 1, "exclude_requester": False}
    return json.dumps({**plain, "escalate_roles": [], "on_reject": "feedback", "requirements": [], **changes})

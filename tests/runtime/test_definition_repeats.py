"""A definition command that was answered is a repeat for ever: nobody can have its answer forgotten and repeat it.

A signed command has the roles that its sender had then. Put back into the log it may only be taken for what it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.codec import encode
from schemas.envelope import command_digest
from schemas.events.executions import CommandRefused
from schemas.ids import definition_key, event_id
from schemas.message import Message
from schemas.record import Command, Event, EventMeta
from schemas.refusals import Refusal
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime import definitions_partition
from services.runtime.definitions_partition import DefinitionsPartition

AT_MS = 1_780_000_000_000
OLGA = Actor(subject="olga", tenant="acme", project="*", roles=("operator",))
# May decide holds and publish nothing.
RITA = Actor(subject="rita", tenant="acme", project="*", roles=("reviewer",))
EVE = Actor(subject="eve", tenant="evil", project="*", roles=("operator",))
KEY = definition_key("acme", "policy", "pay")
# More than any memory of refusals for all had room for.
MANY = 100_001


def policy(then: str) -> k.PublishPolicy:
    rule = {"id": "r", "match": {"tools": ["send_money"]}, "then": then}
    document = {"policy": "pay", "scope": {"tenant": "*"}, "rules": [rule]}
    return k.PublishPolicy(name="pay", document=json.dumps(document))


LAX, STRICT = policy("allow"), policy("hold")


@dataclass
class Book:
    """The definitions' writer, without a log."""

    partition: DefinitionsPartition = field(
        default_factory=lambda: DefinitionsPartition(Definitions(policies=PolicySet()))
    )
    events: list[Event] = field(default_factory=list)

    def asks(self, body: Message, command_id: str, actor: Actor = OLGA, key: bytes = KEY) -> str:
        """What becomes of a command: the event's type, or a refusal's code, or what it is a repeat of."""
        digest, offset = command_digest(encode(body)), len(self.events)
        seen = self.partition.seen(key, command_id, digest)
        if seen != "new":
            return seen
        command = Command(body, actor, command_id, digest, key, 0, offset, AT_MS + offset)
        (said,) = self.partition.decide(command, AT_MS + offset)
        self.says(said, command_id, digest, actor.tenant, key)
        return str(said.code) if isinstance(said, CommandRefused) else type(said).__name__

    def says(
        self, body: Message, command_id: str, digest: str, tenant: str = "acme", key: bytes = KEY
    ) -> None:
        """Record an event."""
        offset, version = len(self.events), self.partition.next_version(key)
        meta = EventMeta(event_id(command_id, 0, 0), AT_MS, 0, version, command_id, digest, tenant, offset)
        self.events.append(Event(body, meta, key, 0, offset))
        self.partition.apply(self.events[-1])

    def is_refused_often(self, times: int, code: Refusal, by: str, tenant: str, key: bytes) -> None:
        """So many other commands of somebody are refused."""
        body = CommandRefused(code=code, command="PublishPolicy", subject_id="", detail="", by=by)
        for number in range(times):
            self.says(body, f"{by}-{code}-{number}", "other", tenant, key)

    def restarted(self) -> Book:
        """The same, read anew from its log."""
        fresh = Book()
        for event in self.events:
            fresh.events.append(event)
            fresh.partition.apply(event)
        return fresh


def test_case_04_published_version_is_a_repeat_whatever_was_answered_since() -> None:
    book = Book()
    assert book.asks(LAX, "lax") == "PolicyPublished"
    assert book.asks(STRICT, "strict") == "PolicyPublished"
    book.is_refused_often(MANY, Refusal.NOT_FOUND, "eve", "evil", b"evil/policy/nope")

    for each in (book, book.restarted()):
        assert each.asks(LAX, "lax") == "repeated"
        assert each.asks(STRICT, "strict") == "repeated"
        assert each.asks(LAX, "strict") == "reused"


def test_case_04_publication_that_changed_nothing_is_a_repeat_after_another_was_published() -> None:
    """Its sender was no less authorised than that of the version in force then."""
    book = Book()
    book.asks(LAX, "lax")
    assert book.asks(LAX, "again") == "duplicate"
    assert book.asks(k.RetirePolicy(name="pay", version=9), "retire") == "invalid"
    book.asks(STRICT, "strict")
    for by, tenant in (("olga", "acme"), ("eve", "evil")):
        book.is_refused_often(5_000, Refusal.NOT_AUTHORISED, by, tenant, KEY)

    assert book.asks(LAX, "again") == "repeated"
    assert book.asks(k.RetirePolicy(name="pay", version=9), "retire") == "repeated"
    assert book.asks(LAX, "rollback") == "PolicyPublished", "a fresh id says it anew"


def test_refusal_for_want_of_authority_is_forgotten_behind_ones_own_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(definitions_partition, "REFUSED_MAX", 3)
    book = Book()
    assert book.asks(LAX, "mine", RITA) == "not_authorised"
    book.is_refused_often(9, Refusal.FORBIDDEN_ROLE, "anna", "acme", KEY)
    book.is_refused_often(9, Refusal.OWN_REQUEST, "rita", "evil", KEY)
    assert book.asks(LAX, "mine", RITA) == "repeated"

    book.is_refused_often(3, Refusal.NOT_AUTHORISED, "rita", "acme", KEY)
    assert book.asks(LAX, "mine", RITA) == "not_authorised", "decided anew, and by the same roles"
    assert len(book.partition.refused.by_key[KEY].digests) == 9


def test_other_body_under_an_id_that_was_refused_is_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions_partition, "REFUSED_MAX", 3)
    book = Book()
    book.asks(LAX, "mine", RITA)
    assert book.asks(STRICT, "mine", RITA) == "reused"
    refusal = CommandRefused(
        code=Refusal.IDEMPOTENCY_KEY_REUSED, command="PublishPolicy", subject_id="", detail="", by="rita"
    )
    book.says(refusal, "mine", command_digest(encode(STRICT)))
    assert book.asks(STRICT, "mine", RITA) == "repeated"
    assert book.partition.answered == {}

    book.asks(LAX, "lax")
    book.says(refusal, "lax", command_digest(encode(STRICT)))
    assert book.asks(STRICT, "lax") == "repeated"


def test_case_26_same_id_on_another_definition_is_another_command() -> None:
    book = Book()
    theirs = definition_key("evil", "policy", "pay")
    assert book.asks(LAX, "release-1") == "PolicyPublished"
    assert book.asks(STRICT, "release-1", EVE, theirs) == "PolicyPublished"
    assert book.asks(STRICT, "release-1", EVE, theirs) == "repeated"
    assert book.partition.has_answered(KEY, "release-1")
    assert not book.partition.has_answered(definition_key("acme", "policy", "other"), "release-1")

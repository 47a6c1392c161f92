"""Policies at the gateway without a log: the real reader of definitions, the real decider's rules, the real fold."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from gateway.asking.asker import Ask
from gateway.checking.definition_readers import DefinitionReaders
from gateway.live.definitions import LiveDefinitions
from gateway.live.outcome import Outcome, outcome_of
from gateway.operations.plan import Gate, Reply, perform
from gateway.operations.policies import check_policy, plan_policy, plan_retirement
from gateway.problems import Problem
from gateway.resources import PolicyCheck, Published, RetiredPolicy
from schemas.actor import Actor
from schemas.record import Event, EventMeta
from schemas.token import Claims
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.publishing import decide, evolve

INTERNS = (
    'policy: interns\nscope: {agent: "intern-*"}\nrules: [{id: deny-writes, match: {tools: [w]}, then: deny}]'
)
SUPPORT = "policy: support\nscope: {agent: intern-joe}\nrules: [{id: all, then: allow}]"
SHADOWED = (
    "`support` names the agent and wins as a whole: rule deny-writes of `interns` never applies to intern-joe"
)


@dataclass
class Installation:
    """A gate whose commands are decided at once."""

    readers: DefinitionReaders
    decided: Definitions = field(default_factory=lambda: Definitions(policies=PolicySet()))
    live: LiveDefinitions = field(default_factory=LiveDefinitions)
    offset: int = 0

    async def answer(self, ask: Ask, timeout_s: float) -> Outcome:
        events = []
        for body in decide(self.decided, ask.key, ask.body, ask.actor):
            meta = EventMeta(
                f"e{self.offset}", 1_767_614_400_000, 0, 1, "c", "", ask.actor.tenant, self.offset
            )
            events.append(event := Event(body, meta, ask.key, 0, self.offset))
            self.decided = evolve(self.decided, body, ask.actor.tenant, self.offset)
            self.live.apply(event)
            self.offset += 1
        return outcome_of(events)

    @property
    def gate(self) -> Gate:
        async def until(done: Callable[[], bool], timeout_s: float) -> None:
            assert done()

        live = SimpleNamespace(definitions=self.live, missing_adoptions=lambda offset: [], until=until)

        def reply(resource: dict[str, Any], status: int = 200) -> Reply:
            return Reply(status, json.dumps({**resource, "cursor": "k"}).encode())

        gate = SimpleNamespace(
            live=live,
            definitions=self.readers,
            asker=SimpleNamespace(send=self.answer),
            topics=SimpleNamespace(definition_commands="d"),
            json=reply,
        )
        return cast(Gate, gate)


@pytest_asyncio.fixture
async def there() -> AsyncIterator[Installation]:
    readers = DefinitionReaders()
    yield Installation(readers)
    await readers.close()


def claims(*roles: str) -> Claims:
    actor = Actor(subject="olga", tenant="acme", project="web", roles=roles)
    found = SimpleNamespace(actor=actor, publisher=actor, definitions_project="web")
    return cast(Claims, found)


async def put(there: Installation, text: str) -> dict[str, Any]:
    name = text.split()[1]
    reply = await perform(
        there.gate, lambda: plan_policy(there.gate, claims("operator"), name, lambda: text, None)
    )
    found: dict[str, Any] = json.loads(reply.body)
    Published.model_validate(found)
    return found


async def retire(there: Installation, body: dict[str, Any], *roles: str) -> dict[str, Any]:
    reply = await perform(
        there.gate, lambda: plan_retirement(there.gate, claims(*roles), "support", lambda: body, None)
    )
    found: dict[str, Any] = json.loads(reply.body)
    RetiredPolicy.model_validate(found)
    return found


async def test_publish_warns_of_what_is_shadowed_and_of_everything_doubtful(there: Installation) -> None:
    await put(there, INTERNS)
    said = [warning["message"] for warning in (await put(there, SUPPORT))["warnings"]]

    assert said[0].startswith("this rule allows every call")
    assert said[1] == SHADOWED.replace("`support`", "`web/support`").replace("`interns`", "`web/interns`")


async def test_publish_names_every_error_at_once(there: Installation) -> None:
    with pytest.raises(Problem) as refused:
        await put(there, "policy: p\nrules: [{id: a, then: maybe}, {id: b, then: deny, when: args.x >}]")

    assert [problem["path"] for problem in refused.value.fields["errors"]] == [
        "rules[0].then",
        "rules[1].when",
    ]


async def test_check_publishes_nothing_and_says_what_would_change(there: Installation) -> None:
    await put(there, INTERNS)
    changed = INTERNS.replace("then: deny", "then: hold")
    reply = await check_policy(there.gate, claims("reviewer"), "interns", lambda: changed)
    found = json.loads(reply.body)
    PolicyCheck.model_validate(found)

    assert (found["in_force"], found["difference"]["changed"]) == (
        1,
        [{"rule": "deny-writes", "fields": ["then"]}],
    )
    assert len(there.live.policies["acme", "web", "interns"]) == 1


async def test_retire_is_answered_with_who_retired_what_and_why(there: Installation) -> None:
    await put(there, SUPPORT)
    for body, roles in (({"version": 7}, ("operator",)), ({}, ("reviewer",))):
        with pytest.raises(Problem):
            await retire(there, body, *roles)

    found = await retire(there, {"version": 1, "reason": "too wide"}, "operator")

    assert (found["version"], found["retired_by"], found["retired_reason"]) == (1, "olga", "too wide")
    assert (await retire(there, {}, "operator"))["retired_at"] == found["retired_at"]
    assert (await put(there, SUPPORT))["version"] == 2

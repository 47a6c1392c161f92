"""Random walks over calls, edits, changed definitions and second runs: each was let run by whom the policy asks.

The oracle knows no hold: it takes the words that stand on exactly what runs, since the last run, and asks the rules
of now.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.steps import consumed, decided, reported, started
from tests.domain.world import PROJECT, TENANT, published, rule

WALKS, STEPS = 60, 80
ANY_REVIEWER = {"reviewer", "operator", "admin"}
ROLES = ("reviewer", "clerk", "cfo")
AMOUNTS = (10, 500, 5000)
# The rules in their order: the first whose test passes asks.
TESTS: tuple[tuple[str, Callable[[int, bool], bool]], ...] = (
    ("args.amount > 1000.0", lambda amount, _: amount > 1000),
    ("edited", lambda _, edited: edited),
    ("true", lambda *_: True),
)


class Walk:
    """One run whose calls anybody may propose, decide and edit while its definitions change."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.people = [self._person(f"p{number}") for number in range(4)]
        self.rules: list[dict[str, Any]] = []
        self.words: dict[str, list[Actor]] = {}
        self.calls = self.versions = self.runs = 0
        self.world = started(definitions=Definitions(policies=PolicySet()))
        self.publishes()
        self.changes_tool()

    def _person(self, name: str) -> Actor:
        roles = tuple(role for role in ROLES if self.random.random() < 0.5) or ("reviewer",)
        return Actor(subject=name, tenant=TENANT, project=PROJECT, roles=roles)

    def publishes(self) -> None:
        self.rules = [self._rule(f"r{number}", test) for number, (test, _) in enumerate(TESTS)]
        self.world.definitions = published(self.world.definitions, self.rules)

    def _rule(self, name: str, test: str) -> dict[str, Any]:
        asked: dict[str, Any] = {"quorum": self.random.choice((1, 1, 2))}
        if roles := [role for role in ROLES if self.random.random() < 0.4]:
            asked["roles"] = roles
        if self.random.random() < 0.2:
            asked["excluded"] = [self.random.choice(self.people).subject]
        return {**rule(name, "pay", "hold", **asked), "when": test}

    def changes_tool(self) -> None:
        self.versions += 1
        schema = {"type": "object", "description": f"version {self.versions}"}
        tools = [{"name": "pay", "idempotent": True, "inputSchema": schema}]
        self.world.definitions = published(self.world.definitions, tools=tools)

    def proposes(self) -> None:
        self.calls += 1
        self.words = {}
        arguments = f'{{"amount":{self.random.choice(AMOUNTS)}}}'
        self.world.ask(k.ProposeToolCall(call_id=self.call_id, tool="pay", arguments=arguments))

    @property
    def call_id(self) -> str:
        return f"c{self.calls}"

    def decides(self) -> None:
        """Somebody says a word on what waits. It stands on what it was said of, or made of it."""
        waiting = [hold for hold in self.world.state().holds.values() if hold.status == "open"]
        for hold in waiting[-1:]:
            by, content, word = self.random.choice(self.people), {}, "approve"
            if hold.cause != "outcome_unknown" and self.random.random() < 0.4:
                word, content = (
                    "edit",
                    {"edited_arguments": f'{{"amount":{self.random.choice(AMOUNTS)}}}'},
                )
            seen = self.world.state().calls[hold.call_id]
            said = decided(self.world, hold, word, by, **content)
            if not isinstance(said[0], h.DecisionRecorded):
                continue
            made = next((each for each in said if isinstance(each, c.ToolCallProposed)), seen)
            # Who edits has seen one version of the tool: no word stands on another.
            if made.tool_version == seen.tool_version:
                self.words.setdefault(made.digest, []).append(by)

    def runs_it(self) -> None:
        call = self.world.state().calls.get(self.call_id)
        if call is None or call.status != "released":
            return
        said = consumed(self.world, call.digest, f"a{self.runs}", call.call_id)
        if any(isinstance(each, c.GrantConsumed) for each in said):
            self.runs += 1
            self.look(said, call.digest)
            outcome = self.random.choice(("unknown", "unknown", "succeeded"))
            self.words = {}
            reported(self.world, outcome, f"a{self.runs - 1}", call_id=call.call_id)

    def look(self, said: list[Message], digest: str) -> None:
        """Whether today's rule is met by the words on what runs."""
        call = self.world.state().calls[self.call_id]
        amount, edited = json.loads(call.arguments)["amount"], bool(call.proposed_arguments)
        place = next(at for at, (_, passes) in enumerate(TESTS) if passes(amount, edited))
        asked = self.rules[place]["hold"]
        may = {
            person.subject
            for person in self.words.get(digest, ())
            if set(person.roles) & set(asked.get("roles") or ANY_REVIEWER)
            and person.subject not in asked.get("excluded", ())
        }
        assert len(may) >= asked["quorum"], (self.call_id, amount, edited, asked, self.words)


@pytest.mark.parametrize("seed", range(WALKS))
def test_what_runs_was_let_run_by_whom_the_policy_asks(seed: int) -> None:
    walk = Walk(seed)
    steps = (
        walk.decides,
        walk.decides,
        walk.decides,
        walk.runs_it,
        walk.proposes,
        walk.publishes,
        walk.changes_tool,
    )
    walk.proposes()
    for _ in range(STEPS):
        walk.random.choices(steps, (3, 3, 3, 5, 1, 0.5, 0.3))[0]()


def test_walks_run_calls() -> None:
    """Else they would show nothing."""
    walk = Walk(1)
    for _ in range(20):
        walk.proposes()
        for _ in range(6):
            walk.decides()
            walk.runs_it()
    assert walk.runs > 5

"""What a backtest finds: how many verdicts change, which, and what people said of their calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec

from schemas.policy_document import Effect
from schemas.topics import DAY_MS

# What people said of a call, the strongest word first. The first five are against it as it was proposed.
Word = Literal["rejected", "answered", "edited", "harmful", "revoked", "approved", ""]
STRONGEST: tuple[Word, ...] = get_args(Word)
AGAINST: frozenset[Word] = frozenset({"rejected", "answered", "edited", "revoked", "harmful"})
# Said before the call could run: whoever lets it pass overrules them.
BEFORE_A_RUN: frozenset[Word] = frozenset({"rejected", "answered", "edited"})
# Reasons of a release that rests on what people said of other calls, and not on a rule of the policy.
LENT = frozenset({"remembered", "trusted"})
Kind = Literal["newly_asked", "newly_allowed", "newly_denied"]
KIND_OF: dict[Effect, Kind] = {"hold": "newly_asked", "allow": "newly_allowed", "deny": "newly_denied"}
# Of more tools than this, the rest is counted together: names of unknown tools are an agent's choice.
TOOLS_MAX = 500
OTHERS = "(others)"
# Of what was not reproduced and not judged; the rest is counted.
LISTED_MAX = 1_000


class Side(msgspec.Struct, frozen=True):
    """One verdict. `adaptive` is the result of the policy's adaptive block: released, sampled, asked; or empty."""

    effect: Effect
    reason: str
    rules: tuple[str, ...]
    detail: str
    policy: str
    adaptive: str = ""


class Judged(msgspec.Struct):
    """A verdict that the candidate changes, or on whose call people had a word; `word` is the strongest.

    `would_pass` is true if the candidate lets the call run without asking; also if only a draw could keep it from
    that. `presumed` is true if it does so by presumption alone: the verdict did not record the trust or the history
    of the call's values, and with the most permissive ones the call would pass. `arguments` are cut.
    """

    project: str
    execution_id: str
    call_id: str
    revision: int
    at_ms: int
    partition: int
    offset: int
    agent: str
    tool: str
    arguments: str
    before: Side
    after: Side
    would_pass: bool
    presumed: bool = False
    word: Word = ""
    by: str = ""
    feedback: str = ""

    def say(self, word: Word, by: str, feedback: str) -> None:
        """Take a word of people; the strongest stays."""
        if STRONGEST.index(word) < STRONGEST.index(self.word):
            self.word, self.by, self.feedback = word, by, feedback

    @property
    def is_changed(self) -> bool:
        """True if the effect differs."""
        return self.before.effect != self.after.effect

    @property
    def is_overruled(self) -> bool:
        """True if people were against the call, and the candidate would let it pass where it did not pass before.

        A call that the recorded policy released for the same reason does not pass anew. Neither does one that a rule
        of it released, and that people took back or reported after that.
        """
        if not self.would_pass or self.word not in AGAINST:
            return False
        before, after = self.before, self.after
        if before.effect != "allow":
            return True
        is_alike = after.effect == "allow" and after.reason == before.reason
        return not is_alike and (self.word in BEFORE_A_RUN or before.reason in LENT)

    @property
    def passes_again(self) -> bool:
        """True if people were against a call that the recorded policy released, and the candidate releases too."""
        return self.would_pass and self.word in AGAINST and not self.is_overruled


class NotReproduced(msgspec.Struct, frozen=True):
    """A verdict that the policy in force then does not give again; `fields` names what differs, with both values."""

    project: str
    execution_id: str
    call_id: str
    revision: int
    partition: int
    offset: int
    fields: dict[str, tuple[str, str]]


class NotJudged(msgspec.Struct, frozen=True):
    """A verdict that could not be judged again, or a record that could not be read; and why."""

    topic: str
    partition: int
    offset: int
    key: str
    why: str


Pair = tuple[Effect, Effect]


@dataclass(slots=True)
class Found:
    """Everything that a backtest found.

    Attributes:
        project: for which the candidate was taken to be published; `*` for the whole tenant.
        records: read from the log; `events` of them count and are not about the log itself.
        refused: records that do not count by the term rule; `definitions_refused` of the definitions.
        unreadable: records that count and cannot be read.
        set_aside: runs with an event that cannot be read or folded.
        planted: verdicts on planted calls, which are left out: they are no history of the agent.
        forks: runs that `placet fork` made, which are left out likewise: their results are recorded ones.
        judged: verdicts that were judged again; `reproduced` of them came out as recorded by the policy in force.
        by_candidate: verdicts that the candidate judges; others are judged by other policies, or by none.
        effects: how many verdicts had an effect before and have one after.
        tools: the same by tool, and `days` by day (UTC, days since 1970).
        rules: by the candidate's rules, the kinds of change that they caused; by the reason in brackets, such as
            `(unknown_tool)`, where no rule says the effect.
        rows: the verdicts of note.
        not_reproduced, not_judged: the first of them; `unlisted` is how many more were not judged.
        rescored: with another trust function, how many recorded scores the function in force gives again from the
            facts in the log; `rescored_otherwise`: how many it does not.
    """

    project: str
    records: int = 0
    events: int = 0
    refused: int = 0
    definitions_refused: int = 0
    unreadable: int = 0
    set_aside: int = 0
    planted: int = 0
    forks: int = 0
    judged: int = 0
    reproduced: int = 0
    by_candidate: int = 0
    effects: Counter[Pair] = field(default_factory=Counter)
    tools: defaultdict[str, Counter[Pair]] = field(default_factory=lambda: defaultdict(Counter))
    days: defaultdict[int, Counter[Pair]] = field(default_factory=lambda: defaultdict(Counter))
    rules: defaultdict[str, Counter[Kind]] = field(default_factory=lambda: defaultdict(Counter))
    rows: list[Judged] = field(default_factory=list)
    not_reproduced: list[NotReproduced] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    unlisted: int = 0
    rescored: int = 0
    rescored_otherwise: int = 0

    def add(self, other: Found) -> None:
        """Add what was found in the next partition; what is of the whole backtest stays."""
        self.records += other.records
        self.events += other.events
        self.refused += other.refused
        self.unreadable += other.unreadable
        self.set_aside += other.set_aside
        self.planted += other.planted
        self.forks += other.forks
        self.judged += other.judged
        self.reproduced += other.reproduced
        self.by_candidate += other.by_candidate
        self.effects += other.effects
        for tool, effects in other.tools.items():
            self.tools[self._name(tool)] += effects
        for day, effects in other.days.items():
            self.days[day] += effects
        for rule, kinds in other.rules.items():
            self.rules[rule] += kinds
        self.rows += other.rows
        self.not_reproduced += other.not_reproduced[: LISTED_MAX - len(self.not_reproduced)]
        left = LISTED_MAX - len(self.not_judged)
        self.unlisted += other.unlisted + len(other.not_judged[left:])
        self.not_judged += other.not_judged[:left]

    def leave(self, one: NotJudged) -> None:
        """Note what could not be judged or read."""
        if len(self.not_judged) < LISTED_MAX:
            self.not_judged.append(one)
        else:
            self.unlisted += 1

    def differ(self, one: NotReproduced) -> None:
        """Note a verdict that is not given again."""
        if len(self.not_reproduced) < LISTED_MAX:
            self.not_reproduced.append(one)

    @property
    def is_complete(self) -> bool:
        """True if all was read and judged."""
        return not (self.unreadable or self.set_aside or self.not_judged)

    def count(self, tool: str, at_ms: int, before: Side, after: Side, causes: tuple[str, ...]) -> None:
        """Count one verdict that was judged again; `causes` are what says the candidate's effect, if it changes."""
        self.judged += 1
        pair = (before.effect, after.effect)
        self.effects[pair] += 1
        self.tools[self._name(tool)][pair] += 1
        self.days[at_ms // DAY_MS][pair] += 1
        if before.effect != after.effect:
            for cause in causes:
                self.rules[cause][KIND_OF[after.effect]] += 1

    def _name(self, tool: str) -> str:
        """The name under which a tool is counted."""
        return tool if tool in self.tools or len(self.tools) < TOOLS_MAX else OTHERS

    def of_kind(self, kind: Kind) -> Iterator[Judged]:
        """The verdicts that change in this way."""
        return (row for row in self.rows if row.is_changed and KIND_OF[row.after.effect] == kind)

    def count_of(self, kind: Kind) -> int:
        """How many verdicts change in this way."""
        return sum(n for (old, new), n in self.effects.items() if old != new and KIND_OF[new] == kind)

    @property
    def overruled(self) -> list[Judged]:
        """Calls that people were against and that would now pass."""
        return [row for row in self.rows if row.is_overruled]

    @property
    def passing_again(self) -> list[Judged]:
        """Calls that people took back or reported, and that pass as before."""
        return [row for row in self.rows if row.passes_again]

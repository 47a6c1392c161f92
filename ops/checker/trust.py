"""The checker's own reading of trust: what people's words count as, and releases that rest on them.

Written apart from `services.domain.trust` and `schemas.trust_score` on purpose: a mistake there must not be repeated
here. Only the numbers of docs/trust.md are repeated, and SciPy's quantile is used by both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ops.checker.facts import Fact
from ops.checker.people import PeopleAt, PeopleSeen
from ops.checker.published import Published
from ops.checker.samples import SamplesSeen
from ops.checker.scratch import Scratch
from ops.checker.trusted import Unreadable, contradictions, family_of, read
from ops.checker.violations import Violation

DAY_MS = 86_400_000
HALF_LIFE_DAYS, WINDOW_DAYS, QUANTILE = 30, 180, 0.05
NEWEST, NAMES_BYTES = 128, 60_000
RAISES = {"approval": 1.0, "edit": 0.5}
CONTRARY = frozenset({"rejection", "correction", "withdrawal", "revocation", "impact"})
# Both sides round to six digits.
TOLERANCE = 2e-6


class Word(NamedTuple):
    """One fact about a class of calls: its place, what it says, and whose word on whose call it is."""

    partition: int
    offset: int
    trust_class: str
    at_ms: int
    kind: str
    by: tuple[str, ...]
    requester: str


class OfClass(NamedTuple):
    """The calls of a class: `place` is tenant, project, agent and tool."""

    place: tuple[str, ...]
    trust_class: str


@dataclass(slots=True)
class CallWords:
    """What is known of a call that facts about its class depend on."""

    # Who proposed the newest revision, and what trust made of it; whether people have decided on it, or edited it.
    requester: str = ""
    is_sampled: bool = False
    is_decided: bool = False
    is_edited: bool = False
    # Whether it is a sample that waits for people.
    is_waiting: bool = False
    # Approvals that others must join: of which hold, and by whom.
    votes: list[tuple[str, str]] = field(default_factory=list)


class Release(NamedTuple):
    """A release by trust that is looked at once all has been read; `told` is raising, lowering and the bound."""

    where: str
    key: str
    partition: int
    offset: int
    at_ms: int
    adopted_through: int
    through: dict[int, int]
    told: tuple[float, float, float]


class TrustSeen:
    """The facts of all classes, and the releases by trust, until the whole log was read."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.samples = SamplesSeen(scratch)
        # How many releases by trust there are, and of how many the score was computed again.
        self.releases = self.computed = 0
        # Partition → the last offset that was read; and the last one that there was afterwards, where that is known.
        self._read: dict[int, int] = {}
        self._lasts: dict[int, int] = {}

    def counts(self, place: tuple[str, ...], word: Word) -> None:
        """Take a fact about the calls of a class; `place` is tenant, project, agent and tool."""
        if word.trust_class:
            terms = family_of(word.trust_class).terms
            row = (
                json.dumps(place),
                terms,
                word.trust_class,
                word.partition,
                word.offset,
                json.dumps(word[3:]),
            )
            self._scratch.add("INSERT OR REPLACE INTO trust_facts VALUES (?, ?, ?, ?, ?, ?)", [row])

    def released(
        self,
        place: tuple[str, ...],
        fact: Fact,
        digest: str,
        published: Published,
        adopted_through: int,
        report: Callable[[Violation], None],
    ) -> None:
        """Take a verdict by which trust released a call: what it says of itself is checked now, its score later."""
        body = fact.body
        self.releases += 1
        try:
            outcome, trust, history = read(body)
        except Unreadable as error:
            what = "released by trust by an outcome, trust or history that cannot be read"
            report(Violation("I1", fact.where, what, (fact.key, body.call_id, str(error))))
            return
        policy = published.policies.in_force(place[0], body.policy_version, adopted_through)
        for found in contradictions(body, outcome, trust, history, policy, digest):
            report(Violation("I1", fact.where, f"released by trust {found}", (fact.key, body.call_id)))
        if waiting := self.samples.keeping(place, body.trust_class, fact):
            what = "released by trust while a sampled call of its class waits for people"
            report(Violation("I1", fact.where, what, (fact.key, body.call_id, *waiting)))
        told = (trust.raising, trust.lowering, trust.lower_bound)
        at = (fact.where, fact.key, fact.tp.partition, fact.offset, fact.at_ms, adopted_through)
        value = json.dumps([*at, list(trust.through.items()), told])
        self._scratch.add(
            "INSERT INTO trust_releases VALUES (?, ?, ?)", [(json.dumps(place), body.trust_class, value)]
        )

    def read_through(self, partition: int, offset: int) -> None:
        """Say how far a partition was read, −1 for nothing in it; all partitions of the topic are named so."""
        self._read[partition] = max(offset, self._read.get(partition, -1))

    def ends_at(self, partition: int, offset: int) -> None:
        """Say where a partition ended after all had been read."""
        self._lasts[partition] = offset - 1

    def end(self, people: PeopleSeen, report: Callable[[Violation], None]) -> list[str]:
        """Compute the score of each release again, from the facts up to the offsets that it cites.

        Returns:
            A sentence on releases whose score was not computed, if there are any.
        """
        at = lru_cache(maxsize=256)(people.at)
        known: dict[tuple[str, str], list[Word]] = {}
        unknown = 0
        for place, trust_class, value in self._scratch.rows("SELECT * FROM trust_releases ORDER BY 1, 2"):
            one = _release(value)
            if (place, trust_class) not in known:
                known = {(place, trust_class): self._words(place, trust_class)}
            words = known[place, trust_class]
            wrong = self._misquotes(one, words)
            for what in wrong:
                report(Violation("I1", one.where, f"released by trust {what}", (one.key, trust_class)))
            if wrong:
                continue
            if any(offset > self._read[partition] for partition, offset in one.through.items()):
                unknown += 1
                continue
            self.computed += 1
            tenant, project = json.loads(place)[:2]
            found = score(
                words, trust_class, one.through, one.at_ms, at(tenant, project, one.adopted_through)
            )
            if not all(abs(mine - other) <= TOLERANCE for mine, other in zip(found, one.told, strict=True)):
                what = "released by trust that the log does not give"
                report(Violation("I1", one.where, what, (one.key, trust_class, str(one.told), str(found))))
        return [_not_computed(unknown)] if unknown else []

    def _misquotes(self, one: Release, words: Iterable[Word]) -> list[str]:
        """What a release says of the log that is not so: how far it is counted, and that nobody was against it."""
        if one.through.keys() != self._read.keys():
            return ["by facts of other partitions than the log has"]
        beyond = one.through[one.partition] >= one.offset
        if beyond or any(offset > self._lasts.get(n, offset) for n, offset in one.through.items()):
            return ["by facts that the log does not have"]
        # Of its own partition a decider knows all that stands before, also what trust has not counted yet.
        known = range(one.through[one.partition] + 1, one.offset)
        if any(
            word.kind in CONTRARY and word.partition == one.partition and word.offset in known
            for word in words
        ):
            return ["against what people had said in its partition"]
        return []

    def _words(self, place: str, trust_class: str) -> list[Word]:
        """The facts of a class, and those of the classes that close it, in the order of their partitions."""
        own = family_of(trust_class)
        statement = (
            "SELECT part, place_in, class, value FROM trust_facts WHERE place = ? AND terms = ? "
            "ORDER BY class != ?, class, part, place_in"
        )
        rows = self._scratch.rows(statement, (place, own.terms, trust_class))
        return [_word(*row) for row in rows if row[2] == trust_class or family_of(row[2]).closes(own)]


def said(seen: TrustSeen, of: OfClass, words: CallWords, fact: Fact, *, in_doubt: bool) -> None:
    """Take a decision on a call; one on a call in doubt is about what happened, and counts for nothing."""
    body = fact.body
    if not body.resolves:
        if body.decision == "approve":
            words.votes.append((body.hold_id, body.by))
        return
    if not in_doubt:
        edit = "correction" if words.is_sampled else "edit"
        kind = {"approve": "" if words.is_edited else "approval", "edit": edit}.get(
            body.decision, "rejection"
        )
        joined = [by for hold_id, by in words.votes if hold_id == body.hold_id]
        if kind:
            count(seen, of, words, fact, kind, *(joined if body.decision == "approve" else ()), body.by)
    words.is_decided, words.is_edited = True, words.is_edited or body.decision == "edit"


def follow_sample(seen: TrustSeen, of: OfClass, words: CallWords, fact: Fact, *, is_open: bool) -> None:
    """Take any event of a call: whether it is a sample on which nobody has decided.

    Args:
        seen: takes it.
        of: the calls that facts about this one count for.
        words: what is known of it.
        fact: the event.
        is_open: whether it is proposed or held.
    """
    waits = bool(of.trust_class) and words.is_sampled and not words.is_decided and is_open
    if waits and not words.is_waiting:
        seen.samples.begin(of.place, of.trust_class, fact)
    elif words.is_waiting and not waits:
        seen.samples.end(fact)
    words.is_waiting = waits


def is_sampled(adaptive: str | None) -> bool:
    """Whether a verdict says that trust would have released the call, and people were asked all the same."""
    try:
        return bool(adaptive) and json.loads(adaptive or "")["result"] == "sampled"
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def count(seen: TrustSeen, of: OfClass, words: CallWords, fact: Fact, kind: str, *by: str) -> None:
    """Take a fact about the calls of a class."""
    requester = "" if kind == "impact" else words.requester
    word = Word(fact.tp.partition, fact.offset, of.trust_class, fact.at_ms, kind, by, requester)
    seen.counts(of.place, word)


def score(
    words: Iterable[Word], trust_class: str, through: Mapping[int, int], at_ms: int, people: PeopleAt
) -> tuple[float, float, float]:
    """What facts up to some offsets are worth for a class at a time: raising, lowering, and the lower bound."""
    of_classes: dict[str, list[Word]] = {}
    for word in words:
        if word.offset <= through.get(word.partition, -1):
            of_classes.setdefault(word.trust_class, []).append(word)
    found = [
        word
        for name, of_class in of_classes.items()
        for word in _kept(of_class)
        if name == trust_class or word.kind in CONTRARY
    ]
    newest: dict[int, Word] = {}
    for word in found:
        if word.kind in CONTRARY and word.offset >= newest.get(word.partition, word).offset:
            newest[word.partition] = word
    raising, lowering = [], []
    for word in found:
        age = max(0, at_ms // DAY_MS - word.at_ms // DAY_MS)
        weight = 0.0 if age >= WINDOW_DAYS else 2.0 ** (-age / HALF_LIFE_DAYS)
        counts = _is_after(word, newest.values()) and _speaks(word, people)
        raising.append(weight * RAISES.get(word.kind, 0.0) if counts else 0.0)
        lowering.append(0.0 if word.kind == "approval" else weight * (0.5 if word.kind == "edit" else 1.0))
    up, down = round(math.fsum(raising), 6), round(math.fsum(lowering), 6)
    # SciPy takes a quarter of a second to load, and few logs have such releases.
    from scipy.special import betaincinv

    return up, down, math.floor(float(betaincinv(1 + up, 1 + down, QUANTILE)) * 1e6) / 1e6


def _speaks(word: Word, people: PeopleAt) -> bool:
    """Whether the accounts count in favour: none is withdrawn or without roles, and none is the proposer's."""
    proposer = people.person(word.requester)
    return all(
        people.may_act(by) and people.roles(by) != set() and people.person(by) != proposer for by in word.by
    )


def _is_after(word: Word, contrary: Iterable[Word]) -> bool:
    return all(
        word.offset > other.offset if word.partition == other.partition else word.at_ms > other.at_ms
        for other in contrary
    )


def _kept(words: list[Word]) -> list[Word]:
    """What a part of trust keeps, by partition: of each group the newest, and no failure before a person's word."""
    found: list[Word] = []
    for partition in sorted({word.partition for word in words}):
        own = sorted((word for word in words if word.partition == partition), key=lambda word: word.offset)
        first = next((word.offset for word in own if word.kind != "failure"), None)
        if first is None:
            continue
        groups: dict[str, list[Word]] = {}
        for word in own:
            name = "for" if word.kind in RAISES else "against" if word.kind in CONTRARY else "failures"
            if word.offset >= first:
                groups.setdefault(name, []).append(word)
        for group in groups.values():
            found += _fitting(group[-NEWEST:])
    return found


def _fitting(group: list[Word]) -> list[Word]:
    left, kept = NAMES_BYTES, list[Word]()
    for word in reversed(group):
        left -= sum(len(name.encode()) for name in (*word.by, word.requester))
        if left < 0 and kept:
            break
        kept.append(word)
        if left < 0:
            break
    return kept


def _not_computed(count: int) -> str:
    noun = "release" if count == 1 else "releases"
    return (
        f"the score of {count:,} {noun} by trust was not computed again: they cite facts that were written to "
        "other partitions after these had been read. Once they are in the log, another run computes it"
    )


def _release(value: str) -> Release:
    where, key, partition, offset, at_ms, adopted, through, told = json.loads(value)
    return Release(where, key, partition, offset, at_ms, adopted, dict(through), tuple(told))


def _word(partition: int, offset: int, trust_class: str, value: str) -> Word:
    at_ms, kind, by, requester = json.loads(value)
    return Word(partition, offset, trust_class, at_ms, kind, tuple(by), requester)

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
from itertools import combinations
from typing import Any, NamedTuple

from ops.checker.facts import Fact
from ops.checker.people import PeopleAt, PeopleSeen
from ops.checker.scratch import Scratch
from ops.checker.violations import Violation
from schemas.adaptive import draw_of

DAY_MS = 86_400_000
HALF_LIFE_DAYS, WINDOW_DAYS, QUANTILE = 30, 180, 0.05
NEWEST, NAMES_BYTES = 128, 60_000
RAISES = {"approval": 1.0, "edit": 0.5}
CONTRARY = frozenset({"rejection", "correction", "withdrawal", "revocation", "impact"})
# What of the cited trust is computed again.
CITED = ("through", "raising", "lowering", "lower_bound")
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
    # Approvals that others must join: of which hold, and by whom.
    votes: list[tuple[str, str]] = field(default_factory=list)


class TrustSeen:
    """The facts of all classes, and the releases by trust, until the whole log was read."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._ends: dict[int, int] = {}

    def counts(self, place: tuple[str, ...], word: Word) -> None:
        """Take a fact about the calls of a class; `place` is tenant, project, agent and tool."""
        if word.trust_class:
            row = (*_names(place, word.trust_class), word.partition, word.offset, json.dumps(word[3:]))
            self._scratch.add("INSERT OR REPLACE INTO trust_facts VALUES (?, ?, ?, ?, ?)", [row])

    def released(
        self,
        place: tuple[str, ...],
        fact: Fact,
        digest: str,
        adopted_through: int,
        report: Callable[[Violation], None],
    ) -> None:
        """Take a verdict by which trust released a call: what it says of itself is checked now, its score later."""
        body = fact.body
        try:
            outcome, trust = json.loads(body.adaptive or "{}"), json.loads(body.trust or "{}")
            found = [*_contradictions(body, outcome, trust, digest)]
            cited = {name: trust[name] for name in CITED} if trust else None
        except (ValueError, KeyError, TypeError, AttributeError):
            found, cited = ["by an outcome or trust that cannot be read"], None
        for what in found:
            report(Violation("I1", fact.where, f"released by trust {what}", (fact.key, body.call_id)))
        if cited is None:
            return
        value = json.dumps([fact.where, fact.key, fact.at_ms, adopted_through, cited])
        self._scratch.add(
            "INSERT INTO trust_releases VALUES (?, ?, ?)", [(*_names(place, body.trust_class), value)]
        )

    def read_through(self, partition: int, offset: int) -> None:
        """Say how far a partition was read: a log that moves may cite what stands behind that."""
        self._ends[partition] = max(offset, self._ends.get(partition, -1))

    def end(self, people: PeopleSeen, report: Callable[[Violation], None]) -> None:
        """Compute the score of each release again, from the facts up to the offsets that it cites."""
        at = lru_cache(maxsize=256)(people.at)
        known: dict[tuple[str, str], list[Word]] = {}
        for place, trust_class, value in self._scratch.rows("SELECT * FROM trust_releases ORDER BY 1, 2"):
            where, key, at_ms, adopted, cited = json.loads(value)
            through = {int(partition): int(offset) for partition, offset in cited["through"].items()}
            if any(offset > self._ends.get(partition, -1) for partition, offset in through.items()):
                continue
            if (place, trust_class) not in known:
                known = {(place, trust_class): self._words(place, trust_class)}
            tenant, project = json.loads(place)[:2]
            found = score(
                known[place, trust_class], trust_class, through, at_ms, at(tenant, project, adopted)
            )
            told = (cited["raising"], cited["lowering"], cited["lower_bound"])
            if any(abs(mine - other) > TOLERANCE for mine, other in zip(found, told, strict=True)):
                what = "released by trust that the log does not give"
                report(Violation("I1", where, what, (key, trust_class, str(told), str(found))))

    def _words(self, place: str, trust_class: str) -> list[Word]:
        """The facts of a class, and those of the classes that close it, in the order of their partitions."""
        found = []
        for name in _with_closing(trust_class):
            rows = self._scratch.rows(
                "SELECT part, place_in, class, value FROM trust_facts WHERE place = ? AND class = ?",
                (place, name),
            )
            found += [_word(*row) for row in rows]
        return found


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


def is_sampled(adaptive: str | None) -> bool:
    """Whether a verdict says that trust would have released the call, and people were asked all the same."""
    try:
        return bool(adaptive) and json.loads(adaptive or "")["result"] == "sampled"
    except (ValueError, KeyError, TypeError):
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


def _contradictions(
    body: Any, outcome: Mapping[str, Any], trust: Mapping[str, Any], digest: str
) -> Iterable[str]:
    """What a verdict that trusts says against itself, by docs/trust.md."""
    if outcome.get("result") != "released" or not trust:
        yield "without an outcome or trust that say so"
        return
    if trust["trust_class"] != body.trust_class or not body.trust_class:
        yield "in another class of calls"
    if trust["contrary_at"]:
        yield "against what people had said"
    if trust["lower_bound"] != outcome["lower_bound"]:
        yield "by another bound than that of its trust"
    if outcome["floor"] is None or outcome["lower_bound"] < max(outcome["required"], outcome["floor"]):
        yield "that is not enough"
    if outcome["required"] < body.risk_required:
        yield "that must outweigh less than its risk"
    draw = draw_of(outcome["seed"], body.call_id, body.revision, digest)
    if not outcome["seed"] or draw != outcome["draw"] or draw < outcome["sample_rate"]:
        yield "against its draw"


def _with_closing(trust_class: str) -> list[str]:
    """A class, and those with fewer of `novel` and `tainted` in their risk."""
    head, mark, risk = trust_class.rpartition("risk=")
    parts = risk.split(",")
    past = [part for part in ("novel", "tainted") if part in parts]
    rest = [part for part in parts if part not in past and part]
    fewer = [kept for count in range(len(past)) for kept in combinations(past, count)]
    return [trust_class, *(f"{head}{mark}{','.join(sorted([*rest, *kept]))}" for kept in fewer)]


def _names(place: tuple[str, ...], trust_class: str) -> tuple[str, str]:
    return json.dumps(place), trust_class


def _word(partition: int, offset: int, trust_class: str, value: str) -> Word:
    at_ms, kind, by, requester = json.loads(value)
    return Word(partition, offset, trust_class, at_ms, kind, tuple(by), requester)

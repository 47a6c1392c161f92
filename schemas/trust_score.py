"""The score of trust: what the facts about an agent's calls of one class are worth at a moment of the log.

The share of such calls that people approve unchanged has a Beta posterior, from a uniform prior:

    raising  = Σ weight × (1 for an approval, ½ for an edit)
    lowering = Σ weight × (½ for an edit, 1 for anything else)
    weight   = 2^(−age in days / HALF_LIFE_DAYS); 0 from WINDOW_DAYS on

and the score is its lower credible bound: the QUANTILE of Beta(1 + raising, 1 + lowering). So little evidence is
little trust. Days are UTC days of the log's time: facts of one day have the same weight, whatever their order.

After a contrary fact trust is earned anew: what had raised it until then counts no more, while the fact itself lowers
it. A fact does not raise trust if it is the word of an account that is withdrawn today, or of the call's requester.

Sums over the partitions of the log do not depend on the order of the partitions.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.principals import TenantPeople
from schemas.topics import DAY_MS
from schemas.trust import ANY, AgainstValue, ClassFact, FactKind

QUANTILE = 0.05
HALF_LIFE_DAYS = 30
WINDOW_DAYS = 180
# The confidence of an interval in a report.
INTERVAL = 0.95
# Of the facts of a part so many of each group are kept (`group_of`).
KEPT_MAX = 128
# And of these so many that the names of their accounts are within this, in UTF-8: a part is one record.
KEPT_NAMES_MAX_BYTES = 60_000
# Of the contrary facts that are not kept, so many values are.
AGAINST_MAX = 1_024
_PRECISION = 10**6

RAISES: Mapping[FactKind, float] = {"approval": 1.0, "edit": 0.5}
LOWERS: Mapping[FactKind, float] = {
    "edit": 0.5,
    "rejection": 1.0,
    "correction": 1.0,
    "withdrawal": 1.0,
    "revocation": 1.0,
    "failure": 1.0,
    "impact": 1.0,
}
# After one of these trust is earned anew.
CONTRARY: frozenset[FactKind] = frozenset({"rejection", "correction", "withdrawal", "revocation", "impact"})


class TrustFunction(NamedTuple):
    """What a score is computed by: the quantile, the half-life of a fact, and how long one counts at all, in days."""

    quantile: float = QUANTILE
    half_life_days: float = HALF_LIFE_DAYS
    window_days: int = WINDOW_DAYS


IN_FORCE = TrustFunction()


class Placed(NamedTuple):
    """A fact with the partition of the log that has it."""

    partition: int
    fact: ClassFact


class Posterior(NamedTuple):
    """What facts are worth; the sums are rounded to six digits, the bound is rounded down to them."""

    lower_bound: float
    raising: float
    lowering: float


class Weighed(NamedTuple):
    """A fact with what it adds to `raising` and to `lowering`."""

    placed: Placed
    raising: float
    lowering: float


def weighed(
    placed: Iterable[Placed],
    now_ms: int,
    discounted: Callable[[ClassFact], bool] = lambda fact: False,
    by: TrustFunction = IN_FORCE,
) -> tuple[Weighed, ...]:
    """The worth of each fact, in the order given.

    Args:
        placed: the facts of one class, of any partitions, in any order.
        now_ms: the log's time, milliseconds since the epoch.
        discounted: true for a fact whose word does not raise trust; it depends on the fact's `by` and `requester`.
        by: the function; a backtest can try another one.
    """
    facts = tuple(placed)
    begins, today = _begins(facts), now_ms // DAY_MS
    # Few people decide, on few days: what depends on them alone is computed once.
    words: dict[tuple[tuple[str, ...], str], bool] = {}
    weights: dict[int, float] = {}
    found = []
    for one in facts:
        fact = one.fact
        day = fact.at_ms // DAY_MS
        if day not in weights:
            weights[day] = _weight(today - day, by)
        word = (fact.by, fact.requester)
        if word not in words:
            words[word] = not discounted(fact)
        raises = words[word] and fact.kind in RAISES and _is_after(one, begins)
        raising = RAISES[fact.kind] * weights[day] if raises else 0.0
        found.append(Weighed(one, raising, LOWERS.get(fact.kind, 0.0) * weights[day]))
    return tuple(found)


def posterior(
    placed: Iterable[Placed],
    now_ms: int,
    discounted: Callable[[ClassFact], bool] = lambda fact: False,
    by: TrustFunction = IN_FORCE,
) -> Posterior:
    """The worth of facts together; see `weighed`."""
    return total(weighed(placed, now_ms, discounted, by), by.quantile)


def total(facts: Iterable[Weighed], quantile: float = QUANTILE) -> Posterior:
    """The score of weighed facts."""
    found = tuple(facts)
    raising = round(math.fsum(one.raising for one in found), 6)
    lowering = round(math.fsum(one.lowering for one in found), 6)
    return Posterior(lower_bound(raising, lowering, quantile), raising, lowering)


def lower_bound(raising: float, lowering: float, quantile: float = QUANTILE) -> float:
    """The quantile of Beta(1 + raising, 1 + lowering), rounded down to six digits."""
    # Loading it takes a quarter of a second, which would delay a decider's start.
    from scipy.special import betaincinv

    return math.floor(float(betaincinv(1 + raising, 1 + lowering, quantile)) * _PRECISION) / _PRECISION


def share_interval(found: int, of: int) -> tuple[float, float]:
    """The exact 95 % interval (Clopper and Pearson) of a share that `found` of `of` cases show; 0 to 1 for none."""
    from scipy.special import betaincinv

    tail = (1 - INTERVAL) / 2
    lower = 0.0 if found == 0 else float(betaincinv(found, of - found + 1, tail))
    upper = 1.0 if found == of else float(betaincinv(found + 1, of - found, 1 - tail))
    return round(lower, 6), round(upper, 6)


def weight(at_ms: int, now_ms: int) -> float:
    """The weight of a fact: 1 on its own day, and before it if the clock of another partition is behind."""
    return _weight(now_ms // DAY_MS - at_ms // DAY_MS)


def _weight(days: int, by: TrustFunction = IN_FORCE) -> float:
    return 0.0 if days >= by.window_days else float(2.0 ** (-max(0, days) / by.half_life_days))


def kept(facts: Iterable[ClassFact]) -> tuple[ClassFact, ...]:
    """The facts that a part keeps, in the order of their offsets: of each group, so that none displaces another's."""
    groups: dict[int, list[ClassFact]] = {}
    for fact in facts:
        groups.setdefault(group_of(fact.kind), []).append(fact)
    newest = (fact for group in groups.values() for fact in _within_names(group[-KEPT_MAX:]))
    return tuple(sorted(newest, key=lambda fact: fact.offset))


def _within_names(facts: Sequence[ClassFact]) -> Sequence[ClassFact]:
    """The newest facts whose accounts' names are short enough together; the newest one in any case."""
    left = KEPT_NAMES_MAX_BYTES
    for index in range(len(facts) - 1, -1, -1):
        left -= sum(len(name.encode()) for name in (*facts[index].by, facts[index].requester))
        if left < 0:
            return facts[min(index + 1, len(facts) - 1) :]
    return facts


def against_of(
    before: Iterable[AgainstValue], dropped: Iterable[ClassFact], now_ms: int
) -> tuple[AgainstValue, ...]:
    """The values of the contrary facts that a part keeps no more, with what these are worth; the oldest first.

    Without them, as many rejections of anything as a part keeps would make people forget whom they have rejected.

    Args:
        before: the values of those that were dropped earlier.
        dropped: the facts that are dropped now, of any kind.
        now_ms: the log's time; values whose newest fact has no weight any more are left out.

    Returns:
        At most `AGAINST_MAX` values; if there were more, also `ANY`, which stands for the oldest ones.
    """
    found = {value: (worth, at_ms) for value, worth, at_ms in before}
    for fact in dropped:
        for value in fact.values if fact.kind in CONTRARY else ():
            found[value] = _together(found.get(value), (1.0, fact.at_ms))
    found = {value: one for value, one in found.items() if weight(one[1], now_ms)}
    rest = found.pop(ANY, None)
    values = sorted(found, key=lambda value: (found[value][1], value))
    for value in values[:-AGAINST_MAX]:
        rest = _together(rest, found.pop(value))
    more = ((ANY, *rest),) if rest else ()
    return (*more, *((value, *found[value]) for value in values[-AGAINST_MAX:]))


def _together(one: tuple[float, int] | None, other: tuple[float, int]) -> tuple[float, int]:
    """What two sums are worth at the time of the newer one: halving by days, they can be added at any time."""
    if one is None:
        return other
    at_ms = max(one[1], other[1])
    return sum(worth * weight(then_ms, at_ms) for worth, then_ms in (one, other)), at_ms


def group_of(kind: FactKind) -> int:
    """The group of a fact: those that raise trust, contrary ones, and failures, which an agent reports itself."""
    return 0 if kind in RAISES else 1 if kind in CONTRARY else 2


def _begins(facts: Iterable[Placed]) -> dict[int, ClassFact]:
    """The newest contrary fact of each partition that has one."""
    newest: dict[int, ClassFact] = {}
    for partition, fact in facts:
        if fact.kind in CONTRARY and (partition not in newest or fact.offset > newest[partition].offset):
            newest[partition] = fact
    return newest


def _is_after(one: Placed, begins: Mapping[int, ClassFact]) -> bool:
    """True if a fact is surely after each contrary one; in one millisecond, facts of two partitions have no order."""
    return all(
        one.fact.offset > fact.offset if partition == one.partition else one.fact.at_ms > fact.at_ms
        for partition, fact in begins.items()
    )


def discounting(people: TenantPeople) -> Callable[[ClassFact], bool]:
    """Whose word does not raise trust today: a withdrawn account's, and a person's on their own proposal."""

    def is_discounted(fact: ClassFact) -> bool:
        requester = people.name_of(fact.requester)
        return any(_is_withdrawn(by, people) or people.name_of(by) == requester for by in fact.by)

    return is_discounted


def _is_withdrawn(account: str, people: TenantPeople) -> bool:
    return people.is_disabled(account) or people.roles_of(account) == ()

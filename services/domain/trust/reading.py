"""Trust as a verdict cites it: counts for the tool, and the score of the call's class (`schemas.trust_score`)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from schemas.principals import People, TenantPeople
from schemas.topics import DAY_MS
from schemas.trust import ClassPart
from schemas.trust_score import Posterior, discounting, posterior
from services.domain.trust.book import KnownTrust

_SCORES_MAX = 4_096


class _Score(NamedTuple):
    people: People
    score: Posterior


_Names = tuple[tuple[str | int, ...], ...]
_scores: dict[tuple[int, _Names, _Names], _Score] = {}


class Contrary(Struct, frozen=True):
    """What keeps trust from releasing a class of calls in the partition that judges, with its place in the log.

    Without `is_open` it is a contrary fact, until trust has counted it; with it, a sampled call that is not decided.
    """

    partition: int
    offset: int
    is_open: bool = False

    def holds_beside(self, through: Mapping[int, int]) -> bool:
        """True if it still counts beside trust that is counted through these offsets."""
        return self.is_open or self.offset > through.get(self.partition, -1)


def trust_value(
    known: KnownTrust,
    trust_class: str,
    now_ms: int,
    people: TenantPeople,
    contrary: Contrary | None = None,
) -> dict[str, Any]:
    """The trust in a project's agent with a tool and one class of its calls, as JSON.

    Args:
        known: what is known of them.
        trust_class: the class.
        now_ms: the log's time.
        people: the tenant's people: the words of withdrawn accounts do not raise trust.
        contrary: what may keep the class from being released; while it counts, the score is 0.

    Returns:
        The counts, the class with its score, `through` (partition as text → offset) of the facts that are in it, and
        `contrary_at` (`partition@offset`), what keeps the class from being released, or empty.
    """
    return fields_of(known, trust_class, _score(known, now_ms, people), contrary)


def _score(known: KnownTrust, now_ms: int, people: TenantPeople) -> Posterior:
    """The score of a class: computed once for the same parts, day and people."""
    # Apart: of a class without facts, those that close it are not its own.
    own, closing = (tuple(map(_name_of, parts)) for parts in (known.classes, known.closing))
    key = (now_ms // DAY_MS, own, closing)
    found = _scores.get(key)
    if found is None or found.people is not people.people:
        score = posterior(known.facts, now_ms, discounting(people))
        if len(_scores) >= _SCORES_MAX:
            _scores.clear()
        found = _scores[key] = _Score(people.people, score)
    return found.score


def _name_of(part: ClassPart) -> tuple[str | int, ...]:
    """What a part's facts follow from: its class, and how far the log is counted in it."""
    names = (part.tenant, part.project, part.agent, part.tool, part.trust_class)
    return (*names, part.partition, part.through_offset, part.counted, part.topic_id)


def fields_of(
    known: KnownTrust, trust_class: str, found: Posterior, contrary: Contrary | None
) -> dict[str, Any]:
    """The value of a given score; see `trust_value`."""
    waits = contrary is not None and contrary.holds_beside(known.through)
    return {
        **known.counts,
        "trust_class": trust_class,
        "lower_bound": 0.0 if waits else found.lower_bound,
        "raising": found.raising,
        "lowering": found.lowering,
        "contrary_at": f"{contrary.partition}@{contrary.offset}" if contrary is not None and waits else "",
        "through": {str(partition): offset for partition, offset in known.through.items()},
    }

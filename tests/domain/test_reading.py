"""The score of a class as verdicts cite it, whatever was computed before it."""

import itertools
from typing import Any

import pytest

from schemas.principals import People
from schemas.trust import ClassFact, ClassPart
from schemas.trust_score import lower_bound
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from services.domain.trust.reading import trust_value
from tests.domain.world import START_MS

PEOPLE = People().of("acme")
KNOWN, NOVEL = "to=text&risk=writes", "to=text&risk=novel,writes"
_fresh = itertools.count()


def part(*kinds: Any) -> ClassPart:
    """The part of a class with these facts, of a log that no other test has."""
    facts = tuple(
        ClassFact(offset=number, at_ms=START_MS, kind=kind, by=("rita",), requester="bot")
        for number, kind in enumerate(kinds)
    )
    return ClassPart(
        tenant="acme",
        project="main",
        agent="bot",
        tool="pay",
        trust_class=KNOWN,
        partition=0,
        facts=facts,
        begins_at=0,
        counted=len(facts),
        through_offset=len(facts) - 1,
        record_id="r",
        term=1,
        topic_id=f"log {next(_fresh)}",
    )


def cited(trust_class: str, own: tuple[ClassPart, ...], closing: tuple[ClassPart, ...]) -> dict[str, Any]:
    known = KnownTrust(combine(()), own, {0: 10**6}, (*own, *closing), closing)
    return trust_value(known, trust_class, START_MS, PEOPLE)


@pytest.mark.parametrize("is_first", [True, False], ids=["known first", "new first"])
def test_class_without_facts_has_no_score_of_the_class_that_closes_it(is_first: bool) -> None:
    trusted = part(*["approval"] * 30)
    asked = [lambda: cited(KNOWN, (trusted,), ()), lambda: cited(NOVEL, (), (trusted,))]
    found = [ask() for ask in (asked if is_first else reversed(asked))]
    known, new = found if is_first else reversed(found)

    assert (known["raising"], known["lower_bound"]) == (30.0, lower_bound(30, 0))
    assert (new["raising"], new["lower_bound"]) == (0.0, lower_bound(0, 0))


def test_contrary_facts_of_the_class_that_closes_another_lower_it() -> None:
    found = cited(NOVEL, (), (part("approval", "rejection"),))

    assert (found["raising"], found["lowering"]) == (0.0, 1.0)

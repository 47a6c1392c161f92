"""Thousands of classes with the same terms: what their contrary facts close, without a comparison of each two."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.topics import DAY_MS
from schemas.trust import ANY, ClassFact, ClassPart
from schemas.trust_family import PATHS_MAX_CHARS, closes, family_of, history_part
from schemas.trust_score import CONTRARY, Placed, discounting, weighed
from services.domain.trust.approved import CLASSES_MAX, Approved, Together
from services.domain.trust.book import TrustBook
from services.domain.trust.closing import newest_contrary
from services.domain.trust.reading import trust_value
from tests.domain.test_approved import NOW, PEOPLE, approved, fact, known
from tests.domain.test_trust import Feed, checkpoint

PATHS = ("a", "b", "c")
KINDS = ("approval", "approval", "edit", "failure", "rejection", "impact")


def class_of(novel: frozenset[str], tainted: frozenset[str], claim: str, terms: str = "to=text") -> str:
    parts = [
        *([history_part("novel", novel)] if novel else []),
        *([history_part("tainted", tainted)] if tainted else []),
    ]
    return f"{terms}&risk={','.join([claim, *parts, 'writes'])}"


# More paths than a class names are a digest.
MARKS = st.one_of(st.frozensets(st.sampled_from(PATHS)), st.just(frozenset({"p" * PATHS_MAX_CHARS, "q"})))
NAMES = st.builds(
    class_of, MARKS, MARKS, st.sampled_from(("money", "open_world")), st.sampled_from(("to=text", "n=1e0"))
)
# A class, a partition, what it is, of which day and of which value.
ROWS = st.lists(
    st.tuples(
        st.one_of(NAMES, st.just("to=text&risk=novel,writes")),
        st.integers(0, 2),
        st.sampled_from(KINDS),
        st.integers(0, 3),
        st.sampled_from(("v", "w", "x")),
    ),
    max_size=40,
)
Rows = list[tuple[str, int, str, int, str]]


def parts_of(rows: Rows) -> list[ClassPart]:
    """The parts of the facts, each of which is at an offset of its own."""
    facts: defaultdict[tuple[str, int], list[ClassFact]] = defaultdict(list)
    for offset, (name, partition, kind, day, value) in enumerate(rows):
        numbers = (("amount", float(offset), offset + 1.0),) if kind == "approval" else ()
        fact = {
            "offset": offset,
            "at_ms": NOW - day * DAY_MS,
            "kind": kind,
            "values": (value,),
            "numbers": numbers,
        }
        facts[name, partition].append(ClassFact.model_validate(fact))
    return [
        known(*of_part, trust_class=name, partition=partition).model_copy(
            update={"last_evidence_at_ms": max(fact.at_ms for fact in of_part)}
        )
        for (name, partition), of_part in facts.items()
    ]


def counting(parts: list[ClassPart], name: str) -> list[Placed]:
    """The contrary facts that count for a class: those of each class that closes it."""
    return [
        Placed(part.partition, fact)
        for part in parts
        if closes(part.trust_class, name)
        for fact in part.facts
        if fact.kind in CONTRARY
    ]


def approved_one_by_one(parts: list[ClassPart]) -> Approved:
    """What `approved_by` says, with each class weighed beside all facts that count for it."""
    worth: defaultdict[str, float] = defaultdict(float)
    numbers: dict[tuple[str, str], tuple[float, float]] = {}
    together: defaultdict[str, list[Together]] = defaultdict(list)
    for name in dict.fromkeys(part.trust_class for part in parts):
        own = [
            Placed(part.partition, fact) for part in parts if part.trust_class == name for fact in part.facts
        ]
        others = [one for one in counting(parts, name) if one not in own]
        of_class: defaultdict[str, float] = defaultdict(float)
        for one in weighed([*own, *others], NOW, discounting(PEOPLE))[: len(own)]:
            (value,) = one.placed.fact.values
            of_class[value] += one.raising - one.lowering
            if one.raising:
                ranges = {path: (least, most) for path, least, most in one.placed.fact.numbers}
                family = family_of(name)
                together[family.terms].append(Together(family.novel, {value: 1}, [ranges]))
                for path, least, most in one.placed.fact.numbers:
                    for by in (ANY, value):
                        before = numbers.get((by, path), (least, most))
                        numbers[by, path] = min(least, before[0]), max(most, before[1])
        for value, share in of_class.items():
            worth[value] += share
    return Approved(dict(worth), numbers, dict(together))


def approvals_in(one: Approved) -> dict[str, Counter[str]]:
    """Of the terms of some classes, each approval: its values and numbers, in whatever parts they are kept."""
    found: dict[str, Counter[str]] = {}
    for terms, parts in one.together.items():
        for part in parts:
            for number, ranges in enumerate(part.numbers):
                values = sorted(value for value, bits in part.approvals.items() if bits >> number & 1)
                approval = (sorted(part.novel), values, sorted(ranges.items()))
                found.setdefault(terms, Counter())[repr(approval)] += 1
    return found


def test_class_whose_paths_are_a_digest_is_closed_by_every_class_of_its_terms() -> None:
    paths = [f"address_line_{number}" for number in range(14)]
    few, many = class_of(frozenset(paths[:2]), frozenset(), ""), class_of(frozenset(paths), frozenset(), "")
    rejected = known(fact(1, "rejection"), trust_class=few)
    asked = known(fact(2), trust_class=many)

    assert "~" in many
    assert closes(few, many)
    assert not closes(many, few)
    found = newest_contrary({few: [rejected], many: [asked]})
    assert [one.fact.kind for one in found[many]] == ["rejection"]


@given(ROWS)
def test_newest_contrary_facts_of_each_class_are_those_of_all_that_close_it(rows: Rows) -> None:
    parts = parts_of(rows)
    classes: dict[str, list[ClassPart]] = {}
    for part in parts:
        classes.setdefault(part.trust_class, []).append(part)

    found = newest_contrary(classes)

    assert found.keys() == classes.keys()
    for name in classes:
        newest = {
            one.partition: one for one in sorted(counting(parts, name), key=lambda one: one.fact.offset)
        }
        assert {one.partition: one for one in found[name]} == newest


@given(ROWS)
def test_values_are_approved_as_if_each_class_was_compared_with_each_other_one(rows: Rows) -> None:
    parts = parts_of(rows)
    found, expected = approved(*parts), approved_one_by_one(parts)

    assert found.worth == pytest.approx(expected.worth, abs=2e-5)
    assert (found.numbers, approvals_in(found)) == (expected.numbers, approvals_in(expected))


@given(ROWS, st.one_of(NAMES, st.just("")))
def test_book_finds_the_facts_of_a_class_and_of_all_that_close_it(rows: Rows, name: str) -> None:
    feed = Feed(TrustBook(dict.fromkeys(range(3), 0), "topic-id"), partitions=3)
    parts = parts_of(rows)
    for partition in range(3):
        feed(*(part for part in parts if part.partition == partition))
        evidence = sum(part.counted for part in parts if part.partition == partition)
        feed(checkpoint(len(rows), evidence, partition))

    trust = feed.book.known("acme", "main", "bot", "pay", name)

    assert trust is not None
    own = [Placed(part.partition, fact) for part in parts if part.trust_class == name for fact in part.facts]
    others = [one for one in counting(parts, name) if one not in own] if name else []
    assert sorted(trust.facts, key=repr) == sorted([*own, *others], key=repr)


@pytest.mark.parametrize("kind", ["claims", "arguments", "digests"])
def test_time_of_a_new_fact_grows_with_the_number_of_classes_and_not_with_its_square(kind: str) -> None:
    def name(number: int) -> str:
        if kind == "claims":
            return class_of(frozenset(), frozenset(), f"claim{number}")
        if kind == "digests":
            return class_of(frozenset((f"~{number:032x}",)), frozenset(), "money")
        return class_of(frozenset(f"a{bit}" for bit in range(11) if number >> bit & 1), frozenset(), "money")

    def seconds(count: int) -> float:
        kinds = ("rejection", "approval")
        classes = [
            known(
                *(
                    ClassFact.model_validate({"offset": 2 * n + k, "at_ms": NOW, "kind": kinds[k]})
                    for k in (0, 1)
                ),
                trust_class=name(n),
            )
            for n in range(count)
        ]
        feed = Feed(TrustBook({0: 0}, "topic-id"))
        feed(*classes, checkpoint(2 * count, 2 * count))
        took = []
        for more in range(3):
            offset = 2 * count + more
            newer = ClassFact.model_validate({"offset": offset, "at_ms": NOW, "kind": "rejection"})
            classes[0] = known(*classes[0].facts, newer, trust_class=name(0))
            feed(classes[0], checkpoint(offset, offset + 1))
            began = time.process_time()
            trust = feed.book.known("acme", "main", "bot", "pay", name(count - 1))
            assert trust is not None
            assert approved(*trust.all_classes).is_whole
            trust_value(trust, name(count - 1), NOW, PEOPLE)
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(CLASSES_MAX) < 8 * seconds(CLASSES_MAX // 4) + 0.05

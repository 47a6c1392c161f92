"""The values that people have approved: those of the approvals that raise trust today."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from schemas.call_history import CallHistory
from schemas.principals import People, TenantPeople
from schemas.record import RawRecord
from schemas.topics import DAY_MS
from schemas.trust import ANY, ClassFact, ClassPart, read_trust, trust_record
from schemas.trust_score import KEPT_MAX, WINDOW_DAYS
from services.domain.policy.history import history_of
from services.domain.policy.identifying import MAX_NUMBERS, MAX_VALUES
from services.domain.trust.approved import (
    CLASSES_MAX,
    FACTS_MAX,
    NOTHING_APPROVED,
    Approved,
    approved_by,
)
from services.domain.trust.book import KnownTrust, TrustBook
from services.domain.trust.counting import Evidence, combine, count_in_class
from services.processors.attribution import OpenCalls
from tests.domain.steps import decided, held, proposed
from tests.domain.test_trust import Feed, checkpoint
from tests.domain.trusting import Known, world_of
from tests.domain.world import START_MS
from tests.domain.world import names as names_of

NOW = START_MS + 5 * DAY_MS
PEOPLE = People().of("acme")
NOTHING_NEW: frozenset[str] = frozenset()
HISTORY = CallHistory(values=("aa",), numbers=(("amount", 5.0, 10.0),))


def fact(offset: int, kind: Any = "approval", value: str = "aa", **more: Any) -> ClassFact:
    return ClassFact(offset=offset, at_ms=NOW, kind=kind, requester="bot", **{"values": (value,), **more})


def known(*facts: ClassFact, trust_class: str = "c", partition: int = 0) -> ClassPart:
    return ClassPart(
        tenant="acme",
        project="main",
        agent="bot",
        tool="pay",
        trust_class=trust_class,
        partition=partition,
        facts=facts,
        begins_at=0,
        counted=len(facts),
        through_offset=facts[-1].offset,
        record_id=f"e{facts[-1].offset}",
        term=3,
        topic_id="topic-id",
    )


def approved(*parts: ClassPart, now_ms: int = NOW, people: TenantPeople = PEOPLE) -> Approved:
    return approved_by(KnownTrust(combine(()), (), {}, parts), now_ms, people)


def values(*parts: ClassPart, **more: Any) -> set[str]:
    found = approved(*parts, **more)
    return {value for value in found.worth if found.has(value)}


def test_nothing_is_approved_before_anybody_decided() -> None:
    assert approved() == Approved()


def test_values_of_all_classes_and_partitions_are_approved_and_numbers_joined() -> None:
    found = approved(
        known(fact(1, numbers=(("amount", 5.0, 10.0),))),
        known(fact(9, value="bb", numbers=(("amount", 1.0, 6.0), ("n", 3.0, 3.0))), partition=1),
        known(fact(2, value="cc"), trust_class="d"),
    )

    assert {value for value in found.worth if found.has(value)} == {"aa", "bb", "cc"}
    assert found.numbers == {
        (ANY, "amount"): (1.0, 10.0),
        ("aa", "amount"): (5.0, 10.0),
        ("bb", "amount"): (1.0, 6.0),
        (ANY, "n"): (3.0, 3.0),
        ("bb", "n"): (3.0, 3.0),
    }


def test_number_is_known_only_together_with_each_value_of_the_call() -> None:
    small = fact(1, value="stranger", numbers=(("amount", 1.0, 1.0),))
    found = approved(known(small, fact(2, value="friend", numbers=(("amount", 5.0, 900.0),))))

    assert found.covers("amount", 900.0, ["friend"])
    assert not found.covers("amount", 900.0, ["stranger"])
    assert not found.covers("amount", 900.0, ["friend", "stranger"])
    assert found.covers("amount", 900.0, [])
    assert not found.covers("amount", 901.0, [])
    assert not found.covers("count", 1.0, ["friend"])


def test_contrary_fact_of_a_class_counts_for_the_values_of_the_riskier_ones() -> None:
    novel = known(fact(1), trust_class="to=text&risk=novel,writes")
    later = known(fact(9), trust_class="to=text&risk=novel,writes")
    rejected = known(fact(5, "rejection"), trust_class="to=text&risk=writes")

    assert values(novel) == {"aa"}
    assert values(novel, rejected) == set()
    # One approval since, and one rejection: no more often for than against.
    assert values(later, rejected) == set()
    assert values(known(fact(9), fact(10), trust_class="to=text&risk=novel,writes"), rejected) == {"aa"}


def test_report_of_harm_makes_the_values_of_the_call_new_again() -> None:
    assert values(known(fact(1), fact(2, "impact"))) == set()


def test_value_is_new_again_once_trust_of_its_class_must_be_earned_anew() -> None:
    assert values(known(fact(1), fact(2, "rejection", "evil"), fact(3, value="bb"))) == {"bb"}
    assert values(known(fact(1)), known(fact(2, "rejection", "evil"), trust_class="d")) == {"aa"}


def test_value_is_new_again_after_the_window() -> None:
    later = NOW + WINDOW_DAYS * DAY_MS

    assert values(known(fact(1)), now_ms=later - DAY_MS) == {"aa"}
    assert values(known(fact(1)), now_ms=later) == set()


def test_word_of_ones_own_proposal_approves_no_value() -> None:
    assert values(known(fact(1, by=("bot",)))) == set()


def test_changed_part_or_day_is_read_again() -> None:
    first, second = known(fact(1)), known(fact(1), fact(2, value="bb"))

    assert values(first) == {"aa"}
    assert values(second) == {"aa", "bb"}
    assert values(second, now_ms=NOW + WINDOW_DAYS * DAY_MS) == set()


def evidence(kind: Any) -> Evidence:
    return Evidence(
        "acme", "main", "bot", "pay", None, NOW, 0, 4, "e4", 3, "t", "c", kind, ("rita",), "bot", HISTORY
    )


def test_approval_by_mistake_of_what_was_rejected_makes_nothing_known() -> None:
    def rejected(offset: int, kind: Any = "rejection") -> ClassFact:
        return fact(offset, kind, "evil")

    assert values(known(rejected(1), rejected(2), fact(3, value="evil"))) == set()
    assert values(known(rejected(1), fact(2, value="evil"), fact(3, value="evil"))) == {"evil"}
    assert values(known(rejected(1)), known(fact(2, value="evil"), trust_class="d")) == set()
    assert values(known(fact(1, value="evil")), known(rejected(2, "revocation"), trust_class="d")) == set()


@pytest.mark.parametrize(
    ("kind", "carried"),
    [
        ("approval", (("aa",), (("amount", 5.0, 10.0),))),
        ("rejection", (("aa",), ())),
        ("withdrawal", (("aa",), ())),
        ("edit", ((), ())),
        ("failure", ((), ())),
    ],
)
def test_approvals_and_contrary_facts_carry_the_values_of_their_call(kind: Any, carried: Any) -> None:
    (found,) = count_in_class(None, evidence(kind)).facts

    assert (found.values, found.numbers) == carried


def test_values_survive_the_topic() -> None:
    part = count_in_class(None, evidence("approval"))
    out = trust_record(part)
    assert read_trust(RawRecord(0, 7, 0, out.key, out.value, out.headers)) == part


def test_book_returns_the_classes_of_a_tool_and_the_same_ones_until_they_change() -> None:
    feed = Feed(TrustBook({0: 0}, "topic-id"))
    feed(known(fact(4)))
    feed(checkpoint(4, 1))

    def classes() -> tuple[ClassPart, ...]:
        found = feed.book.known("acme", "main", "bot", "pay", "")
        assert found is not None
        assert found.classes == ()
        return found.all_classes

    before = classes()
    assert [part.trust_class for part in before] == ["c"]
    feed(checkpoint(5, 1))
    assert classes() is before
    feed(known(fact(6), trust_class="d"))
    feed(checkpoint(6, 2))
    assert {part.trust_class for part in classes()} == {"c", "d"}


def test_trust_role_takes_the_values_from_the_verdict_on_the_approved_revision() -> None:
    world = world_of(Known(None))
    decided(world, held(world, "pay"), "approve")
    assert "PolicyVerdictIssued" in names_of(proposed(world, "pay", "other", '{"amount":7}'))

    followed = OpenCalls()
    found = [one for event in world.events if (one := followed.follow(event)) is not None]

    assert [(one.fact, one.call.history.numbers) for one in found] == [("approval", (("amount", 5.0, 5.0),))]


def test_part_of_the_largest_calls_fits_into_a_record() -> None:
    arguments: dict[str, Any] = {
        "amount" + "\x01" * 54 + str(number): float(number) for number in range(MAX_NUMBERS)
    }
    arguments |= {"\x02" * 60 + str(number): f"value {number}" for number in range(MAX_VALUES)}
    history = history_of(arguments, NOTHING_APPROVED)
    assert history.is_whole
    part = None
    for offset in range(2 * KEPT_MAX):
        fact_of = "rejection" if offset % 2 else "approval"
        part = count_in_class(part, replace(evidence(fact_of), offset=offset, history=history))

    assert part is not None
    assert len(trust_record(part).value) < 900_000


def test_nothing_is_known_of_a_tool_with_more_classes_than_are_looked_at() -> None:
    parts = [known(fact(number), trust_class=f"n={number}&risk=writes") for number in range(CLASSES_MAX)]

    assert values(*parts) == {"aa"}
    more = approved(*parts, known(fact(9), trust_class="one more"))
    assert not more.has("aa")
    assert more.opposes("aa")
    # Classes without weight are none.
    assert values(*parts, now_ms=NOW + WINDOW_DAYS * DAY_MS) == set()


def test_nothing_is_known_of_a_tool_with_more_facts_or_ranges_than_are_looked_at() -> None:
    many = tuple(f"{number:032x}" for number in range(MAX_VALUES))
    ranges = tuple((f"p{number}", 1.0, 2.0) for number in range(MAX_NUMBERS))
    heavy = [
        known(
            *(
                fact(n, value=many[0]).model_copy(update={"values": many, "numbers": ranges})
                for n in range(128)
            )
        )
    ]
    facts = [known(*map(fact, range(128)), trust_class=f"n={n}") for n in range(FACTS_MAX // 128 + 1)]

    assert approved(*heavy).opposes(many[0])
    assert approved(*facts[:-1]).has("aa")
    assert approved(*facts).opposes("aa")


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_worth_of_a_value_does_not_depend_on_the_order_of_classes(order: tuple[int, ...]) -> None:
    early = START_MS + 4 * DAY_MS
    parts = [
        known(fact(1), trust_class="a"),
        known(fact(2).model_copy(update={"at_ms": early}), trust_class="b"),
        known(fact(3, "rejection"), trust_class="c"),
        known(fact(4, "rejection").model_copy(update={"at_ms": early}), trust_class="d"),
    ]

    found = approved(*(parts[number] for number in order))
    assert (found.has("aa"), found.opposes("aa")) == (False, False)


def test_values_are_together_only_in_one_call_of_one_partition() -> None:
    both = known(fact(1, values=("aa", "bb")), fact(2, value="cc"), partition=2)
    found = approved(
        known(fact(1)), known(fact(1, value="bb"), partition=1), both, known(fact(1, value="cc"))
    )

    assert not approved(known(fact(1)), known(fact(1, value="bb"), partition=1)).joins(
        "c", ["aa", "bb"], (), NOTHING_NEW
    )
    assert found.joins("c", ["aa", "bb"], (), NOTHING_NEW)
    assert not found.joins("c", ["aa", "bb", "cc"], (), NOTHING_NEW)
    assert not found.joins("c", ["bb", "cc"], (), NOTHING_NEW)


def test_numbers_are_together_between_those_of_two_approved_calls_with_the_values() -> None:
    def bought(offset: int, quantity: float, price: float, value: str = "aa") -> ClassFact:
        return fact(offset, value=value, numbers=(("price", price, price), ("quantity", quantity, quantity)))

    found = approved(
        known(bought(1, 10, 100), bought(2, 99, 100), bought(3, 10, 999)),
        known(bought(4, 99, 999, "bb"), partition=1),
    )

    def joins(quantity: float, price: float, *values: str) -> bool:
        return found.joins(
            "c", values, (("price", price, price), ("quantity", quantity, quantity)), NOTHING_NEW
        )

    assert joins(50, 100, "aa")
    assert not joins(99, 999, "aa")
    assert joins(99, 999, "bb")
    assert not joins(98, 998, "bb"), "nothing that was approved with it had less"
    assert joins(98, 998)
    assert not joins(9, 100, "aa")
    assert not found.joins("c", ["aa"], (("weight", 1.0, 1.0),), NOTHING_NEW)
    assert not found.joins("d", ["aa"], (), NOTHING_NEW)


def test_size_of_what_was_approved_together_grows_with_the_facts_and_not_with_their_square() -> None:
    parts = [
        known(
            *(fact(offset, value=f"{partition}-{offset}") for offset in range(KEPT_MAX)), partition=partition
        )
        for partition in range(FACTS_MAX // KEPT_MAX)
    ]

    (together,) = approved(*parts).together.values()
    assert sum(len(one.approvals) for one in together) == len(parts) * KEPT_MAX
    assert all(0 < calls < 2**KEPT_MAX for one in together for calls in one.approvals.values())


def test_what_is_new_is_compared_with_calls_in_which_something_was_new_there() -> None:
    size = (("amount", 5.0, 10.0),)
    new = known(fact(1, numbers=size), trust_class="c&risk=novel:file+to,writes")
    found = approved(known(fact(2, value="bb", numbers=size), trust_class="c&risk=writes"), new)

    assert found.joins("c", [], size, frozenset(["to"]))
    assert found.joins("c", ["aa"], size, frozenset(["file", "to"]))
    assert not found.joins("c", ["bb"], size, frozenset(["to"]))
    assert not found.joins("c", [], size, frozenset(["cc"]))
    assert found.joins("c", ["bb"], size, NOTHING_NEW)

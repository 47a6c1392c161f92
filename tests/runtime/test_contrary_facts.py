"""What keeps trust from releasing a class in a partition: the newest facts by class, and a bound of what is kept."""

from services.domain.trust.reading import Contrary
from services.runtime.contrary_facts import KEPT_MAX, VALUES_KEPT_MAX, ContraryFacts, Name


def name(number: int) -> Name:
    return "acme", "main", "bot", "pay", f"amount=1e{number}"


def test_newest_fact_of_a_class_counts() -> None:
    facts = ContraryFacts()
    facts.note(name(1), Contrary(2, 7))
    facts.note(name(1), Contrary(2, 9))

    assert (facts.of(name(1)), facts.of(name(2))) == (Contrary(2, 9), None)


def test_of_too_many_the_oldest_count_for_every_class() -> None:
    facts = ContraryFacts()
    for number in range(KEPT_MAX + 3):
        facts.note(name(number), Contrary(0, number))

    assert len(facts.newest) == KEPT_MAX
    # Whichever class it was about, trust must have counted it before it releases anything.
    assert facts.of(name(0)) == facts.of(name(KEPT_MAX + 50)) == Contrary(0, 2)
    assert facts.of(name(KEPT_MAX)) == Contrary(0, KEPT_MAX)


def test_sampled_call_counts_until_it_is_settled() -> None:
    facts = ContraryFacts()
    facts.wait((b"x", "a"), name(1), Contrary(0, 4, is_open=True))
    facts.wait((b"y", "b"), name(1), Contrary(0, 5, is_open=True))

    assert facts.settle((b"x", "a"))
    assert facts.of(name(1)) == Contrary(0, 5, is_open=True)
    assert facts.settle((b"y", "b"))
    assert not facts.settle((b"y", "b"))
    assert (facts.of(name(1)), facts.waiting) == (None, {})


def test_contrary_fact_counts_until_trust_has_it_and_a_sample_whatever_trust_has() -> None:
    assert Contrary(1, 7).holds_beside({0: 99, 1: 6})
    assert not Contrary(1, 7).holds_beside({1: 7})
    assert Contrary(3, 0).holds_beside({})
    assert Contrary(1, 7, is_open=True).holds_beside({1: 99})


def test_fact_counts_for_riskier_classes_of_the_same_terms_and_a_waiting_one_comes_first() -> None:
    facts = ContraryFacts()
    place = ("acme", "main", "bot", "pay")
    plain, novel, claimed = (
        "to=text&risk=writes",
        "to=text&risk=novel:to,writes",
        "to=text&risk=open_world,writes",
    )
    facts.note((*place, plain), Contrary(0, 3))
    facts.note((*place, novel), Contrary(0, 5))
    facts.wait((b"x", "a"), (*place, claimed), Contrary(0, 1, is_open=True))

    assert facts.of((*place, plain)) == Contrary(0, 1, is_open=True)
    facts.settle((b"x", "a"))
    assert facts.of((*place, plain)) == Contrary(0, 3)
    assert facts.of((*place, novel)) == Contrary(0, 5)
    assert facts.of((*place, "to=@a.com&risk=writes")) is None


def test_of_too_many_values_the_oldest_count_for_every_value() -> None:
    facts = ContraryFacts()
    for number in range(VALUES_KEPT_MAX + 3):
        facts.note_value(name(number), Contrary(0, number))

    assert len(facts.values) == VALUES_KEPT_MAX
    assert facts.of_value(name(0)) == facts.of_value(name(VALUES_KEPT_MAX + 50)) == Contrary(0, 2)
    assert facts.of_value(name(VALUES_KEPT_MAX)) == Contrary(0, VALUES_KEPT_MAX)

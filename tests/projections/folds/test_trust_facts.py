"""The facts behind the trust in a class, as people read them: in the order of time, and why one adds nothing."""

from itertools import chain, combinations
from typing import Any, cast

import pytest

from projections.folds.trust_classes import trust_classes
from projections.tables.analytics import EvidenceRow
from schemas.call_history import CallHistory
from schemas.canonical import canonical
from schemas.risk_score import HISTORY_WEIGHTS, UNKNOWN_TOOL, WEIGHTS
from schemas.topics import DAY_MS
from schemas.trust import ClassFact
from services.domain.policy.annotations import published
from services.domain.policy.identifying import joined
from services.domain.policy.risk import Risk, risk_of, with_history
from services.domain.policy.trust_class import class_of

NOW_MS = 400 * DAY_MS + 1_000
PERSONS = {"rita@new": "rita"}


def fact(
    offset: int, kind: str, at_ms: int, by: str = "rita", requester: str = "bot", **more: Any
) -> EvidenceRow:
    row = {
        "tool": "pay",
        "trust_class": "c",
        "log_partition": 0,
        "log_offset": offset,
        "at_ms": at_ms,
        "fact": kind,
        "words_of": canonical([by]),
        "requester": requester,
        "execution_id": "x",
        "call_id": "c",
    }
    return cast("EvidenceRow", row | more)


def discounted(one: ClassFact) -> bool:
    return "gone" in one.by or any(PERSONS.get(by, by) == one.requester for by in one.by)


def evidence(*rows: EvidenceRow) -> list[dict[str, Any]]:
    def name_of(account: str) -> str:
        return PERSONS.get(account, account)

    (found,) = trust_classes(rows, NOW_MS, discounted, with_facts=True, name_of=name_of)
    return list(found["evidence"])


def test_fact_that_could_raise_trust_and_does_not_says_why() -> None:
    found = evidence(
        fact(1, "approval", NOW_MS - 200 * DAY_MS),
        fact(2, "approval", NOW_MS - 9),
        fact(3, "rejection", NOW_MS - 8),
        fact(4, "approval", NOW_MS - 7, by="gone"),
        fact(5, "approval", NOW_MS - 6, by="rita@new", requester="rita"),
        fact(6, "edit", NOW_MS - 5),
        fact(7, "failure", NOW_MS - 4),
    )

    assert [one["uncounted"] for one in found] == [
        "too_old",
        "before_it_began_anew",
        None,
        "withdrawn_account",
        "own_proposal",
        None,
        None,
    ]
    assert [one["raising"] for one in found] == [0, 0, 0, 0, 0, 0.5, 0]


def test_facts_of_several_partitions_are_in_the_order_of_time() -> None:
    found = evidence(
        fact(1, "approval", NOW_MS - 9),
        fact(8, "approval", NOW_MS - 2),
        fact(3, "approval", NOW_MS - 5, log_partition=1),
    )

    assert [(one["partition"], one["offset"]) for one in found] == [(0, 1), (1, 3), (0, 8)]


def required_of(trust_class: str) -> float | None:
    rows = [fact(1, "approval", NOW_MS, trust_class=trust_class)]
    (found,) = trust_classes(rows, NOW_MS, discounted, with_facts=False)
    required: float | None = found["required"]
    return required


def every_set(of: Any) -> Any:
    return chain.from_iterable(combinations(sorted(of), count) for count in range(len(of) + 1))


def test_class_requires_what_the_decider_requires_of_such_calls() -> None:
    paths = ("a", joined("b", ",risk=c"))
    for parts in every_set(set(WEIGHTS) - {UNKNOWN_TOOL}):
        of_tool = with_history(Risk(0.0, "low", (), 0.0), parts, is_known=True)
        for new in ((), ("novel",), ("novel", "tainted")):
            history = CallHistory(parts=new, novel=paths, tainted=paths)
            risk = with_history(of_tool, new, is_known=True)
            assert required_of(class_of("risk=text", parts, history)) == risk.required, risk.parts
    assert set(HISTORY_WEIGHTS) == {"novel", "tainted"}


def test_class_of_an_unknown_tool_requires_what_no_trust_reaches() -> None:
    risk = risk_of("pay", None, published(None))
    assert required_of(class_of("to=text", risk.parts)) == risk.required == 1.0


@pytest.mark.parametrize("trust_class", ["risk=", "to=text&risk="])
def test_class_without_risk_requires_nothing(trust_class: str) -> None:
    assert required_of(trust_class) == 0.0


@pytest.mark.parametrize("trust_class", ["to=text", "to=text&risk=money,of_a_later_version"])
def test_class_with_parts_that_have_no_weight_requires_nothing_that_is_known(trust_class: str) -> None:
    assert required_of(trust_class) is None

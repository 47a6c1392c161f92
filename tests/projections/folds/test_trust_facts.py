"""The facts behind the trust in a class, as people read them: in the order of time, and why one adds nothing."""

from itertools import chain, combinations
from typing import Any, cast

import pytest

from projections.folds import trust_classes as folded
from projections.folds.trust_classes import ClosingRows, class_json, trust_classes
from projections.tables.analytics import EvidenceRow
from schemas.call_history import CallHistory
from schemas.canonical import canonical
from schemas.risk_score import HISTORY_WEIGHTS, UNKNOWN_TOOL, WEIGHTS
from schemas.topics import DAY_MS
from schemas.trust import ClassFact
from schemas.trust_family import closes
from services.domain.policy.annotations import published
from services.domain.policy.leaves import joined
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

    (one,) = trust_classes(rows, NOW_MS, discounted)
    found = class_json(one, NOW_MS, discounted, with_facts=True, name_of=name_of)
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


def test_classes_are_listed_by_tool_and_name_with_the_contrary_facts_that_count_for_them() -> None:
    names = [
        f"{terms}&risk={risk}"
        for terms in ("to=text", "to=@example.com")
        for risk in ("money", "money,novel:to", "money,novel:to,tainted:to", "money,novel")
    ]
    kinds = {name: ("rejection", "approval", "edit")[number % 3] for number, name in enumerate(names)}
    rows = [
        fact(10 * number, kinds[name], NOW_MS, trust_class=name, tool=tool)
        for tool in ("pay", "send")
        for number, name in enumerate(names)
    ]

    found = trust_classes(rows, NOW_MS, discounted)

    assert [one.mark for one in found] == [(tool, name) for tool in ("pay", "send") for name in sorted(names)]
    for one in found:
        counted = {other for other in names if other == one.name or closes(other, one.name)}
        expected = {other for other in counted if other == one.name or kinds[other] == "rejection"}
        assert {row["trust_class"] for row in one.rows} == expected
        assert {row["tool"] for row in one.rows} == {one.tool}


def test_classes_of_other_terms_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(other: str, trust_class: str) -> bool:
        compared.append(other)
        return closes(other, trust_class)

    monkeypatch.setattr(folded, "closes", counted)
    names = [
        f"amount=1e{number}&risk={risk}" for number in range(100) for risk in ("money", "money,novel:to")
    ]
    closing = ClosingRows({name: [fact(1, "rejection", NOW_MS, trust_class=name)] for name in names})

    assert [len(closing.of(name)) for name in names] == [0, 1] * 100
    assert len(compared) == len(names)


def required_of(trust_class: str) -> float | None:
    rows = [fact(1, "approval", NOW_MS, trust_class=trust_class)]
    (found,) = trust_classes(rows, NOW_MS, discounted)
    required: float | None = class_json(found, NOW_MS, discounted, with_facts=False)["required"]
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

"""Rules as definitions, their uses, and their predicates: who may do what, how often, and with which arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.actor import Actor, decider_actor
from schemas.canonical import canonical
from schemas.commands import ActivateRule, MakeRule, ReserveRuleUse, RevokeRule, SuspendRule
from schemas.message import Message
from schemas.principals import PrincipalDocument
from schemas.standing_rule import ArgumentTest, RuleRefused, standing_rule_from_text, standing_rule_to_text
from services.domain import publishing
from services.domain.definitions import Definitions
from services.domain.memory import rule_uses, standing_rules
from services.domain.memory.predicates import exactly, fits, fixed_values
from services.domain.memory.rule_uses import RuleUses
from services.domain.memory.standing_rules import ACTIVE_MAX
from services.domain.policy import PolicySet
from tests.domain.world import BOT, CLARA, OLGA, PROJECT, RITA, TENANT, names, with_people

DECIDER = decider_actor(TENANT, PROJECT)
RUDI = RITA.model_copy(update={"subject": "rudi"})
NOW_MS = 1_000
LATER_MS = 2_000


def document(rule_id: str = "r", **changes: Any) -> str:
    value: dict[str, Any] = {
        "rule_id": rule_id,
        "project": PROJECT,
        "agent": "bot",
        "tool": "pay",
        "tool_version": "v",
        "policy_rules": ["p/payments"],
        "arguments": {"amount": {"equals": 1}},
        "expires_at_ms": LATER_MS,
        "uses": 1,
        "risk_max": "medium",
        "terms": {},
        "evidence": {"execution_id": "x", "call_id": "c", "hold_id": "h", "decision_id": "d", "digest": "g"},
        "requesters": ["bot"],
        "made_by": "rita",
        "four_eyes": True,
    }
    return canonical(value | changes)


class Book:
    """Definitions that are asked and folded."""

    def __init__(self) -> None:
        self.now = Definitions(policies=PolicySet())

    def ask(self, command: Any, actor: Actor) -> Message:
        key = f"{TENANT}/rule/{command.rule_id}".encode()
        (event,) = publishing.decide(self.now, key, command, actor)
        self.now = publishing.evolve(self.now, event, TENANT, self.now.through_offset + 1)
        return event

    def make(self, rule_id: str = "r", **changes: Any) -> Message:
        return self.ask(MakeRule(rule_id=rule_id, document=document(rule_id, **changes)), DECIDER)

    def status(self, rule_id: str = "r") -> str:
        rule = self.now.standing.find(TENANT, rule_id)
        assert rule is not None
        return rule.status

    def active(self) -> list[str]:
        return [rule.rule_id for rule in self.now.standing.active(TENANT, PROJECT, "bot", "pay")]


def code(event: Message) -> str:
    return str(getattr(event, "code", type(event).__name__))


def test_make_of_a_rule_with_four_eyes_waits_for_another_person() -> None:
    book = Book()
    book.make()
    assert (book.status(), book.active()) == ("proposed", [])
    assert code(book.ask(ActivateRule(rule_id="r"), RITA)) == "own_request"
    assert code(book.ask(ActivateRule(rule_id="r"), BOT)) == "not_authorised"
    # A token for a user is neither that person's nor another's.
    for_rita = RITA.model_copy(update={"subject": "portal", "user": RITA.subject})
    assert code(book.ask(ActivateRule(rule_id="r"), for_rita)) == "not_authorised"
    assert code(book.ask(ActivateRule(rule_id="r"), CLARA)) == "forbidden_role"
    assert code(book.ask(ActivateRule(rule_id="r"), RUDI)) == "RuleActivated"
    assert (book.status(), book.active()) == ("active", ["r"])
    assert code(book.ask(ActivateRule(rule_id="r"), RUDI)) == "duplicate"


def test_activate_by_any_of_its_makers_is_refused() -> None:
    book = Book()
    makers = [{"by": "olga", "roles": [], "voice": ""}, {"by": "rita", "roles": [], "voice": "rudi"}]
    book.make(makers=makers, terms={"quorum": 2})
    for maker in (OLGA, RITA, RUDI):
        assert code(book.ask(ActivateRule(rule_id="r"), maker)) == "own_request"
    zoe = RITA.model_copy(update={"subject": "zoe"})
    assert code(book.ask(ActivateRule(rule_id="r"), zoe)) == "RuleActivated"


def test_activate_a_rule_of_before_that_would_stand_on_too_few_is_refused_with_what_to_do() -> None:
    book = Book()
    book.make(terms={"quorum": 3})
    refused: Any = book.ask(ActivateRule(rule_id="r"), RUDI)
    assert (code(refused), "revoke it" in refused.detail) == ("invalid", True)
    book.make("two", terms={"quorum": 2})
    assert code(book.ask(ActivateRule(rule_id="two"), RUDI)) == "RuleActivated"


def test_activate_by_another_account_of_its_maker_is_refused() -> None:
    book = Book()
    person = PrincipalDocument(principal="Rita", subjects=("rita", "rita@home"), roles=("reviewer",))
    book.now = replace(book.now, people=book.now.people.with_principal(TENANT, person))
    book.make()
    home = RITA.model_copy(update={"subject": "rita@home"})
    assert code(book.ask(ActivateRule(rule_id="r"), home)) == "own_request"


def test_activate_by_the_person_whose_request_the_call_was_is_refused_however_they_are_named() -> None:
    book = Book()
    rudi = {"principal": "rudi-r", "subjects": ["rudi", "rudi@home"], "roles": ["reviewer"]}
    book.now = with_people(book.now, rudi)
    book.make("by-name", requesters=["rudi-r"])
    book.make("by-account", requesters=["rudi@home"])
    for name in ("by-name", "by-account"):
        assert code(book.ask(ActivateRule(rule_id=name), RUDI)) == "own_request"
        assert code(book.ask(ActivateRule(rule_id=name), OLGA)) == "RuleActivated"


def test_activate_by_a_requester_whom_the_policy_excludes_is_refused_without_four_eyes_too() -> None:
    book = Book()
    book.make(four_eyes=False, terms={"exclude_requester": True}, requesters=["rudi"])
    book.ask(SuspendRule(rule_id="r"), OLGA)
    assert code(book.ask(ActivateRule(rule_id="r"), RUDI)) == "own_request"
    assert code(book.ask(ActivateRule(rule_id="r"), RITA)) == "RuleActivated"


def test_activate_of_a_rule_under_roles_takes_one_of_them() -> None:
    book = Book()
    book.make(terms={"roles": ["cfo"]})
    assert code(book.ask(ActivateRule(rule_id="r"), OLGA)) == "forbidden_role"
    assert code(book.ask(ActivateRule(rule_id="r"), CLARA)) == "RuleActivated"


def test_activate_by_whom_a_named_reviewers_account_was_taken_from_is_refused() -> None:
    book = Book()
    clara = {"principal": "clara-c", "subjects": ["clara", "clara@home"]}
    book.now = with_people(book.now, clara)
    book.make(terms={"reviewers": ["clara@home"]})
    book.now = with_people(book.now, {**clara, "subjects": ["clara"]})
    assert code(book.ask(ActivateRule(rule_id="r"), CLARA)) == "forbidden_role"

    book.now = with_people(book.now, clara)
    assert code(book.ask(ActivateRule(rule_id="r"), CLARA)) == "RuleActivated"


def test_make_again_is_a_duplicate_and_by_a_person_is_never_asked() -> None:
    book = Book()
    book.make(four_eyes=False)
    assert book.status() == "active"
    assert code(book.make(made_by="eve")) == "duplicate"


@pytest.mark.parametrize("text", ["{", "{}", document("other"), document(project="else")])
def test_make_of_what_is_no_rule_is_refused(text: str) -> None:
    book = Book()
    assert code(book.ask(MakeRule(rule_id="r", document=text), DECIDER)) == "invalid"
    assert book.now.standing.find(TENANT, "r") is None


def test_rule_of_another_project_is_not_found() -> None:
    book = Book()
    book.make()
    stranger = RUDI.model_copy(update={"project": "else"})
    for command in (ActivateRule(rule_id="r"), SuspendRule(rule_id="r"), RevokeRule(rule_id="r")):
        assert code(book.ask(command, stranger)) == "not_found"


def test_suspend_by_a_decider_records_every_contradiction_and_a_person_activates_again() -> None:
    book = Book()
    book.make(four_eyes=False)
    for name in ("one", "two"):
        evidence = json.dumps({"contradiction_id": name})
        assert code(book.ask(SuspendRule(rule_id="r", evidence=evidence), DECIDER)) == "RuleSuspended"
    rule = book.now.standing.find(TENANT, "r")
    assert rule is not None
    assert (rule.status, sorted(rule.heeded)) == ("suspended", ["one", "two"])
    assert code(book.ask(ActivateRule(rule_id="r"), RUDI)) == "RuleActivated"
    assert book.active() == ["r"]


def test_revoked_rule_never_comes_back() -> None:
    book = Book()
    book.make(four_eyes=False)
    assert code(book.ask(RevokeRule(rule_id="r"), BOT)) == "not_authorised"
    assert code(book.ask(RevokeRule(rule_id="r"), RITA)) == "RuleRevoked"
    assert code(book.ask(RevokeRule(rule_id="r"), RITA)) == "duplicate"
    assert code(book.ask(ActivateRule(rule_id="r"), RUDI)) == "not_open"
    assert code(book.ask(SuspendRule(rule_id="r"), DECIDER)) == "not_open"


def test_activate_beyond_so_many_rules_of_one_tool_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_rules, "ACTIVE_MAX", 2)
    book = Book()
    assert ACTIVE_MAX == 50
    for name in ("a", "b"):
        book.make(name, four_eyes=False)
    book.make("c")
    assert book.status("c") == "refused"
    assert book.active() == ["a", "b"]


def test_set_aside_of_a_rule_that_cannot_be_read_ends_its_use() -> None:
    book = Book()
    book.make(four_eyes=False)
    event = book.ask(SuspendRule(rule_id="r"), RITA)
    book.ask(ActivateRule(rule_id="r"), RUDI)
    after = publishing.set_aside(book.now, event, TENANT, 9, ValueError("no"))
    assert after.standing.active(TENANT, PROJECT, "bot", "pay") == ()
    assert after.through_offset == 9


def use(reservation_id: str) -> ReserveRuleUse:
    return ReserveRuleUse(
        rule_id="r", reservation_id=reservation_id, execution_id="x", call_id="c", revision=1, digest="g"
    )


@given(st.lists(st.sampled_from("abcdefgh"), max_size=30), st.integers(1, 4))
def test_reserve_in_any_order_gives_no_more_uses_than_the_limit(asked: list[str], limit: int) -> None:
    book = Book()
    book.make(four_eyes=False, uses=limit)
    rule, state, given_out = book.now.standing.find(TENANT, "r"), RuleUses(), []
    for name in asked:
        (event,) = rule_uses.decide(state, rule, use(name), DECIDER, NOW_MS)
        state = rule_uses.evolve(state, event)
        if names([event]) == ["RuleUseReserved"]:
            given_out.append((name, getattr(event, "number", 0)))
    assert [number for _, number in given_out] == list(range(1, min(limit, len(set(asked))) + 1))
    assert len({name for name, _ in given_out}) == len(given_out)


def test_reserve_of_a_rule_that_rests_has_expired_or_is_unknown_is_refused() -> None:
    book = Book()
    book.make()
    proposed = book.now.standing.find(TENANT, "r")
    for rule, now_ms in ((proposed, NOW_MS), (None, NOW_MS)):
        (event,) = rule_uses.decide(RuleUses(), rule, use("a"), DECIDER, now_ms)
        assert names([event]) == ["RuleUseRefused"]
    book.ask(ActivateRule(rule_id="r"), RUDI)
    active = book.now.standing.find(TENANT, "r")
    (event,) = rule_uses.decide(RuleUses(), active, use("a"), DECIDER, LATER_MS)
    assert names([event]) == ["RuleUseRefused"]


@pytest.mark.parametrize("evidence", ["", "not JSON", "[]", '"d"', "1"])
def test_suspend_with_evidence_that_is_no_object_is_refused(evidence: str) -> None:
    book = Book()
    book.make(four_eyes=False)
    assert code(book.ask(SuspendRule(rule_id="r", evidence=evidence), DECIDER)) == "malformed"


def test_reserve_by_anybody_but_a_decider_is_refused() -> None:
    book = Book()
    book.make(four_eyes=False)
    rule = book.now.standing.find(TENANT, "r")
    more = OLGA.model_copy(update={"roles": ("system", "zeta")})
    other = OLGA.model_copy(update={"roles": ("zeta",)})
    for actor in (BOT, RITA, OLGA, more, other):
        (event,) = rule_uses.decide(RuleUses(), rule, use("a"), actor, NOW_MS)
        assert code(event) == "not_authorised"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_fits_exactly_is_equality_as_json(approved: dict[str, Any], other: dict[str, Any]) -> None:
    assert fits(exactly(approved), approved)
    assert fits(exactly(approved), other) is (canonical(approved) == canonical(other))


@given(OBJECTS, st.text(min_size=1, max_size=3), JSON)
def test_fits_with_one_argument_more_or_fewer_is_false(
    approved: dict[str, Any], name: str, value: Any
) -> None:
    if name in approved:
        assert not fits(exactly(approved), {key: held for key, held in approved.items() if key != name})
    else:
        assert not fits(exactly(approved), {**approved, name: value})


@given(st.floats(-10, 10), st.floats(-10, 10), JSON)
def test_bounds_let_numbers_within_through_and_nothing_else(low: float, high: float, value: Any) -> None:
    test = ArgumentTest(at_least=low, at_most=high)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    assert fits({"a": test}, {"a": value}) is (number and low <= value <= high)


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("/tmp/a", True),
        ("/tmp/a..b", True),
        ("/tmp/../etc", False),
        ("/tmp/a/..", False),
        ("/tmp/%2e%2E/etc", False),
        ("/tmp/a\\..\\b", False),
        ("/tmp/..?a", False),
        ("/tmp/..#a", False),
        ("/tmp/..;a/b", False),
        ("/tmp/..%2Fetc", False),
        ("/tmp/%252e%252e/etc", False),
        ("/tmp/%25252525", False),
        ("/tmp/.\t./etc", False),
        ("/tmp/50%25?a=..b", False),
        ("/tmp/wörk/日本/a-b_c", True),
        ("/tmp/?a=..b", True),
        ("/tmp/?a=../b", False),
        ("/etc", False),
        (7, False),
    ],
)
def test_prefix_lets_no_step_back_through(value: Any, passes: bool) -> None:
    assert fits({"path": ArgumentTest(prefix="/tmp/")}, {"path": value}) is passes


def test_fixed_values_are_those_that_are_named() -> None:
    assert fixed_values(ArgumentTest(equals=None)) == (None,)
    assert fixed_values(ArgumentTest(one_of=("a", 1))) == ("a", 1)
    assert fixed_values(ArgumentTest(prefix="a")) == ()
    assert fixed_values(None) == ()


@given(OBJECTS)
def test_document_comes_back_from_its_text_as_it_was(approved: dict[str, Any]) -> None:
    first = standing_rule_from_text(document()).model_copy(update={"arguments": exactly(approved)})
    text = standing_rule_to_text(first)
    again = standing_rule_from_text(text)
    assert standing_rule_to_text(again) == text
    assert fits(again.arguments, approved)


def test_document_that_is_too_large_is_refused() -> None:
    first = standing_rule_from_text(document())
    large = first.model_copy(update={"arguments": exactly({"text": "x" * 17_000})})
    with pytest.raises(RuleRefused, match="too large"):
        standing_rule_to_text(large)

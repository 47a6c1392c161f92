"""Classes that differ in the history of their values: a contrary word about one closes the riskier ones."""

import pytest

from schemas.call_history import CallHistory
from schemas.trust import ClassFact, ClassPart
from schemas.trust_family import closes
from services.domain.policy.identifying import Value
from services.domain.trust.book import KnownTrust, TrustBook
from tests.domain.steps import decided, proposed
from tests.domain.test_approved import known as part_of
from tests.domain.test_trust import Feed, checkpoint
from tests.domain.trusting import Known, facts, outcome, world_of
from tests.domain.world import World, published, rule, the

PLAIN = "to=text&risk=money,writes"
NOVEL = "to=text&risk=money,novel:to,writes"
BOTH = "to=text&risk=money,novel:to,tainted:to,writes"
FILE = "to=text&risk=money,novel:file,writes"
FILE_TOO = "to=text&risk=money,novel:file+to,writes"
# Of earlier versions, which named no paths; and of an agent that claims more.
EARLIER, CLAIMED = "to=text&risk=money,novel,writes", "to=text&risk=money,open_world,writes"
OTHER = "to=@example.com&risk=money,writes"
ALL = (PLAIN, NOVEL, BOTH, FILE, FILE_TOO, EARLIER, CLAIMED, OTHER, "")


def test_class_is_closed_by_itself_and_by_those_with_fewer_new_and_tainted_arguments() -> None:
    closing = {name: {other for other in ALL if closes(other, name)} for name in ALL}
    known = {PLAIN, CLAIMED}
    assert closing[PLAIN] == closing[CLAIMED] == known
    assert closing[EARLIER] == {EARLIER, *known}
    assert closing[NOVEL] == {NOVEL, *known}
    assert closing[BOTH] == {BOTH, NOVEL, *known}
    assert closing[FILE] == {FILE, *known}
    assert closing[FILE_TOO] == {FILE_TOO, FILE, NOVEL, *known}
    assert (closing[OTHER], closing[""]) == ({OTHER}, {""})


def fact(offset: int, kind: str) -> ClassFact:
    return ClassFact.model_validate({"offset": offset, "at_ms": 1_000, "kind": kind, "by": ("rita",)})


def score(found: KnownTrust | None) -> list[tuple[int, str]]:
    assert found is not None
    return sorted((one.fact.offset, one.fact.kind) for one in found.facts)


def test_book_adds_the_contrary_facts_of_the_classes_that_close_it() -> None:
    feed = Feed(TrustBook({0: 0}, "topic-id"))
    parts: list[ClassPart] = [
        part_of(fact(1, "approval"), fact(2, "rejection"), trust_class=PLAIN),
        part_of(fact(3, "approval"), trust_class=NOVEL),
        part_of(fact(4, "rejection"), trust_class=BOTH),
    ]
    feed(*parts, checkpoint(4, 4))

    def of(name: str) -> list[tuple[int, str]]:
        return score(feed.book.known("acme", "main", "bot", "pay", name))

    assert of(PLAIN) == [(1, "approval"), (2, "rejection")]
    assert of(NOVEL) == [(2, "rejection"), (3, "approval")]
    assert of(BOTH) == [(2, "rejection"), (4, "rejection")]


RULES = [rule("payments", "pay", "hold")]
TOOLS = [
    {"name": "pay", "annotations": {"destructiveHint": False, "openWorldHint": False, "idempotentHint": True}}
]
ANN = CallHistory(values=(Value("recipient", "Ann").digest,), numbers=(("amount", 0.0, 1_000.0),))
PAYS_ANN, PAYS_EVE = '{"amount":5,"recipient":"Ann"}', '{"amount":5,"recipient":"Eve"}'
ASKS_HIGH = {"sample_rate": 0, "floor": {"high": 0.5}}


@pytest.fixture
def world() -> World:
    found = world_of(Known(facts(history=ANN), through=0), ASKS_HIGH, RULES)
    found.definitions = published(found.definitions, RULES, TOOLS, adaptive=ASKS_HIGH)
    return found


def test_rejection_of_a_known_value_closes_calls_with_new_ones(world: World) -> None:
    assert outcome(proposed(world, "pay", "new", PAYS_EVE)).result == "released"
    world.definitions = published(world.definitions, RULES)
    decided(world, held_with(world, "known", PAYS_ANN), "reject")
    world.definitions = published(world.definitions, RULES, adaptive=ASKS_HIGH)

    for name, arguments in (("ann", PAYS_ANN), ("eve", PAYS_EVE)):
        why = {
            "ann": "people were against calls with the same value at recipient",
            "eve": "such a call was decided otherwise",
        }[name]
        assert outcome(proposed(world, "pay", name, arguments)).why.startswith(why)


def test_rejection_of_a_new_value_leaves_the_known_ones(world: World) -> None:
    world.definitions = published(world.definitions, RULES)
    decided(world, held_with(world, "new", PAYS_EVE), "reject")
    world.definitions = published(world.definitions, RULES, adaptive=ASKS_HIGH)

    assert outcome(proposed(world, "pay", "eve", PAYS_EVE)).why.startswith(
        "people were against calls with the same value at recipient"
    )
    assert outcome(proposed(world, "pay", "ann", PAYS_ANN)).result == "released"


def test_sample_that_waits_keeps_calls_with_new_values_from_being_released(world: World) -> None:
    world.definitions = published(world.definitions, RULES, adaptive={**ASKS_HIGH, "sample_rate": 1})
    held_with(world, "sampled", PAYS_ANN)
    world.definitions = published(world.definitions, RULES, adaptive=ASKS_HIGH)

    assert outcome(proposed(world, "pay", "eve", PAYS_EVE)).result == "asked"


def held_with(world: World, call_id: str, arguments: str) -> object:
    return the(proposed(world, "pay", call_id, arguments), "HoldOpened")

"""Arguments against a published inputSchema: what does not fit is named, and no pair of the two takes for ever."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import extend

from schemas import commands as k
from schemas.canonical import canonical
from schemas.limits import ARGUMENTS_MAX_BYTES, INPUT_SCHEMA_MAX_BYTES
from services.domain.definitions import Definitions
from services.domain.input_schema import (
    MAX_COST,
    MISFIT_MAX_CHARS,
    cost_of,
    misfit,
    misfit_in_place,
    unchecked,
)
from services.domain.policy import PolicySet
from tests.domain.steps import code, consumed, decided, held, proposed, released, started
from tests.domain.test_definitions import EMPTY, publish
from tests.domain.world import OLGA, RULES, TENANT, TOOLS, names, published, the

NESTED = {
    "type": "object",
    "$defs": {
        "line": {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}
    },
    "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    "additionalProperties": False,
}
ENOUGH_S = 1.0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"lines": [{"amount": 1}]}, None),
        ({"lines": [{"amount": 1}, {"amount": "2"}]}, "$.lines[1].amount: '2' is not of type 'number'"),
        ({"lines": [{}]}, "$.lines[0]: 'amount' is a required property"),
        ({"line": []}, "$: Additional properties are not allowed ('line' was unexpected)"),
    ],
)
def test_misfit_names_the_path_and_the_reason(arguments: Any, expected: str | None) -> None:
    assert misfit_in_place(canonical(NESTED), arguments) == expected


def test_misfit_of_something_large_is_told_in_a_few_words() -> None:
    found = misfit(canonical({"properties": {"a": {"type": "number"}}}), {"a": "x" * ARGUMENTS_MAX_BYTES})

    assert len(found or "") == MISFIT_MAX_CHARS


BACKTRACKING = {"pattern": "^(a+)+$"}
DOUBLING = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 40 + "!"}),
        ({"patternProperties": {"^(a+)+$": False}}, {"a" * 40 + "!": 1}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [[], {}] * 20_000}),
        ({"$ref": "#"}, {}),
        ({"$ref": "#/$defs/d0", "$defs": {**DOUBLING, "d40": {"type": "string"}}}, {}),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": [1] * 60_000}),
        ({"properties": {"a": {"prefixItems": [{"type": "string"}] * 500}}}, {"a": [1] * 60_000}),
        ({"oneOf": [{"required": [f"r{n}"]} for n in range(1_000)]}, {"a": "x" * 250_000}),
        (
            {"properties": {"a": {"$schema": "http://json-schema.org/draft-03/schema#", "type": [{}]}}},
            {"a": 1},
        ),
        ({"$ref": "http://127.0.0.1:1/schema"}, {}),
        ({"$ref": "#/nowhere"}, {}),
        (
            {"properties": {"a": {"$ref": "#h"}}, "$defs": {"h": {"$anchor": "h", **BACKTRACKING}}},
            {"a": "a" * 40 + "!"},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/a%41"}}, "$defs": {"a%41": True, "aA": BACKTRACKING}},
            {"a": "a" * 40 + "!"},
        ),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/own/$defs/b"}},
                "$defs": {
                    "c": True,
                    "own": {"$id": "http://own/", "$defs": {"b": {"$ref": "#/$defs/c"}, "c": BACKTRACKING}},
                },
            },
            {"a": "a" * 40 + "!"},
        ),
    ],
    ids=lambda value: "",
)
def test_misfit_in_place_does_no_work_that_nothing_bounds(schema: Any, arguments: Any) -> None:
    began = time.process_time()

    assert misfit_in_place(canonical(schema), arguments) == unchecked(
        "it is too much work without a helper process"
    )
    assert time.process_time() - began < ENOUGH_S


@pytest.mark.parametrize("reference", ["http://127.0.0.1:1/schema", "#/nowhere", "#"])
def test_misfit_of_a_schema_that_cannot_be_applied_is_never_none(reference: str) -> None:
    """Neither a look at the network nor an endless loop: nothing fits it."""
    assert "could not be applied" in str(misfit(canonical({"$ref": reference}), {"a": 1}))


LEAVES = st.sampled_from(
    [True, False, {"type": "string"}, {"const": 1}, {"enum": [1, "a", {"b": 1}]}, {"required": ["a", "b"]}]
)
VALUES = st.recursive(
    st.sampled_from([1, "a", None, True, "long" * 20]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "keyword", ["items", "additionalItems", "contains", "additionalProperties", "propertyNames"]
)
@pytest.mark.parametrize(
    "value", [[1] * MAX_COST, {str(n): 1 for n in range(MAX_COST)}], ids=["list", "object"]
)
def test_cost_grows_with_what_a_keyword_looks_through(keyword: str, value: Any) -> None:
    schema = canonical({"properties": {"a": {keyword: {"type": "string"}}}})

    assert cost_of(schema, {"a": value}) > MAX_COST
    assert cost_of(schema, {"a": 1}) < 10


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "prefixItems"])
def test_cost_grows_with_what_a_keyword_lists(keyword: str) -> None:
    assert cost_of(canonical({keyword: [{"type": "object"}] * MAX_COST}), {}) > MAX_COST


def _applying(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = st.sampled_from(["items", "contains", "additionalProperties", "propertyNames", "not", "if"])
    several = st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"])
    named = st.sampled_from(["properties", "dependentSchemas"])
    return st.one_of(
        st.dictionaries(one, inner, min_size=1, max_size=3),
        st.dictionaries(several, st.lists(inner, min_size=1, max_size=3), min_size=1, max_size=2),
        st.dictionaries(named, st.dictionaries(st.sampled_from("abc"), inner, max_size=3), min_size=1),
        st.builds(lambda schema: {"$defs": {"d": schema}, "$ref": "#/$defs/d"}, inner),
    )


def _counted(called: list[str]) -> Any:
    def counting(name: str, apply: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def keyword(*given: Any) -> Iterator[Any]:
            called.append(name)
            yield from apply(*given) or ()

        return keyword

    base = jsonschema.Draft202012Validator
    return extend(base, {name: counting(name, apply) for name, apply in base.VALIDATORS.items()})  # type: ignore[no-untyped-call]


@given(schema=st.recursive(LEAVES, _applying, max_leaves=8), value=VALUES)
def test_cost_is_at_least_the_keywords_that_are_applied(schema: Any, value: Any) -> None:
    """What is done in place is bounded by a cost that counts everything jsonschema would do."""
    schema = schema if isinstance(schema, dict) else {"not": schema}
    cost = cost_of(canonical(schema), {"a": value})
    if cost <= MAX_COST:
        called: list[str] = []
        list(_counted(called)(schema).iter_errors({"a": value}))
        assert len(called) <= 2 * cost


def test_propose_that_does_not_fit_is_refused_with_its_path_and_the_id_stays_free() -> None:
    world = started()

    refused = the(proposed(world, "pay", arguments='{"amount":"much"}'), "CommandRefused")
    assert (refused.code, refused.subject_id) == ("invalid_arguments", "c")
    assert refused.detail == "$.amount: 'much' is not of type 'number'"
    assert not world.state().calls
    assert names(proposed(world, "pay"))[-1] == "HoldOpened"


def test_propose_and_edit_are_checked_by_what_the_definitions_were_given() -> None:
    """The decider gives a check that may be killed; nothing is applied in place beside it."""

    def check(schema_text: str, arguments: Any, tenant: str) -> str | None:
        return "$.amount: too much" if tenant == TENANT and arguments["amount"] > 5 else None

    empty = Definitions(policies=PolicySet(), check_schema=check)
    world = started(definitions=published(empty, RULES, TOOLS))

    assert (
        the(proposed(world, "pay", arguments='{"amount":6}'), "CommandRefused").detail == "$.amount: too much"
    )
    hold = held(world)
    assert code(decided(world, hold, "edit", edited_arguments='{"amount":7}')) == "invalid_arguments"
    assert names(decided(world, hold, "edit", edited_arguments='{"amount":4}'))[-1] == "ToolCallReleased"


def test_propose_in_a_pause_and_after_the_end_is_checked_as_any_other() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    assert code(proposed(world, "pay", arguments="{}")) == "invalid_arguments"
    world.ask(k.CancelExecution(), OLGA)

    assert code(proposed(world, "pay", arguments="{}")) == "invalid_arguments", "it precedes execution_closed"


def test_propose_of_an_unknown_tool_is_held_whatever_its_arguments() -> None:
    assert names(proposed(started(), "mystery", arguments='{"amount":"much"}'))[-1] == "HoldOpened"


def test_propose_again_what_fitted_then_is_a_duplicate_though_it_would_not_fit_now() -> None:
    world = started()
    proposed(world, "pay")
    narrow = {"name": "pay", "inputSchema": {"properties": {"amount": {"maximum": 1}}}}
    world.definitions = published(world.definitions, tools=[narrow])

    assert code(proposed(world, "pay")) == "duplicate"


def test_consume_after_the_tool_changed_so_that_the_arguments_do_not_fit_is_denied_with_the_reason() -> None:
    world = started()
    digest = released(world)
    narrow = {"name": "pay", "inputSchema": {"properties": {"amount": {"maximum": 1}}}}
    world.definitions = published(world.definitions, tools=[narrow])

    said = consumed(world, digest)

    assert names(said) == ["ToolCallProposed", "ToolCallDenied", "CommandRefused"]
    assert "$.amount: 5 is greater than the maximum of 1" in the(said, "ToolCallDenied").feedback
    assert code(said) == "not_released"
    assert world.state().calls["c"].status == "denied"


def test_publish_of_a_schema_over_the_limit_is_invalid() -> None:
    for length, expected in ((INPUT_SCHEMA_MAX_BYTES + 1, True), (INPUT_SCHEMA_MAX_BYTES, False)):
        description = "d" * (length - len('{"description":""}'))
        said = publish(EMPTY, {"name": "t", "inputSchema": {"description": description}})
        assert (names(said) == ["CommandRefused"]) is expected

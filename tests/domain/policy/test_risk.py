from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.risk_score import HIGH_FROM, MEDIUM_FROM, TOLERATED, WEIGHTS
from services.domain.policy.annotations import CLAIMABLE, HINTS, published, raised
from services.domain.policy.risk import Risk, risk_of

hints = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(HINTS, st.booleans() | st.sampled_from(["true", 1, None]))
)


def risk(tool: str = "tool", definition: dict[str, Any] | None = None, **annotations: Any) -> Risk:
    definition = {"annotations": annotations, **(definition or {})}
    return risk_of(tool, definition, published(definition))


def test_published_silent_definition_means_what_mcp_says() -> None:
    assert published({"name": "x"}) == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_published_unknown_tool_is_taken_at_the_worst() -> None:
    assert published(None) == published({})


def test_published_contradiction_counts_as_destructive() -> None:
    assert (
        published({"annotations": {"readOnlyHint": True, "destructiveHint": True}})["readOnlyHint"] is False
    )


def test_published_idempotent_is_read_from_both_places() -> None:
    assert published({"idempotent": True})["idempotentHint"] is True
    assert published({"annotations": {"idempotentHint": True}})["idempotentHint"] is True


@pytest.mark.parametrize("annotations", ["readOnlyHint", ["readOnlyHint"], 5, None])
def test_published_malformed_annotations_count_for_nothing(annotations: Any) -> None:
    assert published({"annotations": annotations}) == published({})


@pytest.mark.parametrize("value", ["true", 1, "yes", None])
def test_published_hint_that_is_no_boolean_does_not_make_a_tool_harmless(value: Any) -> None:
    stated = published({"annotations": {"readOnlyHint": value}})

    assert stated["readOnlyHint"] is False


@given(hints, st.dictionaries(st.sampled_from([*HINTS, "approved", "trusted"]), st.booleans() | st.text()))
def test_raised_claims_never_lower_the_risk(stated: dict[str, Any], claims: dict[str, Any]) -> None:
    definition = {"annotations": stated}
    before = published(definition)
    after = raised(before, claims)

    assert risk_of("tool", definition, after).score >= risk_of("tool", definition, before).score
    for name in CLAIMABLE:
        assert after[name] >= before[name]
    assert after["readOnlyHint"] <= before["readOnlyHint"]
    assert after["idempotentHint"] == before["idempotentHint"]


def test_risk_of_score_follows_the_documented_formula() -> None:
    found = risk("move", destructiveHint=True, idempotentHint=True, openWorldHint=False)

    assert found.parts == ("destructive", "writes")
    assert found.score == round(1 - (1 - WEIGHTS["destructive"]) * (1 - WEIGHTS["writes"]), 4)
    assert found.required == round(1 - TOLERATED / found.score, 4)


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (risk("get_x", readOnlyHint=True, openWorldHint=False), "low"),
        (risk("get_x", readOnlyHint=True), "low"),
        (risk("set_x", destructiveHint=False, openWorldHint=False), "low"),
        (risk("set_x", destructiveHint=False), "medium"),
        (risk("set_x"), "medium"),
        (risk("send_money"), "high"),
        (risk_of("get_x", None, published(None)), "high"),
    ],
)
def test_risk_of_level_follows_the_score(found: Risk, level: str) -> None:
    assert found.level == level
    assert (found.score >= MEDIUM_FROM) is (level != "low")
    assert (found.score >= HIGH_FROM) is (level == "high")


def test_risk_of_unknown_tool_requires_what_no_trust_reaches() -> None:
    assert risk_of("get_x", None, published(None)).required == 1.0


def test_risk_of_money_is_seen_in_the_published_parameters() -> None:
    schema: dict[str, Any] = {"inputSchema": {"properties": {"recipient": {}, "totalAmount": {}}}}

    assert "money" in risk("transmit", schema).parts
    assert "money" not in risk("transmit").parts


def test_risk_of_code_counts_even_for_a_read_only_tool() -> None:
    assert "runs_code" in risk("run_bash", readOnlyHint=True).parts


@pytest.mark.parametrize("schema", [None, 5, [], {"properties": 5}, {"properties": None}])
def test_risk_of_malformed_schema_is_read_as_none(schema: Any) -> None:
    assert risk("transmit", {"inputSchema": schema}).parts == risk("transmit").parts

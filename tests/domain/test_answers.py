"""What answers each kind of request: its fields, its schema, and the refusals."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.json_schema import first_misfit
from services.domain.execution.requests import request_digest
from tests.domain.steps import code, started
from tests.domain.world import RITA, World, names, the

REGIONS = '[{"id":"eu","label":"Europe","recommended":true},"us",3]'


def asked(world: World, **content: Any) -> Any:
    """The HoldOpened of a question."""
    fields = {"request_id": "q", "question": "Which?", **content}
    return the(world.ask(k.RequestHumanInput(**fields)), "HoldOpened")


def answered(world: World, hold: Any, value: Any) -> Any:
    said = k.DecideHold(
        hold_id=hold.hold_id, decision="respond", value=json.dumps(value, separators=(",", ":"))
    )
    return world.ask(said, RITA)


ANSWERS = [
    ({"kind": "decision", "options": REGIONS}, ["eu", "us", 3], ["Europe", "asia", ["eu"], True]),
    (
        {"kind": "decision", "options": REGIONS, "allow_custom": True},
        ["eu", "asia", 3],
        [" ", 4, ["eu"], {"id": "eu"}],
    ),
    (
        {"kind": "decision", "options": REGIONS, "multiple": True},
        [["eu"], ["us", 3, "eu"]],
        ["eu", [], ["eu", "eu"], ["asia"], [["eu"]], {"eu": True}],
    ),
    (
        {"kind": "decision", "options": REGIONS, "multiple": True, "allow_custom": True},
        [["eu", "asia"], ["asia"]],
        ["asia", ["eu", " "], ["asia", "asia"], [4]],
    ),
    ({"kind": "decision"}, ["any", 0, False, [], {}], ["", " ", None]),
    ({"kind": "clarification", "options": '["this","that"]'}, ["this", "something else", 7], ["", " ", None]),
    ({"kind": "permission"}, [True, False], ["yes", 1, {"granted": True, "remember": True}]),
    (
        {"kind": "permission", "remember": True, "tool": "shell", "action": "rm -rf build", "risk": "high"},
        [True, False, {"granted": True, "remember": True}, {"granted": False, "remember": False}],
        [
            {"granted": True},
            {"granted": 1, "remember": True},
            {"granted": True, "remember": True, "x": 1},
            "yes",
        ],
    ),
]


@pytest.mark.parametrize(("content", "good", "bad"), ANSWERS, ids=[str(content) for content, _, _ in ANSWERS])
def test_answers_that_a_request_takes_and_those_that_it_refuses(
    content: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    for value in bad:
        world = started()
        hold = asked(world, **content)
        assert code(answered(world, hold, value)) in ("invalid", "unknown_option"), value
    for value in good:
        world = started()
        hold = asked(world, **content)
        said = answered(world, hold, value)
        assert names(said) == ["DecisionRecorded", "HumanInputProvided"], value
        assert json.loads(the(said, "HumanInputProvided").response) == value


@pytest.mark.parametrize(("content", "good", "bad"), ANSWERS, ids=[str(content) for content, _, _ in ANSWERS])
def test_schema_of_a_hold_permits_the_answers_that_are_taken_and_no_others(
    content: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    schema = asked(started(), **content).input_schema
    assert [value for value in good if first_misfit(schema, value) is not None] == []
    assert [value for value in bad if first_misfit(schema, value) is None] == []


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ({"kind": "clarification"}, "\u200b"),
        ({"kind": "decision"}, "\u2060 \ufeff"),
        ({"kind": "decision", "options": REGIONS, "allow_custom": True}, "\x00\u200b"),
        ({"kind": "decision", "options": REGIONS, "allow_custom": True, "multiple": True}, ["eu", "\u3164"]),
    ],
)
def test_answer_of_which_nothing_is_seen_is_refused(content: dict[str, Any], value: Any) -> None:
    world = started()
    hold = asked(world, **content)
    assert code(answered(world, hold, value)) in ("invalid", "unknown_option")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"kind": "clarification", "multiple": True, "options": REGIONS}, "multiple is only for a decision"),
        ({"kind": "permission", "allow_custom": True}, "allow_custom is only for a decision"),
        ({"kind": "decision", "remember": True}, "remember is only for a permission"),
        ({"kind": "env_var", "fields": '["A"]', "tool": "shell"}, "tool is only for a permission"),
        ({"kind": "decision", "multiple": True}, "allow_custom and multiple are about options: give some"),
    ],
)
def test_field_of_another_kind_is_refused(content: dict[str, Any], why: str) -> None:
    said = started().ask(k.RequestHumanInput(request_id="q", question="Which?", **content))
    assert (code(said), the(said, "CommandRefused").detail) == ("invalid", why)


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        ({"options": REGIONS, "default": '"asia"', "allow_custom": True}, None),
        ({"options": REGIONS, "default": '["eu","us"]', "multiple": True}, None),
        ({"options": REGIONS, "default": '"eu"', "multiple": True}, "invalid"),
        ({"options": REGIONS, "default": '["asia"]', "multiple": True}, "unknown_option"),
    ],
)
def test_default_is_an_answer_that_a_person_could_give(content: dict[str, Any], refused: str | None) -> None:
    world = started()
    said = world.ask(k.RequestHumanInput(request_id="q", question="Which?", kind="decision", **content))
    if refused is None:
        assert the(said, "HoldOpened").default_value == content["default"]
    else:
        assert code(said) == refused
        assert the(said, "CommandRefused").detail.startswith("default: ")


VARIABLES = (
    '[{"description":"of the account","name":"KEY","pattern":"^sk-"},'
    '{"name":"REGION","required":false,"secret":false},"TOKEN"]'
)
SEALED = {"handle": "sec_" + "1" * 32, "commitment": "b" * 64}


def test_variables_have_descriptions_patterns_and_may_be_left_out() -> None:
    schema = json.loads(asked(started(), kind="env_var", fields=VARIABLES).input_schema)
    assert schema["required"] == ["KEY", "TOKEN"]
    assert (
        schema["properties"]["KEY"] | {"description": "of the account", "pattern": "^sk-"}
        == schema["properties"]["KEY"]
    )
    assert schema["properties"]["REGION"]["secret"] is False
    assert all(one["x-placet-sensitive"] is True for one in schema["properties"].values())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["KEY", "TOKEN"], None),
        (["KEY", "TOKEN", "REGION"], None),
        (["KEY", "REGION"], "invalid_arguments"),
        (["KEY", "TOKEN", "OTHER"], "invalid_arguments"),
        ([], "invalid_arguments"),
    ],
)
def test_variables_that_are_required_must_be_given(given: list[str], expected: str | None) -> None:
    world = started()
    hold = asked(world, kind="env_var", fields=VARIABLES)
    said = answered(world, hold, dict.fromkeys(given, SEALED))
    if expected is None:
        assert names(said) == ["DecisionRecorded", "HumanInputProvided"]
    else:
        assert code(said) == expected


def test_digest_binds_all_that_a_person_is_asked_and_is_what_earlier_versions_made() -> None:
    plain = k.RequestHumanInput(request_id="q", kind="permission", question="May I?")
    told = {"tool": "shell", "action": "rm", "risk": "low", "remember": True}
    digests = {request_digest(plain.model_copy(update={name: value})) for name, value in told.items()}
    assert len(digests | {request_digest(plain)}) == 5
    # Of {"fields":"[]","kind":"permission","options":"[]","question":"May I?"}.
    assert request_digest(plain) == "99be160e11b26d3f99410d5e6f1c30fca54d35b22c986efd23e26e3530fab40a"

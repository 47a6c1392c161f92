"""A human request is a hold: asked, answered, timed out, refused."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.limits import ARGUMENTS_MAX_BYTES, TEXT_MAX_CHARS
from services.domain.execution import requests
from services.domain.execution.evolve import evolve
from services.domain.execution.expiry import _request_ended
from tests.domain.steps import TESSA, code, held, started
from tests.domain.world import BOT, OTHER_BOT, RITA, World, names, the

OPTIONS = '["blue",{"id":"red","label":"Red"}]'


def asked(world: World, **content: Any) -> Any:
    """The HoldOpened of a question."""
    fields = {"request_id": "q", "kind": "clarification", "question": "Which?", **content}
    return the(world.ask(k.RequestHumanInput(**fields)), "HoldOpened")


def answer(hold: Any, value: str, digest: str = "") -> k.DecideHold:
    return k.DecideHold(hold_id=hold.hold_id, decision="respond", value=value, digest=digest)


def test_request_answered_gives_the_answer_to_the_agent() -> None:
    world = started()
    hold = asked(world)

    said = world.ask(answer(hold, '"this"'), RITA)

    assert names(said) == ["DecisionRecorded", "HumanInputProvided"]
    provided = the(said, "HumanInputProvided")
    assert (provided.response, provided.by, provided.timed_out) == ('"this"', "rita", False)


def test_request_answered_twice_or_on_other_words_is_refused() -> None:
    world = started()
    hold = asked(world)

    assert code(world.ask(answer(hold, "1", digest="0" * 64), RITA)) == "digest_mismatch"
    world.ask(answer(hold, "1"), RITA)
    assert code(world.ask(answer(hold, "2"), RITA)) == "already_decided"


def test_request_cannot_be_edited_and_says_how_it_is_answered() -> None:
    world = started()
    hold = asked(world)

    edit = k.DecideHold(hold_id=hold.hold_id, decision="edit", edited_arguments="{}")
    refused = the(world.ask(edit, RITA), "DecisionRefused")
    assert refused.code == "invalid"
    assert refused.detail == "a question has no arguments to edit: answer it (respond), or reject"


def test_request_decision_takes_only_its_options_and_says_so_before_that_it_is_late() -> None:
    world = started()
    hold = asked(world, kind="decision", options=OPTIONS)

    refused = world.ask(answer(hold, '"green"'), RITA)
    assert code(refused) == "unknown_option"
    assert the(refused, "DecisionRefused").detail.startswith('answer with one of the options: "')
    assert names(world.ask(answer(hold, '"red"'), RITA)) == ["DecisionRecorded", "HumanInputProvided"]
    assert code(world.ask(answer(hold, '"green"'), RITA)) == "unknown_option"


def test_request_whose_options_and_fields_would_fill_its_events_is_refused() -> None:
    world = started()
    half = json.dumps(["x" * (ARGUMENTS_MAX_BYTES // 2)])
    command = k.RequestHumanInput(request_id="q", kind="decision", question="Which?", options=half)

    refused = world.ask(command.model_copy(update={"fields": half}), BOT)
    assert code(refused) == "too_large"
    assert "options and fields" in the(refused, "CommandRefused").detail
    assert names(world.ask(command, BOT))[0] == "HumanInputRequested"


def test_request_again_with_another_default_is_another() -> None:
    world = started()
    asked(world, default='"blue"')

    def again(default: str | None) -> Any:
        command = k.RequestHumanInput(
            request_id="q", kind="clarification", question="Which?", default=default
        )
        return code(world.ask(command, BOT))

    assert [again(default) for default in ('"blue"', '"red"', None)] == [
        "duplicate",
        "id_reused",
        "id_reused",
    ]


def test_call_named_request_takes_no_id_of_a_requests_hold() -> None:
    world = started()
    held(world, "pay", "request")

    opened = asked(world, request_id="1")

    assert opened.hold_id not in {hold.hold_id for hold in world.state().holds.values() if hold.call_id}


def test_request_timed_out_gives_its_default_or_null() -> None:
    world = started()
    asked(world, timeout_ms=1000, default='"blue"')
    asked(world, request_id="r", timeout_ms=2000)
    world.later(2)

    said = world.ask(k.ExpireDue(subject_id="-", deadline_at_ms=0, attempt=1))

    answers = [(b.response, b.timed_out) for b in said if type(b).__name__ == "HumanInputProvided"]  # type: ignore[attr-defined]
    assert answers == [('"blue"', True), ("null", True)]


NO_ANSWERS = [
    ({"kind": "permission", "default": "true"}, "invalid"),
    ({"kind": "permission", "default": '"blue"', "options": OPTIONS}, "invalid"),
    ({"kind": "permission", "default": '"x"'}, "invalid"),
    ({"kind": "permission", "default": "0"}, "invalid"),
    ({"kind": "decision", "default": '"green"', "options": OPTIONS}, "unknown_option"),
    ({"kind": "decision", "default": "true", "options": "[1,2]"}, "unknown_option"),
    ({"kind": "decision", "default": '{"id":"red","label":"Red"}', "options": OPTIONS}, "unknown_option"),
    ({"kind": "decision", "default": '" "'}, "invalid"),
    ({"kind": "clarification", "default": '""'}, "invalid"),
]


@pytest.mark.parametrize(("content", "expected"), NO_ANSWERS)
def test_case_37_request_with_a_default_that_no_person_could_answer_is_refused(
    content: dict[str, Any], expected: str
) -> None:
    world = started()
    command = k.RequestHumanInput(request_id="q", question="Which?", **content)

    said = world.ask(command)

    assert code(said) == expected
    assert the(said, "CommandRefused").detail.startswith("default: ")


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "permission", "default": "false"},
        {"kind": "permission", "default": "null"},
        {"kind": "decision", "default": '"red"', "options": OPTIONS},
        {"kind": "decision", "default": '{"any":1}'},
        {"kind": "clarification", "default": "0"},
    ],
)
def test_request_with_a_default_that_a_person_could_answer_gives_it_in_the_end(
    content: dict[str, Any],
) -> None:
    world = started()
    asked(world, timeout_ms=1000, **content)
    world.later(1)

    said = world.ask(k.ExpireDue(subject_id="-", deadline_at_ms=0, attempt=1))

    assert the(said, "HumanInputProvided").response == content["default"]


@pytest.mark.parametrize("content", [content for content, _ in NO_ANSWERS])
def test_request_that_an_earlier_version_took_with_such_a_default_is_answered_by_nobody(
    content: dict[str, Any],
) -> None:
    world = started()
    opened = asked(world, **{**content, "default": None}, timeout_ms=1000)
    opened = opened.model_copy(update={"on_timeout": "default", "default_value": content["default"]})
    state = evolve(world.state(), opened, world.now_ms)

    said = _request_ended(state.holds[opened.hold_id])

    assert the(said, "HumanInputProvided").response == "null"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"question": "x" * (TEXT_MAX_CHARS + 1)}, "too_large"),
        ({"default": '"' + "x" * TEXT_MAX_CHARS + '"'}, "too_large"),
        ({"options": "{}"}, "malformed"),
        ({"default": "{oops"}, "malformed"),
        ({"kind": "env_var"}, "invalid"),
        ({"timeout_ms": 0}, "invalid"),
        ({"timeout_ms": 2**63 - 1}, "invalid"),
        ({"request_id": ""}, "invalid"),
    ],
)
def test_request_bad_content_is_refused(content: dict[str, Any], expected: str) -> None:
    world = started()
    fields = {"request_id": "q", "kind": "clarification", "question": "Which?", **content}

    assert code(world.ask(k.RequestHumanInput(**fields))) == expected


def test_request_same_id_same_question_is_a_duplicate_and_another_a_reuse() -> None:
    world = started()
    asked(world)
    again = k.RequestHumanInput(request_id="q", kind="clarification", question="Which?")
    other = k.RequestHumanInput(request_id="q", kind="clarification", question="Who?")

    assert code(world.ask(again, BOT)) == "duplicate"
    assert code(world.ask(other, BOT)) == "id_reused"
    assert code(world.ask(other, OTHER_BOT)) == "not_found"


def test_request_approved_never_releases_a_call() -> None:
    """Neither an empty call id nor any other may tie a question to a call."""
    world = started()
    proposals = [k.ProposeToolCall(call_id=name, tool="wait", arguments="{}") for name in ("", "q")]
    for proposal in proposals:
        world.ask(proposal)
    hold = asked(world, kind="permission")

    said = world.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve"), RITA)

    assert names(said) == ["DecisionRecorded", "HumanInputProvided"]
    assert {call.status for call in world.state().calls.values()} == {"held"}


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("decision", OPTIONS, "one of its options"),
        ("decision", "[]", "a value"),
        ("clarification", "[]", "a value"),
        ("clarification", OPTIONS, "one of its options"),
    ],
)
def test_request_that_asks_for_an_answer_is_not_approved_and_stays_open(
    kind: str, options: str, words: str
) -> None:
    world = started()
    hold = asked(world, kind=kind, options=options)

    refused = the(world.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve"), RITA), "DecisionRefused")

    assert refused.code == "invalid"
    assert f"answer with {words}" in refused.detail
    assert names(world.ask(answer(hold, '"red"'), RITA)) == ["DecisionRecorded", "HumanInputProvided"]


@pytest.mark.parametrize(
    ("kind", "decision", "response"),
    [
        ("permission", "approve", "true"),
        ("permission", "reject", "false"),
        ("decision", "reject", "null"),
        ("clarification", "reject", "null"),
    ],
)
def test_request_decided_without_a_value_is_answered_by_its_kind(
    kind: str, decision: Any, response: str
) -> None:
    world = started()
    hold = asked(world, kind=kind, options=OPTIONS)

    said = world.ask(k.DecideHold(hold_id=hold.hold_id, decision=decision, feedback="so"), RITA)

    assert the(said, "HumanInputProvided").response == response


@pytest.mark.parametrize("value", ['"no"', "1", "0", "null", '"yes"', '"true"', "[]"])
def test_request_permission_takes_no_value_that_is_neither_yes_nor_no(value: str) -> None:
    """What an agent's program takes for true, a person may have meant for no."""
    world = started()
    hold = asked(world, kind="permission")

    assert code(world.ask(answer(hold, value), RITA)) == "unknown_option"
    assert the(world.ask(answer(hold, "false"), RITA), "HumanInputProvided").response == "false"


def test_request_permission_with_options_takes_these_too() -> None:
    world = started()
    hold = asked(world, kind="permission", options='["once"]')

    assert the(world.ask(answer(hold, '"once"'), RITA), "HumanInputProvided").response == '"once"'


def test_request_decision_tells_a_number_from_a_truth_value() -> None:
    world = started()
    hold = asked(world, kind="decision", options="[1,2]")

    assert code(world.ask(answer(hold, "true"), RITA)) == "unknown_option"
    assert code(world.ask(answer(hold, '"1"'), RITA)) == "unknown_option"
    assert the(world.ask(answer(hold, "1.0"), RITA), "HumanInputProvided").response == "1.0"


def test_request_open_when_the_run_ends_is_cancelled() -> None:
    world = started()
    hold = asked(world)

    assert names(world.ask(k.CompleteExecution())) == ["HoldCancelled", "ExecutionCompleted"]
    assert code(world.ask(answer(hold, "1"), RITA)) == "execution_closed"


@pytest.mark.parametrize("value", ["null", '""', '" \\n"'])
@pytest.mark.parametrize("kind", ["clarification", "decision"])
def test_request_answered_with_nothing_is_refused(kind: str, value: str) -> None:
    world = started()
    hold = asked(world, kind=kind)
    assert code(world.ask(answer(hold, value), RITA)) == "invalid"
    assert names(world.ask(answer(hold, '"so"'), RITA)) == ["DecisionRecorded", "HumanInputProvided"]


def test_request_that_somebody_has_answered_names_who() -> None:
    world = started()
    hold = asked(world)
    world.ask(answer(hold, "1"), RITA)
    refused = the(world.ask(answer(hold, "2"), TESSA), "DecisionRefused")
    assert (refused.code, refused.detail) == ("already_decided", "rita decided it first")


def test_unknown_option_names_the_options_with_nothing_hidden_and_not_without_end() -> None:
    world = started()
    options = json.dumps([f"option {n} \u202e" for n in range(50)])
    hold = asked(world, kind="decision", options=options)

    detail = the(world.ask(answer(hold, '"x"'), RITA), "DecisionRefused").detail

    assert '"option 0 \\u{202e}"' in detail
    assert "\u202e" not in detail
    assert detail.endswith("and 30 more")


def test_question_of_an_earlier_version_asked_again_is_the_same_though_its_options_are_refused_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = started()
    command = k.RequestHumanInput(request_id="q", kind="decision", question="Which?", options='[1,"1"]')
    with monkeypatch.context() as earlier:
        earlier.setattr(requests, "question_problem", lambda command: None)
        world.ask(command, BOT)

    assert code(world.ask(command, BOT)) == "duplicate"
    assert code(world.ask(command.model_copy(update={"request_id": "r"}), BOT)) == "invalid"

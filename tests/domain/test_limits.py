"""Limits belong to the words: whoever sends them, by whatever door, the decider refuses what is over them."""

from typing import Any, get_args

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.command_rules import rules_of, unfit
from schemas.events.holds import HoldOpened
from schemas.limits import ARGUMENTS_MAX_BYTES, COUNT_MAX, ITEMS_MAX, TEXT_MAX_CHARS, Limit
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.arguments import object_problem
from tests.domain.steps import refusal, started
from tests.domain.world import BOT, OLGA, RITA, World, the

BAD_TOOLS = ("", "send\x00money", "send\nmoney", "\x1b[2J", "send_money\n", "x\x7f")


def _is_text(annotation: Any) -> bool:
    parts = (annotation, *get_args(annotation), *(p for a in get_args(annotation) for p in get_args(a)))
    return str in parts


@pytest.mark.parametrize("command", k.COMMANDS)
def test_every_text_of_every_command_has_a_limit(command: type[Message]) -> None:
    texts = {name for name, about in command.model_fields.items() if _is_text(about.annotation)}

    assert texts == {name for name, rules in rules_of(command).items() if rules.limit is not None}


@pytest.mark.parametrize(
    ("actor", "body", "code", "said"),
    [
        (RITA, k.PauseExecution(reason="x" * 700_000), "too_large", "reason is limited to 16,384 characters"),
        (
            BOT,
            k.ProposeToolCall(call_id="c", tool="t" * 300_000, arguments="{}"),
            "too_large",
            "tool is limited to 128 characters",
        ),
        (
            BOT,
            k.ProposeToolCall(call_id="c", tool="t", arguments="{}", claims="x" * 700_000),
            "too_large",
            "claims is",
        ),
        (
            BOT,
            k.StartExecution(agent="bot", request="x" * 32_769),
            "too_large",
            "request is limited to 32,768",
        ),
        # What comes before a size in the order of precedence is named first.
        (
            RITA,
            k.ProposeToolCall(call_id="c", tool="t" * 300_000, arguments="{}"),
            "not_found",
            "besides that, tool is limited to 128 characters",
        ),
        (
            RITA,
            k.DecideHold(hold_id="h" * 129, decision="approve"),
            "not_found",
            "besides that, hold_id is limited to 128 characters",
        ),
    ],
)
def test_case_37_word_over_its_limit_by_kafka_is_refused_and_not_repeated(
    actor: Actor, body: Message, code: str, said: str
) -> None:
    refused = the(started().ask(body, actor), "CommandRefused")

    assert (refused.code, refused.detail[: len(said)]) == (code, said)
    assert len(refused.model_dump_json()) < 1_000


def test_case_37_word_at_its_limit_is_taken() -> None:
    paused = the(started().ask(k.PauseExecution(reason="x" * TEXT_MAX_CHARS), BOT), "ExecutionPaused")

    assert len(paused.reason) == TEXT_MAX_CHARS
    assert unfit(k.PauseExecution(reason="x" * (TEXT_MAX_CHARS + 1))) is not None


QUESTION = k.RequestHumanInput(request_id="q", kind="clarification", question="Which?")
PROPOSAL = k.ProposeToolCall(call_id="c", tool="t", arguments="{}")
MANY = canonical([str(number) for number in range(ITEMS_MAX + 1)])


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        *((PROPOSAL.model_copy(update={"tool": tool}), "invalid", "tool must be") for tool in BAD_TOOLS),
        (PROPOSAL.model_copy(update={"call_id": "a/b"}), "invalid", "call_id must be 1 to 128 of"),
        (PROPOSAL.model_copy(update={"call_id": "c\n"}), "invalid", "call_id must be"),
        (QUESTION.model_copy(update={"request_id": ""}), "invalid", "request_id must be"),
        (QUESTION.model_copy(update={"question": ""}), "invalid", "question must not be blank"),
        (QUESTION.model_copy(update={"question": " \n\u00a0"}), "invalid", "question must not be blank"),
        (QUESTION.model_copy(update={"question": "\u200b\ufeff"}), "invalid", "question must not be blank"),
        (QUESTION.model_copy(update={"options": MANY}), "invalid", "there are at most 100 options"),
        (QUESTION.model_copy(update={"fields": MANY}), "invalid", "there are at most 100 options"),
        (QUESTION.model_copy(update={"default": ""}), "malformed", ""),
        (k.CompleteExecution(result="no json"), "malformed", "result: "),
        (k.CompleteExecution(result=""), "malformed", "result: "),
        (k.CompleteExecution(result="1e400"), "malformed", "result: "),
    ],
)
def test_case_37_word_in_another_form_than_the_doors_take_is_refused_by_the_decider(
    body: Message, code: str, said: str
) -> None:
    refused = the(started().ask(body, BOT), "CommandRefused")

    assert (refused.code, refused.detail[: len(said)]) == (code, said)


@pytest.mark.parametrize("agent", ["", "a/b", "bot\x00", "bot ", "b" * 129])
def test_case_37_agent_that_no_token_could_name_starts_nothing(agent: str) -> None:
    refused = the(World().ask(k.StartExecution(agent=agent), OLGA), "CommandRefused")

    assert refused.code in ("invalid", "too_large", "not_authorised")


@pytest.mark.parametrize("number", [-1, COUNT_MAX + 1, -(2**63)])
def test_case_37_number_out_of_its_range_is_refused(number: int) -> None:
    bodies = (
        k.ReportResult(call_id="c", attempt_id="a", outcome="succeeded", duration_ms=number),
        k.DecideHold(hold_id="h", decision="approve", dwell_ms=number),
        k.RetirePolicy(name="p", version=number),
    )
    for body in bodies:
        problem = unfit(body)
        assert problem is not None
        assert problem[0] == Refusal.INVALID


def test_case_37_decision_with_an_empty_value_is_malformed() -> None:
    world = started()
    (_, opened) = world.ask(QUESTION, BOT)
    assert isinstance(opened, HoldOpened)
    word = k.DecideHold(hold_id=opened.hold_id, decision="respond", digest=opened.digest, value="")
    assert the(world.ask(word, RITA), "DecisionRefused").code == "malformed"


def test_limit_in_bytes_counts_what_a_text_takes_in_utf_8() -> None:
    limit = Limit(ARGUMENTS_MAX_BYTES, "bytes")

    assert limit.allows("ü" * (ARGUMENTS_MAX_BYTES // 2))
    assert not limit.allows("ü" * (ARGUMENTS_MAX_BYTES // 2) + "x")


@pytest.mark.parametrize("number", ["100000000000000000000", "1e+21", "-1e+21", "9007199254740992", "1e+300"])
def test_integer_beyond_the_exact_ones_is_refused_by_the_decider_too(number: str) -> None:
    found = object_problem("arguments", f'{{"amount":{number}}}')
    assert found is not None
    assert found[0] == Refusal.MALFORMED
    assert "send it as a string" in found[1]


@pytest.mark.parametrize("field", ["arguments", "claims", "context"])
def test_refusal_of_what_is_no_object_names_its_field(field: str) -> None:
    world = started()
    fields = {"arguments": "{}", field: "[]"}
    refused = refusal(world.ask(k.ProposeToolCall(call_id="c", tool="t", **fields), BOT))
    assert (refused.code, refused.detail) == ("malformed", f"{field}: must be a JSON object")

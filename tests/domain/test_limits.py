"""Limits belong to the words: whoever sends them, by whatever door, the decider refuses what is over them."""

from typing import Any, get_args

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.limits import ARGUMENTS_MAX_BYTES, TEXT_MAX_CHARS, Limit
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.proposals import arguments_problem
from tests.domain.steps import started
from tests.domain.world import BOT, RITA, the


def _is_text(annotation: Any) -> bool:
    parts = (annotation, *get_args(annotation), *(p for a in get_args(annotation) for p in get_args(a)))
    return str in parts


@pytest.mark.parametrize("command", k.COMMANDS)
def test_every_text_of_every_command_has_a_limit(command: type[Message]) -> None:
    texts = {name for name, about in command.model_fields.items() if _is_text(about.annotation)}

    assert texts == set(k.limits_of(command))


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
        # What comes before a size in the order of precedence is named first.
        (
            RITA,
            k.ProposeToolCall(call_id="c", tool="t" * 300_000, arguments="{}"),
            "not_found",
            "tool is limited to 128 characters",
        ),
        (
            RITA,
            k.DecideHold(hold_id="h" * 129, decision="approve"),
            "not_found",
            "hold_id is limited to 128 characters",
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
    assert k.over_limit(k.PauseExecution(reason="x" * (TEXT_MAX_CHARS + 1))) is not None


def test_limit_in_bytes_counts_what_a_text_takes_in_utf_8() -> None:
    limit = Limit(ARGUMENTS_MAX_BYTES, "bytes")

    assert limit.allows("ü" * (ARGUMENTS_MAX_BYTES // 2))
    assert not limit.allows("ü" * (ARGUMENTS_MAX_BYTES // 2) + "x")


@pytest.mark.parametrize("number", ["100000000000000000000", "1e+21", "-1e+21", "9007199254740992", "1e+300"])
def test_integer_beyond_the_exact_ones_is_refused_by_the_decider_too(number: str) -> None:
    found = arguments_problem(f'{{"amount":{number}}}')
    assert found is not None
    assert found[0] == Refusal.MALFORMED
    assert "send it as a string" in found[1]

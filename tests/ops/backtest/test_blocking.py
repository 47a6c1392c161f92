"""Which calls that people were against block: presumptions, samples, trust, and releases of the same kind."""

from __future__ import annotations

from typing import Any

import pytest

from ops.backtest.found import Judged, Side, Word
from schemas import commands as k
from schemas.events.calls import PolicyVerdictIssued
from schemas.message import Message
from tests.domain.trusting import ALWAYS, Known, facts
from tests.domain.world import RITA, RULES, rule, the
from tests.ops.backtest.past import Past, policy
from tests.ops.backtest.test_remembered import PAYMENT, UNLIMITED, ruled
from tests.ops.backtest.test_remembered import past as past_with_memory

ALL_PASS = policy(rule("all", "*", "allow"))


def adaptive(sample_rate: float = 0, **more: Any) -> dict[str, Any]:
    return policy(*RULES, adaptive={**ALWAYS, "sample_rate": sample_rate, **more})


def past(document: dict[str, Any], **about: Any) -> Past:
    made = Past(**about)
    made.tools()
    made.policy(document)
    made.start()
    return made


def rejected(made: Past) -> Past:
    made.decide(the(made.propose("pay"), "HoldOpened"), "reject")
    return made


def test_rejected_call_whose_trust_was_not_known_is_presumed_to_pass() -> None:
    made = rejected(past(policy(*RULES)))

    (row,) = made.against(adaptive()).overruled

    assert (row.word, row.after.effect, row.presumed) == ("rejected", "hold", True)
    assert not made.against(policy(*RULES, rule("more", "other", "allow"))).overruled
    assert not made.against(adaptive(floor={"low": "ask", "medium": "ask", "high": "ask"})).overruled


def test_policy_in_force_is_not_presumed_to_pass_what_it_asked() -> None:
    made = rejected(past(adaptive()))

    assert not made.against(adaptive()).overruled
    assert made.against(adaptive(allow_when="trust.lower_bound >= 0.1")).overruled


@pytest.fixture
def without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are recorded as an earlier version did, without the history of the call's values."""
    land = Past.land

    def landed(made: Past, tp: Any, body: Message, *more: Any) -> int:
        if isinstance(body, PolicyVerdictIssued):
            body = body.model_copy(update={"history": None})
        return land(made, tp, body, *more)

    monkeypatch.setattr(Past, "land", landed)


@pytest.mark.usefixtures("without_history")
def test_rejected_call_whose_history_was_not_recorded_is_presumed_to_pass() -> None:
    made = rejected(past(policy(*RULES), trust=Known(facts(60))))

    news = {**rule("known", "pay", "allow"), "when": "!novel(args.amount)"}
    (row,) = made.against(policy(news, rule("rest", "*", "hold"))).overruled

    assert (row.after.effect, row.presumed) == ("hold", True)


@pytest.mark.usefixtures("without_history")
def test_text_for_a_tool_that_runs_code_has_a_history_though_it_reads_as_prose() -> None:
    made = past(policy(rule("rest", "*", "hold")), trust=Known(facts(60)))
    made.tools({"name": "run_script"})
    made.decide(the(made.propose("run_script", body="wipe the disk"), "HoldOpened"), "reject")

    news = {**rule("known", "run_script", "allow"), "when": "!novel(args.body)"}
    (row,) = made.against(policy(news, rule("rest", "*", "hold"))).overruled

    assert (row.after.effect, row.presumed) == ("hold", True)


@pytest.mark.parametrize(("then", "now", "blocks"), [(1, 0.5, True), (1, 1, False), (0.9999, 0.9999, False)])
def test_sample_that_people_rejected_blocks_a_lower_rate_alone(then: float, now: float, blocks: bool) -> None:
    made = rejected(past(adaptive(then), trust=Known(facts(60))))

    assert bool(made.against(adaptive(now)).overruled) == blocks


def test_release_by_trust_that_people_took_back_blocks_a_release_by_rule() -> None:
    made = past(adaptive(), trust=Known(facts(60)))
    made.propose("pay")
    made.ask(k.RevokeGrant(call_id="c", reason="no"), RITA)

    assert [row.before.reason for row in made.against(ALL_PASS).overruled] == ["trusted"]
    again = made.against(adaptive())
    assert (again.overruled, len(again.passing_again)) == ([], 1)


def test_remembered_release_that_people_took_back_blocks_a_release_by_rule() -> None:
    made = past_with_memory(UNLIMITED)
    ruled(made, None)
    made.propose("pay", "covered", **PAYMENT)
    made.ask(k.RevokeGrant(call_id="covered", reason="no"), RITA)

    found = made.against(ALL_PASS)

    assert [(row.call_id, row.before.reason) for row in found.overruled] == [("covered", "remembered")]
    assert not found.passing_again


def side(effect: Any, reason: str) -> Side:
    return Side(effect, reason, (), "", "p@1")


def row_of(before: Side, after: Side, *words: Word) -> Judged:
    place = ("main", "x", "c", 1, 0, 0, 0, "bot", "pay", "{}")
    row = Judged(*place, before, after, after.effect == "allow")
    for word in words:
        row.say(word, word, "")
    return row


def test_rejected_revision_that_the_policy_in_force_allowed_blocks_no_equal_policy() -> None:
    allowed = side("allow", "rule")

    assert not row_of(allowed, allowed, "rejected").is_overruled
    assert row_of(allowed, allowed, "rejected").passes_again
    assert row_of(side("allow", "trusted"), allowed, "rejected").is_overruled
    assert row_of(side("hold", "rule"), allowed, "rejected").is_overruled


def test_strongest_word_stays() -> None:
    for words in (("rejected", "approved"), ("approved", "rejected"), ("rejected", "revoked")):
        row = row_of(side("hold", "rule"), side("allow", "rule"), *words)
        assert (row.word, row.by) == ("rejected", "rejected")

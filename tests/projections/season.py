"""A season of decisions on one installation: two agents, three people, two versions of a policy, a standing rule.

It is made of the events that deciders write, over `DAYS` days of the log's time, from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from schemas.canonical import canonical
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.events.definitions import PrincipalPublished
from schemas.ids import definition_key
from schemas.message import Message
from schemas.topics import DAY_MS
from tests.projections.histories import (
    START_MS,
    TENANT,
    LogBuilder,
    consumed,
    decided,
    failed,
    held,
    judged,
    key_of,
    proposed,
    released,
    started,
    succeeded,
)

DAYS = 260
# By the amount. What is contrary to the first is contrary to the second, too (`schemas.trust_family`).
CLASSES = {
    20: "amount=1e1&risk=money",
    30: "amount=1e1&risk=money,novel",
    200: "amount=1e2&risk=money",
    300: "amount=1e2&risk=money",
}
AGENTS = ("billing-bot", "travel-bot")
PEOPLE = ("ann@acme", "bob@acme", "eve@acme")
STANDING = "rule:standing-1"
# What people do with a held call, and how often.
WORDS = ("approve",) * 12 + ("edit", "edit", "reject", "take_back", "harm", "fails")


def season(runs: int = 240, *, partitions: int = 4, seed: int = 7) -> LogBuilder:
    """The executions' log."""
    draw, log = random.Random(seed), LogBuilder(partitions).claim_all()
    for index in range(runs):
        log.now_ms = START_MS + index * DAYS * DAY_MS // runs
        key = key_of(f"run-{index}")
        log.append(key, [started(draw.choice(AGENTS))])
        for bodies in _call(key, draw, 3 if index < runs // 2 else 4):
            log.now_ms += draw.randrange(1, 60_000)
            log.append(key, bodies)
    return log


def people() -> LogBuilder:
    """The definitions' log: eve is a person whose account was withdrawn."""
    log = LogBuilder(1).claim_all()
    for name, disabled in (("ann", False), ("eve", False), ("eve", True)):
        document = {
            "principal": name,
            "subjects": [f"{name}@acme"],
            "roles": ["treasurer"],
            "disabled": disabled,
        }
        version = log.versions.get(definition_key(TENANT, "principal", name), 0) + 1
        body = PrincipalPublished(name=name, version=version, document=canonical(document), by="ops@acme")
        log.append(definition_key(TENANT, "principal", name), [body])
    return log


def _call(key: bytes, draw: random.Random, version: int) -> Iterator[list[Message]]:
    amount = draw.choice(tuple(CLASSES))
    call = proposed("c", {"amount": amount, "recipient": "GB29"}).model_copy(
        update={"agent": draw.choice(AGENTS)}
    )
    verdict = judged(call).model_copy(
        update={
            "trust_class": CLASSES[amount],
            "rules": (f"production@{version}/payments-over-limit",),
        }
    )
    if draw.random() < 0.1:
        by_rule = verdict.model_copy(
            update={"effect": "allow", "reason": "remembered", "rules": (*verdict.rules, STANDING)}
        )
        yield [call, by_rule, released(call, released_by="rule")]
        yield [consumed(call)]
        yield [succeeded(call)]
        return
    hold = held(key, call)
    yield [call, verdict, hold]
    yield from _decided(key, draw, call, verdict, hold)


def _decided(
    key: bytes,
    draw: random.Random,
    call: c.ToolCallProposed,
    verdict: c.PolicyVerdictIssued,
    hold: h.HoldOpened,
) -> Iterator[list[Message]]:
    word, by = draw.choice(WORDS), draw.choice(PEOPLE)
    dwell_ms = draw.choice((None, 900, 2_999, 3_000, 20_000))
    if word == "reject":
        denied = c.ToolCallDenied(call_id="c", revision=1, cause="rejected", feedback="no", decision_id="")
        yield [decided(hold, "reject", by=by), denied]
        return
    if word == "edit":
        call = proposed("c", {"amount": 5, "recipient": "GB29", "note": "less"}, revision=2).model_copy(
            update={"agent": call.agent}
        )
        again = held(key, call)
        edit = decided(hold, "edit", by=by, edited_arguments=call.arguments, feedback="less")
        yield [edit, call, verdict.model_copy(update={"revision": 2}), again]
        hold, by = again, "bob@acme"
    approval = decided(hold, by=by, dwell_ms=dwell_ms)
    yield [approval, released(call, approval.decision_id)]
    if word == "take_back":
        yield [c.GrantRevoked(call_id="c", revision=call.revision, reason="changed my mind", by=by)]
        return
    yield [consumed(call)]
    yield [failed(call) if word == "fails" else succeeded(call)]
    if word == "harm":
        yield [_harm(call, verdict.trust_class)]


def _harm(call: c.ToolCallProposed, trust_class: str) -> c.ImpactReported:
    return c.ImpactReported(
        call_id="c",
        revision=call.revision,
        agent=call.agent,
        tool=call.tool,
        trust_class=trust_class,
        reason="it went to the wrong account",
        by="bob@acme",
    )

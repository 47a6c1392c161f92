"""A season of decisions on one installation: two agents, three people, two versions of a policy, a standing rule.

It is made of the events that deciders write, over `DAYS` days of the log's time, from a seed. `two_projects` is a
season in each of two projects, whose agents, tools and rules have the same names, with what is rarer.
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
    PROJECT,
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
# Another account of ann.
ANN_TOO = "ann@home"
BESIDE = "beside"
STANDING = "rule:standing-1"
# What people do with a held call, and how often.
WORDS = ("approve",) * 12 + ("edit", "edit", "reject", "take_back", "harm", "fails")


def season(
    runs: int = 240, *, partitions: int = 4, seed: int = 7, projects: tuple[str, ...] = (PROJECT,)
) -> LogBuilder:
    """The executions' log; the same happens in each of the projects."""
    log, draws = LogBuilder(partitions).claim_all(), [random.Random(seed) for _ in projects]
    for index in range(runs):
        log.now_ms = START_MS + index * DAYS * DAY_MS // runs
        for project, draw in zip(projects, draws, strict=True):
            key = key_of(f"run-{index}", project=project)
            log.append(key, [started(draw.choice(AGENTS))])
            for bodies in _call(key, draw, 3 if index < runs // 2 else 4):
                log.now_ms += draw.randrange(1, 60_000)
                log.append(key, bodies)
    return log


def two_projects() -> LogBuilder:
    """The season in two projects, a call that was judged again after its approval, and two holds with two votes."""
    log = season(projects=(PROJECT, BESIDE))
    _judged_again(log)
    _two_votes(log, "by-two-people", "bob@acme")
    _two_votes(log, "by-one-person", ANN_TOO)
    return log


def _judged_again(log: LogBuilder) -> None:
    """Definitions become stricter between release and use: a second hold verdict and a second hold, one revision."""
    key, call = key_of("judged-again"), proposed("c")
    verdict, hold = judged(call), held(key, call)
    approval = decided(hold)
    log.append(key, [started()])
    log.append(key, [call, verdict, hold])
    log.append(key, [approval, released(call, approval.decision_id)])
    stricter = verdict.model_copy(update={"rules": ("production@4/payments-over-limit",)})
    again = held(key, call, hold_id="hold-again", cause="definition_changed")
    log.append(key, [stricter, again])
    second = decided(again, by="bob@acme")
    log.append(key, [second, released(call, second.decision_id)])
    log.append(key, [consumed(call)])
    log.append(key, [succeeded(call)])


def _two_votes(log: LogBuilder, execution_id: str, second: str) -> None:
    key, call = key_of(execution_id), proposed("c")
    hold = held(key, call, quorum=2)
    log.append(key, [started()])
    log.append(key, [call, judged(call), hold])
    log.append(key, [decided(hold, decision_id=f"{execution_id}-1", person="ann", resolves=False)])
    person = "ann" if second == ANN_TOO else ""
    word = decided(hold, by=second, person=person, decision_id=f"{execution_id}-2")
    log.append(key, [word, released(call, word.decision_id)])
    log.append(key, [consumed(call)])
    log.append(key, [succeeded(call)])


def people() -> LogBuilder:
    """The definitions' log: eve is a person whose account was withdrawn."""
    log = LogBuilder(1).claim_all()
    for name, disabled in (("ann", False), ("eve", False), ("eve", True)):
        document = {
            "principal": name,
            "subjects": [f"{name}@acme", f"{name}@home"],
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

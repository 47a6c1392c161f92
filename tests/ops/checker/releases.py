"""Runs in which people decide on calls of a class, and trust then releases one: right unless it is told otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ops.checker import check
from ops.checker.calls import digest_of
from ops.checker.check import Records
from schemas.adaptive import draw_of
from schemas.call_history import NO_HISTORY, CallHistory, history_to_text
from schemas.events import calls as c
from schemas.trust import ClassFact
from schemas.trust_score import Placed, posterior
from tests.ops.checker.builder import DEFINITIONS, EVENTS, START_MS, Story

KNOWN, NEW = "to=text&risk=writes", "to=text&risk=novel:to,writes"
TAINTED = "to=text&risk=novel:to,tainted:to,writes"
OF_NEW = CallHistory(parts=("novel",), novel=("to",))
OF_TAINTED = CallHistory(parts=("novel", "tainted"), novel=("to",), tainted=("memo", "to"))
SEED = "5e" * 16
ENOUGH = 13
# What a call with a new value takes: `risk.required` is 0.8333.
ENOUGH_FOR_NEW = 20
RULES: list[dict[str, Any]] = [{"id": "asks", "then": "hold"}]
POLICY: dict[str, Any] = {"adaptive": {"sample_rate": 0, "floor": {"high": 0.6}}, "rules": RULES}


def named(body: Any, name: str, **more: Any) -> Any:
    return body.model_copy(update={"call_id": name, **more})


def proposed(story: Story, name: str) -> c.ToolCallProposed:
    plain = story.proposed().model_copy(update={"call_id": name})
    story.digest = digest_of("acme", plain)
    return plain.model_copy(update={"digest": story.digest})


def ask(story: Story, name: str, trust_class: str = KNOWN, **more: Any) -> None:
    verdict = named(story.verdict("hold"), name, trust_class=trust_class, **more)
    story.says(proposed(story, name), verdict, named(story.hold(f"hold-{name}"), name))


def decide(story: Story, name: str, decision: str = "approve", by: str = "rita") -> None:
    word = named(story.decision(decision, by=by), name, hold_id=f"hold-{name}", digest=story.digest)
    ended = named(story.release(), name, digest=story.digest)
    if decision == "reject":
        ended = c.ToolCallDenied(call_id=name, revision=1, cause="rejected", feedback="", decision_id="d")
    story.says(word, ended)


def earned(count: int = ENOUGH, trust_class: str = KNOWN, by: str = "rita") -> Story:
    """A run in which people have approved so many calls of a class."""
    story = Story()
    earn(story, count, trust_class, by)
    return story


def earn(
    story: Story, count: int = ENOUGH, trust_class: str = KNOWN, by: str = "rita", **policy: Any
) -> None:
    """Begin such a run, by a policy with other parts than `POLICY` where they are given."""
    story.publishes("rita", "rita", roles=["reviewer"])
    story.publishes_policy("p", **{**POLICY, **policy})
    story.starts()
    for number in range(count):
        ask(story, f"{trust_class}-{number}", trust_class)
        decide(story, f"{trust_class}-{number}", by=by)


def sample(story: Story, name: str = "sampled", trust_class: str = KNOWN) -> None:
    """A call that trust would have released, and that people are asked about as a sample."""
    told = {"result": "sampled", "why": "", "lower_bound": 0.8, "required": 0.5, "floor": 0.5}
    drawn = {"sample_rate": 0.5, "seed": SEED, "draw": 0.1}
    ask(story, name, trust_class, adaptive=json.dumps({**told, **drawn}))


def rejected(story: Story, trust_class: str = KNOWN) -> Story:
    """The same, and then people have rejected a call of a class."""
    ask(story, "rejected", trust_class)
    decide(story, "rejected", "reject")
    return story


def trusted(
    story: Story,
    raising: int = ENOUGH,
    lowering: int = 0,
    trust_class: str = KNOWN,
    *,
    history: CallHistory = NO_HISTORY,
    trust: dict[str, Any] | None = None,
    verdict: dict[str, Any] | None = None,
    **outcome: Any,
) -> list[str]:
    """Let trust release a call by a score of so many words; what the checker says of the log."""
    release_by_trust(
        story, raising, lowering, trust_class, history=history, trust=trust, verdict=verdict, **outcome
    )
    return said_of({EVENTS: story.raws, DEFINITIONS: story.definitions})


def said_of(records: Records, note: Callable[[str], None] = lambda text: None) -> list[str]:
    return [f"{one.invariant} {one.what}" for one in check(records, note=note)]


def release_by_trust(
    story: Story,
    raising: int = ENOUGH,
    lowering: int = 0,
    trust_class: str = KNOWN,
    *,
    history: CallHistory = NO_HISTORY,
    trust: dict[str, Any] | None = None,
    verdict: dict[str, Any] | None = None,
    proposes: bool = True,
    **outcome: Any,
) -> None:
    kinds = ["approval"] * raising + ["failure"] * lowering
    facts = [ClassFact(offset=n, at_ms=START_MS, kind=kind, by=("rita",)) for n, kind in enumerate(kinds)]  # type: ignore[arg-type]
    found = posterior([Placed(0, fact) for fact in facts], START_MS)
    call = proposed(story, "trusted")
    cited = {
        **found._asdict(),
        "trust_class": trust_class,
        "contrary_at": "",
        "through": {"0": len(story.raws) - 1},
        **(trust or {}),
    }
    told = {
        "result": "released",
        "why": "trust is enough",
        "lower_bound": cited["lower_bound"],
        "required": 0.8333 if "novel" in history.parts else 0.5,
        "floor": 0.5,
        "sample_rate": 0.0,
        "seed": SEED,
        "draw": draw_of(SEED, "trusted", 1, story.digest),
        **outcome,
    }
    fields: dict[str, Any] = {
        "reason": "trusted",
        "trust_class": trust_class,
        "policy_version": "p@1",
        "trust": json.dumps(cited),
        "adaptive": json.dumps(told),
        "history": history_to_text(history),
        **(verdict or {}),
    }
    fields.setdefault("rules", (f"{fields['policy_version']}/asks",))
    released = named(story.release("policy"), "trusted", digest=story.digest)
    before = [call] if proposes else []
    story.says(*before, named(story.verdict("allow"), "trusted", **fields), released)

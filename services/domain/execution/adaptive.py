"""Release by earned trust: what becomes of a hold that the policy's adaptive block lets trust answer.

A draw decides whether such a call is asked all the same. The verdict records the draw's seed, so that everybody can
repeat it; no agent can choose it.
"""

from msgspec.structs import replace

from schemas.adaptive import AdaptiveOutcome, Result, draw_of
from services.domain.arguments import parsed
from services.domain.context import Context
from services.domain.memory.predicates import has_sealed
from services.domain.policy import Verdict
from services.domain.policy.verdict import AdaptiveAnswer
from services.domain.state import Call

ENOUGH, SEALED = "trust is enough", "arguments are sealed"


def outcome_of(call: Call, verdict: Verdict, ctx: Context) -> AdaptiveOutcome | None:
    """The outcome for a call that is judged for the first time; None if the policy has no adaptive block."""
    answer = verdict.adaptive
    if verdict.effect != "hold" or answer is None:
        return None
    if not answer.is_eligible:
        return _outcome(answer, "asked", answer.why)
    if has_sealed(parsed(call.arguments)):
        return _outcome(answer, "asked", SEALED)
    seed = ctx.fresh_seed()
    if not seed:
        return _outcome(answer, "asked", "no draw could be made")
    draw = draw_of(seed, call.call_id, call.revision, call.digest)
    if draw < answer.sample_rate:
        return _outcome(answer, "sampled", "asked as a sample of what trust releases", seed, draw)
    return _outcome(answer, "released", ENOUGH, seed, draw)


def released_by_trust(verdict: Verdict) -> Verdict:
    """The verdict on a call that trust releases."""
    return replace(
        verdict,
        effect="allow",
        reason="trusted",
        detail=f"{ENOUGH} to release it; without trust {verdict.detail}",
        hold=None,
    )


def _outcome(
    answer: AdaptiveAnswer, result: Result, why: str, seed: str = "", draw: float | None = None
) -> AdaptiveOutcome:
    return AdaptiveOutcome(
        result=result,
        why=why,
        lower_bound=answer.lower_bound,
        required=answer.required,
        floor=answer.floor,
        sample_rate=answer.sample_rate,
        seed=seed,
        draw=draw,
    )

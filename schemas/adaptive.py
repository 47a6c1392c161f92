"""What a policy's adaptive block made of a hold, as a verdict records it."""

from hashlib import sha256
from typing import Literal

import msgspec

from schemas.canonical import canonical
from schemas.record import UnreadableRecord

Result = Literal["released", "sampled", "asked"]
_DRAWS = 2**64


class AdaptiveOutcome(msgspec.Struct, frozen=True):
    """The outcome for one call that a rule holds.

    `result`: `released` without asking; `sampled`: trust would release it, and people are asked all the same;
    `asked`: trust does not release it, for the reason in `why`. `lower_bound` is the trust's, None while trust is
    incomplete; `required` the risk's; `floor` what the policy asks at this risk level, None if it always asks. A draw
    was made only if trust would release the call: `draw` follows from `seed` (`draw_of`), and below `sample_rate` the
    call is sampled.
    """

    result: Result
    why: str
    lower_bound: float | None
    required: float
    floor: float | None
    sample_rate: float
    seed: str = ""
    draw: float | None = None


def draw_of(seed: str, call_id: str, revision: int, digest: str) -> float:
    """The draw of one revision of a call: a number in 0 ≤ draw < 1 that anybody can compute again."""
    drawn = sha256("\0".join((seed, call_id, str(revision), digest)).encode()).digest()
    return int.from_bytes(drawn[:8], "big") / _DRAWS


def outcome_to_text(outcome: AdaptiveOutcome) -> str:
    """An outcome as canonical JSON."""
    return canonical(msgspec.to_builtins(outcome))


def outcome_from_text(text: str) -> AdaptiveOutcome:
    """An outcome from its JSON.

    Raises:
        UnreadableRecord: it is not one.
    """
    try:
        return msgspec.json.decode(text, type=AdaptiveOutcome)
    except msgspec.MsgspecError as error:
        raise UnreadableRecord("malformed", f"not an adaptive outcome: {error}") from error


def is_sampled(text: str | None) -> bool:
    """True if an outcome, as a verdict records it, is that trust would release the call and people are asked."""
    return text is not None and outcome_from_text(text).result == "sampled"

"""The score of a risk: what the named parts of a call's risk are worth together, and the trust that they require.

score = 1 − Π (1 − weight of each part), so every further part only raises it.
required = 1 − TOLERATED / score (at least 0): the lower bound of trust at which score × (1 − trust), the expected
harm of one call, is TOLERATED. An unknown tool requires 1, which no evidence reaches.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

RiskLevel = Literal["low", "medium", "high"]

UNKNOWN_TOOL = "unknown_tool"
# Parts of the risk of a tool.
WEIGHTS: Mapping[str, float] = {
    UNKNOWN_TOOL: 0.50,
    "destructive": 0.35,
    "money": 0.35,
    "writes": 0.25,
    "runs_code": 0.25,
    "open_world": 0.10,
    "not_idempotent": 0.05,
}
# New values ask for much trust, or for people; values out of untrusted texts are of high risk whatever the tool is.
HISTORY_WEIGHTS: Mapping[str, float] = {"novel": 0.30, "tainted": 0.65}
MEDIUM_FROM = 0.30
HIGH_FROM = 0.65
TOLERATED = 0.05
_ALL = {**WEIGHTS, **HISTORY_WEIGHTS}


class RiskScore(NamedTuple):
    """The worth of parts together; score and required are in 0..1, rounded to four digits."""

    score: float
    level: RiskLevel
    required: float


def are_weighed(parts: Collection[str]) -> bool:
    """True if each of these parts has a weight."""
    return _ALL.keys() >= {*parts}


def score_of(parts: Iterable[str], *, is_known: bool = True) -> RiskScore:
    """The score of parts with weights.

    Args:
        parts: their names, each once.
        is_known: false if the tool is not published, also if the part that says so is not among them.
    """
    harmless = 1.0
    # In the order in which verdicts record them, those of the tool first: the last digit can depend on it.
    for part in sorted(parts, key=lambda part: (part in HISTORY_WEIGHTS, part)):
        harmless *= 1 - _ALL[part]
        is_known = is_known and part != UNKNOWN_TOOL
    score = round(1 - harmless, 4)
    level: RiskLevel = "high" if score >= HIGH_FROM else "medium" if score >= MEDIUM_FROM else "low"
    required = 0.0 if not score else round(max(0.0, 1 - TOLERATED / score), 4)
    return RiskScore(score, level, required if is_known else 1.0)

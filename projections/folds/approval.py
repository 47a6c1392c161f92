"""The effect of adaptive approval: interruptions saved, what the sample found, and what people regretted."""

from itertools import groupby
from typing import Any, NamedTuple

from schemas.trust_score import INTERVAL, share_interval

RESULTS = ("released", "sampled", "asked")
# Of sampled calls on which people said nothing: as the API names them → the call's status.
UNDECIDED = {"withdrawn": "cancelled", "expired": "expired", "waiting": "held"}


class WeighedHolds(NamedTuple):
    """Counts of such holds.

    `results` are (agent, result, number). `sampled` is decision → number, of the calls that were asked as a sample;
    `undecided` is status → number, of those on which people said nothing: held, cancelled or expired.
    Of the calls that trust released, `revoked` were taken back by people, and of `harmful` people reported harm.
    """

    results: list[tuple[str, str, int]]
    sampled: dict[str, int]
    undecided: dict[str, int]
    released: int
    revoked: int
    harmful: int


def approval_json(found: WeighedHolds) -> dict[str, Any]:
    """The effect as the API returns it, in total and by agent."""
    total = dict.fromkeys(RESULTS, 0)
    agents = []
    for agent, rows in groupby(found.results, lambda row: row[0]):
        counts = dict.fromkeys(RESULTS, 0) | {result: number for _, result, number in rows}
        agents.append({"agent": agent, **_calls(counts)})
        total = {result: total[result] + counts[result] for result in RESULTS}
    decided = sum(found.sampled.values())
    contrary = decided - found.sampled.get("approve", 0)
    return {
        **_calls(total),
        "sample": {
            "decided": decided,
            "contrary": contrary,
            **{name: found.undecided.get(status, 0) for name, status in UNDECIDED.items()},
            **share_json(contrary, decided),
        },
        "regret": {
            "released": found.released,
            "revoked": found.revoked,
            "harmful": found.harmful,
            **share_json(found.revoked + found.harmful, found.released),
        },
        "agents": agents,
    }


def _calls(counts: dict[str, int]) -> dict[str, Any]:
    """Of the calls that a rule holds: how many, by what became of them, and the share that nobody was asked about."""
    held = sum(counts.values())
    saved = round(counts["released"] / held, 6) if held else None
    return {"held": held, **counts, "interruptions": held - counts["released"], "saved": saved}


def share_json(found: int, of: int) -> dict[str, Any]:
    """A share, None without cases, with the exact interval in which it is."""
    lower, upper = share_interval(found, of)
    return {
        "share": round(found / of, 6) if of else None,
        "lower": lower,
        "upper": upper,
        "confidence": INTERVAL,
    }

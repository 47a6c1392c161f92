"""Two sides' figures of the same rounds: medians, how far they lie apart, and the ratio of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ops.bench.against.scenarios import Named
from ops.bench.result import rounded


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, the least and the greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of values; None without any."""
        return cls(median(values), min(values), max(values)) if values else None

    def as_json(self) -> dict[str, float]:
        """The spread as `--json` prints it."""
        return {
            "median": rounded(self.median),
            "min": rounded(self.least),
            "max": rounded(self.greatest),
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both sides.

    Attributes:
        key: as `--require` names it.
        named: how it is called, and its unit.
        ours: the working tree's, one a round.
        theirs: the other commit's, of the same rounds; either is empty where a side has no such figure.
    """

    key: str
    named: Named
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """The working tree's over the other's, round by round; none where a figure is missing or 0."""
        if len(self.ours) != len(self.theirs) or 0 in self.theirs:
            return ()
        return tuple(one / other for one, other in zip(self.ours, self.theirs, strict=True))

    def as_json(self) -> dict[str, Any]:
        """The pair as `--json` prints it."""
        return {
            "key": self.key,
            "figure": self.named.name,
            "unit": self.named.unit,
            "ours": _side(self.ours),
            "theirs": _side(self.theirs),
            "ratio": _side(self.ratios),
        }


def _side(values: Sequence[float]) -> dict[str, Any] | None:
    spread = Spread.of(values)
    if spread is None:
        return None
    return {**spread.as_json(), "rounds": [rounded(value) for value in values]}

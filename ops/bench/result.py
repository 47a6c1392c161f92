"""What a benchmark found: figures, what they are compared with, and what they should reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached: of the ratio where a figure has a floor, else of the figure itself."""

    limit: float
    at_most: bool = True

    def is_met(self, value: float) -> bool:
        """Whether a value reaches it."""
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        name: what was measured.
        value: in `unit`.
        floor: what it is compared with, measured in the same run, in the same unit.
        target: what it should reach; None for a figure that is only told.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """The figure over its floor."""
        return None if self.floor is None else self.value / self.floor

    @property
    def is_ok(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.target.is_met(self.value if self.ratio is None else self.ratio)

    def as_json(self) -> dict[str, Any]:
        """The figure as `--json` prints it."""
        target = self.target
        return {
            "figure": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "floor": None if self.floor is None else rounded(self.floor),
            "ratio": None if self.ratio is None else rounded(self.ratio),
            "target": None if target is None else {"limit": target.limit, "at_most": target.at_most},
            "ok": self.is_ok,
        }


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's figures."""

    name: str
    figures: tuple[Figure, ...]
    note: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether every target is reached."""
        return all(figure.is_ok is not False for figure in self.figures)

    def as_json(self) -> dict[str, Any]:
        """The result as `--json` prints it."""
        return {
            "name": self.name,
            "ok": self.is_ok,
            "note": self.note,
            "figures": [figure.as_json() for figure in self.figures],
        }


def percentile(samples: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest sample that so many percent of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def rounded(value: float) -> float:
    """Four significant digits: more would pretend."""
    return float(f"{value:.4g}")

"""A backtest's result as it is told: the findings, the calls that an operator named, and how long it took."""

from __future__ import annotations

from typing import NamedTuple

from ops.backtest.found import Found, Judged
from ops.backtest.history import Candidate
from ops.backtest.naming import address_of
from ops.backtest.partition import Window


class Report(NamedTuple):
    """What is told; `named` are the addresses (`project/execution/call`) of calls that may pass."""

    candidate: Candidate
    window: Window
    found: Found
    named: frozenset[str]
    seconds: float

    @property
    def unnamed(self) -> list[Judged]:
        """Calls that people were against, that would now pass, and that nobody named: none, to publish."""
        return [row for row in self.found.overruled if address_of(row) not in self.named]

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.found.records / self.seconds if self.seconds else 0.0

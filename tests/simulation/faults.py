"""What goes wrong, how often. All of it is drawn from the world's one random source."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

AppendFate = Literal["landed", "answer_lost", "late", "lost"]
_UNKNOWN: tuple[AppendFate, ...] = ("answer_lost", "late", "lost")


@dataclass
class Faults:
    """Probabilities, each per operation, and what came of them."""

    rng: random.Random
    append_fails: float = 0.0
    unreachable: float = 0.0
    send_twice: float = 0.0
    redelivers: float = 0.0
    slow: float = 0.0
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name, most in _WORST.items():
            setattr(self, name, self.rng.choice((0.0, most / 4, most)))

    def stop(self) -> None:
        """From now on nothing goes wrong any more."""
        for name in _WORST:
            setattr(self, name, 0.0)

    def hit(self, name: str) -> bool:
        """Whether it goes wrong this time."""
        probability = getattr(self, name)
        if probability == 0.0 or self.rng.random() >= probability:
            return False
        self.happened[name] += 1
        return True

    def latency_s(self) -> float:
        """How long one way over the network takes."""
        if self.slow and self.rng.random() < self.slow:
            self.happened["slow"] += 1
            return self.rng.uniform(0.1, 4.0)
        return self.rng.uniform(0.0005, 0.004)

    def append_fate(self) -> AppendFate:
        """What becomes of a batch: known to have landed, or one of three that look the same to its writer."""
        if not self.hit("append_fails"):
            return "landed"
        fate = self.rng.choice(_UNKNOWN)
        self.happened[fate] += 1
        return fate


_WORST = {"append_fails": 0.12, "unreachable": 0.02, "send_twice": 0.1, "redelivers": 0.1, "slow": 0.05}

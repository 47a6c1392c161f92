"""What `--require` asks of a comparison: `KEY>=X` of the working tree's median, `KEY>=Xx` of the ratio's."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ops.bench.against.pair import Pair, Spread
from ops.bench.result import Target
from ops.errors import UsageError

FORM = re.compile(r"(?P<key>[a-z-]+)(?P<way><=|>=)(?P<limit>\d+(\.\d+)?)(?P<ratio>x?)")


@dataclass(frozen=True, slots=True)
class Required:
    """One requirement.

    Attributes:
        text: as it was given.
        key: the figure's.
        target: what is to be reached.
        is_of_ratio: whether it is asked of the ratio instead of the working tree's own figure.
    """

    text: str
    key: str
    target: Target
    is_of_ratio: bool

    def is_met(self, pair: Pair) -> bool:
        """Whether the median reaches it; what was not measured does not."""
        spread = Spread.of(pair.ratios if self.is_of_ratio else pair.ours)
        return spread is not None and self.target.is_met(spread.median)


def parsed(text: str, keys: Collection[str]) -> Required:
    """Read a requirement.

    Args:
        text: `gate-rate>=2.5x`, `idle-cpu<=3`.
        keys: of the figures that the chosen scenarios have.

    Raises:
        UsageError: it has another form, or names no figure.
    """
    found = FORM.fullmatch(text.replace(" ", ""))
    if found is None:
        raise UsageError(
            f"--require {text}: write KEY>=X, KEY<=X, or with a ratio KEY>=Xx (gate-rate>=2.5x)."
        )
    if found["key"] not in keys:
        raise UsageError(
            f"--require {text}: there is no figure {found['key']}: choose one of {', '.join(keys)}."
        )
    target = Target(float(found["limit"]), at_most=found["way"] == "<=")
    return Required(text, found["key"], target, bool(found["ratio"]))

"""Classes of calls that differ only in what the history of the values says: `…risk=writes` and `…risk=novel,writes`.

A contrary fact about calls with known values is one about such calls with new or tainted values, too: they are the
riskier ones. Otherwise a rejected call could come back in the class that its value, new again, gives it.
"""

from functools import lru_cache
from itertools import combinations

HISTORY_PARTS = ("novel", "tainted")
_RISK = "risk="


@lru_cache(maxsize=16_384)
def closing_classes(trust_class: str) -> tuple[str, ...]:
    """The classes whose contrary facts count for a class: the class itself, and those with fewer parts of history."""
    head, _, risk = trust_class.rpartition(_RISK)
    parts = risk.split(",")
    history = [part for part in HISTORY_PARTS if part in parts]
    others = [part for part in parts if part not in HISTORY_PARTS and part]
    fewer = (chosen for count in range(len(history)) for chosen in combinations(history, count))
    return (trust_class, *(f"{head}{_RISK}{','.join(sorted((*others, *chosen)))}" for chosen in fewer))

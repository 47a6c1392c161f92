"""Classes of calls with the same arguments' terms, of which a contrary fact about one counts for riskier ones.

A class ends in `risk=` and the parts of the call's risk; those of its history name the arguments that they are about:
`to=text&risk=novel:to,writes` and `to=text&risk=novel:to,tainted:to,writes`. A contrary fact about calls with known
values is one about such calls with new or tainted values, too: otherwise a rejected call could come back in the class
that its value, new again, gives it. The other parts of the risk do not matter: what an agent claims changes them.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from schemas.canonical import sha256_hex

RISK = "risk="
# Parts of the risk that the history of the values adds, each with the paths of the arguments that it is about.
_HISTORY_PARTS = ("novel", "tainted")
OF_PATHS, BETWEEN_PATHS = ":", "+"
EARLIER = "*"
# The paths in one part take no more than this in a class; more are a digest, which may stand for any of them.
PATHS_MAX_CHARS = 160
DIGEST = "~"


class Family(NamedTuple):
    """What is read of a class: the terms of the arguments, and the paths of new and of tainted values.

    Classes of earlier versions name no paths: they are at a place of their own, `EARLIER`.
    """

    terms: str
    novel: frozenset[str]
    tainted: frozenset[str]

    def closes(self, other: "Family") -> bool:
        """True if contrary facts about its classes count for those of another one, which has its paths, or more."""
        has_all = other.is_digested or (self.novel <= other.novel and self.tainted <= other.tainted)
        return self.terms == other.terms and has_all

    @property
    def is_digested(self) -> bool:
        """True if it is not known which paths it has: every class with the same terms closes it."""
        return any(path.startswith(DIGEST) for path in (*self.novel, *self.tainted))

    @property
    def marks(self) -> frozenset[tuple[str, str]]:
        """The new and the tainted paths in one set: of two with the same terms one closes the other that has all."""
        named = zip(_HISTORY_PARTS, (self.novel, self.tainted), strict=True)
        return frozenset((name, path) for name, paths in named for path in paths)


def history_part(name: str, paths: Iterable[str]) -> str:
    """A part of the risk in the name of a class, with the paths that it is about."""
    return f"{name}{OF_PATHS}{BETWEEN_PATHS.join(named_paths(paths))}"


def named_paths(paths: Iterable[str]) -> Sequence[str]:
    """The paths as a class names them: sorted, or in place of all of them one digest, if they are long."""
    found = sorted(paths)
    text = BETWEEN_PATHS.join(found)
    return found if len(text) <= PATHS_MAX_CHARS else [f"{DIGEST}{sha256_hex(text)[:32]}"]


@lru_cache(maxsize=16_384)
def family_of(trust_class: str) -> Family:
    """The family of a class, and its place in it."""
    before, mark, risk = trust_class.rpartition(RISK)
    if not mark:
        return Family(trust_class, frozenset(), frozenset())
    paths = dict.fromkeys(_HISTORY_PARTS, frozenset[str]())
    for part in risk.split(","):
        name, mark, named = part.partition(OF_PATHS)
        if name in paths:
            paths[name] = frozenset(named.split(BETWEEN_PATHS) if mark else (EARLIER,))
    return Family(before.removesuffix("&"), paths["novel"], paths["tainted"])


def risk_parts_of(trust_class: str) -> tuple[str, ...] | None:
    """The names of the parts of the risk in a class, without the paths that they are about; None if it names none."""
    _, mark, risk = trust_class.rpartition(RISK)
    return tuple(part.partition(OF_PATHS)[0] for part in risk.split(",") if part) if mark else None


def closes(other: str, trust_class: str) -> bool:
    """True if contrary facts about a class count for another one: the class itself, and riskier ones."""
    return other == trust_class or family_of(other).closes(family_of(trust_class))

"""Which known tool a pattern may have meant: names that differ from it by about one letter.

Two names are near where both become the same text when one letter of each is left out (Garbe's symmetric deletes), or
where they have the same letters. So the known names are gone through once, and each pattern costs its own length.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from services.domain.policy.patterns import is_exact

# A letter more or less makes another word of a shorter one: read and real, send and seed.
DELETES_FROM_LETTERS = 5
LETTERS_MIN = 4
# Past so many letters a deletion is no typo's cost but the reader's.
LETTERS_MAX = 40
_WORD = re.compile(r"[A-Za-z0-9]+")


class NearNames:
    """Known names, by what they and the words in them are near to."""

    def __init__(self, known: Collection[str]) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)
        self._words: dict[str, set[str]] = defaultdict(set)
        for name in known:
            for variant in _variants(name):
                self._names[variant].add(name)
            for word in _words(name):
                for variant in _variants(word):
                    self._words[variant].add(name)

    def near(self, pattern: str) -> list[str]:
        """The known names that a pattern, which takes none of them, may have meant; sorted.

        Of a pattern with wildcards each word must be in the name, one of them in another spelling.
        """
        if is_exact(pattern):
            return sorted(_found(self._names, pattern))
        wanted = _words(pattern)
        if not wanted:
            return []
        found = set.intersection(*(_found(self._words, word) for word in wanted))
        return sorted(name for name in found if not wanted <= _words(name))


def _words(name: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(name)}


def _found(index: dict[str, set[str]], text: str) -> set[str]:
    return set().union(*(index.get(variant, set()) for variant in _variants(text)))


def _variants(text: str) -> Iterator[str]:
    folded = text.casefold()
    yield folded
    if LETTERS_MIN <= len(folded) <= LETTERS_MAX:
        yield "letters " + "".join(sorted(folded))
    if DELETES_FROM_LETTERS <= len(folded) <= LETTERS_MAX:
        yield from (folded[:place] + folded[place + 1 :] for place in range(len(folded)))

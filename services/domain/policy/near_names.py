"""The known tool that a misspelt pattern may mean: names that differ from it by about one letter.

Two names are near if both become the same text when one letter of each is left out (Garbe's symmetric deletes), or if
they have the same letters. So the known names are indexed once, and the cost of each pattern is its own length.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from services.domain.policy.patterns import is_exact

# In shorter words, one letter more or less makes another word: read and real, send and seed.
DELETES_FROM_LETTERS = 5
LETTERS_MIN = 4
# Longer texts are only compared as a whole: their deletes would be too much work.
LETTERS_MAX = 40
_WORD = re.compile(r"[A-Za-z0-9]+")


class NearNames:
    """Known names, indexed by the texts to which they and their words are near."""

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
        """The known names that a pattern which matches none of them may mean; sorted.

        For a pattern with wildcards each word must be in the name, one of them spelt differently.
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

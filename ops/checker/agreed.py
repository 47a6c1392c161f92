"""The checker's own model of what several people agreed to have remembered, and of whether they still may.

Documents of before do not name their makers: then only the one who asked is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ops.checker.people import PeopleAt
from schemas.canonical import parse_strict

# Whom terms ask that name nobody.
REVIEWERS = frozenset({"reviewer", "operator", "admin"})

Document = Mapping[str, Any]
Asked = tuple[str, str]  # the scope of a vote, and its JSON of what is to be remembered


def disagreement(last: Asked, document: Document | None, others: Iterable[Asked]) -> str:
    """Why not all who approved asked for what is remembered, or an empty text.

    Args:
        last: of the vote that ended the hold.
        document: what the run remembers by that vote, None where a rule is asked for.
        others: of the votes before it that count.
    """
    if document is not None and "makers" not in document:
        return ""
    for scope, text in others:
        if scope != last[0]:
            return f"{last[0]} where another vote says {scope}"
        wanted = _parsed(text)
        if document is None and wanted != _parsed(last[1]):
            return "other tests, uses or expiry than another vote asked for"
        if document is not None and not _is_just(document["arguments"], wanted["arguments"]):
            return "other tests than another vote asked for"
    return ""


def who_may_no_more(document: Document, activators: Iterable[str], people: PeopleAt) -> list[str]:
    """Of those who made what is remembered, or activated it, the ones who may not decide such a call today."""
    alone = {"by": document["made_by"], "roles": document.get("made_with", ())}
    makers = [(maker["by"], set(maker["roles"])) for maker in document.get("makers") or (alone,)]
    terms = document.get("terms", {})
    gone = [by for by, had in makers if _lost(by, had, terms, people)]
    return gone + [by for by in activators if not _may_decide(by, terms, people)]


def _lost(by: str, had: set[str], terms: Document, people: PeopleAt) -> bool:
    roles = people.roles(by)
    if not people.may_act(by):
        return True
    if roles is None:
        return False
    if had:
        return not had & roles
    # By which of the terms' roles a maker of before decided is not known.
    return bool(terms.get("reviewers")) and not _may_decide(by, terms, people)


def _may_decide(by: str, terms: Document, people: PeopleAt) -> bool:
    """Whether an account may decide what the terms ask: by name, or by a role that its principal has today."""
    roles, reviewers = people.roles(by), terms.get("reviewers") or ()
    if not people.may_act(by):
        return False
    if roles is None or people.person(by) in people.named(reviewers):
        return True
    asked = set(terms.get("roles") or ()) or (frozenset() if reviewers else REVIEWERS)
    return bool(roles & asked)


def _is_just(tests: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether tests are the wanted ones, and equality for every other argument."""
    return wanted.keys() <= tests.keys() and all(
        test == wanted[name] if name in wanted else test.keys() == {"equals"} for name, test in tests.items()
    )


def _parsed(text: str) -> dict[str, Any]:
    return {"arguments": {}, **parse_strict(text or "{}")}

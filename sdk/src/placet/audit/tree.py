"""Compares one tree with the heads: finds the first leaf that is not what was signed, as exactly as possible.

There are two lists of leaves: the hashes as the server gave them, and those computed from the records. The list whose
roots are the signed ones is right, and the first difference of the other list is the answer. If neither is right, the
heads before and after bound the place. The offsets, which rise and the last of which each head names, may narrow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placet.audit.findings import Finding, Kind
from placet.audit.heads import TreeState
from placet.audit.merkle import roots_at

EDITS_TOLD = 5


@dataclass(frozen=True)
class Anchor:
    """A signed state of a tree, and the number of its head."""

    state: TreeState
    head: int


@dataclass(frozen=True)
class Lists:
    """A tree as the server gave it.

    Attributes:
        name: `executions/3`.
        listed: leaf hashes as the server gave them.
        made: leaf hashes computed from the records (for hidden records, the hash given beside the offset).
        offsets: the offsets of the records, in the given order.
        indexes: the index that each line states.
        hidden: the places of leaves without a record.
    """

    name: str
    listed: Sequence[bytes]
    made: Sequence[bytes]
    offsets: Sequence[int]
    indexes: Sequence[int]
    hidden: Sequence[int]


def examine(tree: Lists, anchors: Sequence[Anchor]) -> list[Finding]:
    """The findings about a tree; empty if it has every anchor's root and nothing beyond the last anchor.

    Args:
        tree: the lists.
        anchors: the anchors of heads with good signatures.
    """
    ordered = sorted(anchors, key=lambda anchor: anchor.state.size)
    if not ordered:
        return []
    return _wrong_leaves(tree, ordered) or _wrong_places(tree, ordered)


def without_record(tree: Lists) -> list[Finding]:
    """A finding about the first leaf without a record, if there is one."""
    if not tree.hidden:
        return []
    many = len(tree.hidden)
    detail = f"only the hash of the record is here, as for {many} of {len(tree.made)} leaves"
    return [Finding("hidden", detail, tree.name, tree.hidden[0], offset=tree.offsets[tree.hidden[0]])]


def _wrong_places(tree: Lists, ordered: Sequence[Anchor]) -> list[Finding]:
    """The first error in what the hashes do not cover, in a tree whose leaves are as they were signed."""
    last_offsets = {anchor.state.size - 1: anchor for anchor in ordered}
    before = -1
    for place, (index, offset) in enumerate(zip(tree.indexes, tree.offsets, strict=True)):
        anchor = last_offsets.get(place)
        if index != place:
            return [Finding("edited", f"the line says that it is leaf {index}", tree.name, place)]
        if offset <= before:
            return [Finding("edited", "the offset does not follow the one before", tree.name, place)]
        if anchor is not None and offset != anchor.state.last_offset:
            detail = f"head {anchor.head} was signed for offset {anchor.state.last_offset} here"
            return [Finding("edited", detail, tree.name, place, offset=offset, head=anchor.head)]
        before = offset
    return []


def _wrong_leaves(tree: Lists, ordered: Sequence[Anchor]) -> list[Finding]:
    size = ordered[-1].state.size
    listed_good = _good_through(tree.listed, ordered)
    if listed_good == size:
        return _differences(tree, tree.listed, tree.made, size, "record") or _beyond(tree, size)
    made_good = _good_through(tree.made, ordered)
    if made_good == size:
        return _differences(tree, tree.made, tree.listed, size, "listed hash") or _beyond(tree, size)
    good = max(listed_good, made_good)
    if listed_good >= made_good:
        found = _differences(tree, tree.listed, tree.made[:good], good, "record")
    else:
        found = _differences(tree, tree.made, tree.listed[:good], good, "listed hash")
    following = next(anchor for anchor in reversed(ordered) if anchor.state.size == _next_size(ordered, good))
    return found or [_between(tree, good, following)]


def _good_through(leaves: Sequence[bytes], anchors: Sequence[Anchor]) -> int:
    """The size of the last anchor up to which every root is the signed one."""
    roots = roots_at(leaves, (anchor.state.size for anchor in anchors))
    bad = [anchor.state.size for anchor in anchors if roots.get(anchor.state.size) != anchor.state.root]
    return max((anchor.state.size for anchor in anchors if not bad or anchor.state.size < bad[0]), default=0)


def _next_size(anchors: Sequence[Anchor], size: int) -> int:
    return min(anchor.state.size for anchor in anchors if anchor.state.size > size)


def _differences(
    tree: Lists, right: Sequence[bytes], suspect: Sequence[bytes], size: int, what: str
) -> list[Finding]:
    """The first differences of a list from the signed one: edits, or the one change that shifts the rest."""
    found: list[Finding] = []
    for index in range(min(size, len(suspect))):
        if suspect[index] == right[index]:
            continue
        kind, detail = _kind(right[:size], suspect, index, what)
        found.append(Finding(kind, detail, tree.name, index, offset=_offset(tree, index, kind)))
        if kind != "edited" or len(found) == EDITS_TOLD:
            return found
    if found:
        return found
    if len(suspect) < size:
        missing = size - len(suspect)
        detail = f"the last {missing} of {size} are missing"
        return [Finding("tail_cut", detail, tree.name, len(suspect))]
    return []


def _beyond(tree: Lists, size: int) -> list[Finding]:
    if max(len(tree.made), len(tree.listed)) <= size:
        return []
    return [Finding("added", "no head covers what follows here", tree.name, size, offset=_offset(tree, size))]


def _kind(right: Sequence[bytes], suspect: Sequence[bytes], index: int, what: str) -> tuple[Kind, str]:
    wanted, there = right[index], suspect[index]
    comes_later = wanted in suspect[index + 1 :]
    if there in right[index + 1 :]:
        if comes_later:
            return "reordered", f"another {what} is here, and this one further on"
        return "deleted", f"the {what} that was here is missing"
    if comes_later:
        return "added", f"a {what} that was never signed comes before this one"
    return "edited", f"the {what} is not the one that was signed"


def _between(tree: Lists, low: int, following: Anchor) -> Finding:
    """The finding about a place between two heads where both lists are wrong."""
    high, last = following.state.size, following.state.last_offset
    offsets = tree.offsets
    swapped = _first_out_of_order(offsets, low)
    if swapped is not None and swapped < high:
        detail = "a record comes before one with a smaller offset"
        return Finding("reordered", detail, tree.name, swapped, offset=offsets[swapped], head=following.head)
    if len(offsets) < high and (not offsets or offsets[-1] < last):
        detail = f"head {following.head} was signed for {high} leaves, up to offset {last}"
        return Finding("tail_cut", detail, tree.name, max(low, len(offsets)), head=following.head)
    count = sum(offset <= last for offset in offsets)
    if count < high:
        detail = f"{high - count} of these leaves are missing, with their records"
        return Finding("deleted", detail, tree.name, low, high, head=following.head)
    if count > high:
        detail = f"{count - high} records that were never signed are among these"
        return Finding("added", detail, tree.name, low, count, head=following.head)
    detail = "one of these is not what was signed, and its listed hash was changed as well"
    return Finding("edited", detail, tree.name, low, high, head=following.head)


def _first_out_of_order(offsets: Sequence[int], low: int) -> int | None:
    """The first place whose offset is not smaller than all that follow."""
    found, least = None, None
    for index in range(len(offsets) - 1, low - 1, -1):
        if least is not None and offsets[index] >= least:
            found = index
        least = offsets[index] if least is None else min(least, offsets[index])
    return found


def _offset(tree: Lists, index: int, kind: Kind = "edited") -> int | None:
    # In place of a deleted record there is another one, with another offset.
    return tree.offsets[index] if kind in ("edited", "added") and index < len(tree.offsets) else None

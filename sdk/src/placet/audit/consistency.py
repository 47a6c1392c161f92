"""Proofs that the trees of an earlier head are the beginnings of a later one's (RFC 9162, section 2.1.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placet.audit.findings import Finding
from placet.audit.heads import Head, TreeName, head_of
from placet.audit.merkle import is_consistent
from placet.audit.strict import count, hex_hash, items, members, text

MEMBERS = frozenset({"first", "second", "proofs"})
TREE_MEMBERS = frozenset({"topic", "partition", "first_size", "second_size", "path"})


@dataclass(frozen=True)
class Consistency:
    """A proof's evidence that an earlier head came before its own."""

    first: Head
    second: Head
    steps: Mapping[TreeName, Sequence[bytes]]

    def wrong(self, head: Head) -> list[Finding]:
        """Why the first head is not proved to be an earlier one of this head; empty if it is."""
        if self.second.line != head.line:
            return [_broken("the consistency proof leads to another head than the proof's", self.first)]
        if self.first.tenant != head.tenant or self.first.number > head.number:
            return [_broken("the consistency proof begins with no earlier head of this tenant", self.first)]
        if set(self.steps) != set(self.first.trees):
            return [_broken("the consistency proof is of other trees than the earlier head's", self.first)]
        findings = []
        for name, old in self.first.trees.items():
            new = head.trees.get(name)
            if new is None or not is_consistent(old.size, old.root, new.size, new.root, self.steps[name]):
                problem = "this is not the tree that the earlier head was signed for"
                tree = f"{name[0]}/{name[1]}"
                findings.append(Finding("not_the_signed_root", problem, tree, head=self.first.number))
        return findings


def consistencies_of(value: Any) -> list[Consistency]:
    """The consistency proofs in a proof: one for each earlier head, or a single one as earlier versions wrote it.

    Raises:
        ValueError: it is something else.
    """
    found = [consistency_of(one) for one in (items(value) if type(value) is list else [value])]
    if len({one.first.line for one in found}) != len(found):
        raise ValueError("two consistency proofs of one head")
    return found


def consistency_of(value: Any) -> Consistency:
    """The consistency proof in a JSON value, as returned by `GET /v1/audit/consistency`.

    Raises:
        ValueError: it is something else.
    """
    members(value, MEMBERS)
    first, second = head_of(value["first"]), head_of(value["second"])
    steps: dict[TreeName, list[bytes]] = {}
    for one in items(value["proofs"]):
        members(one, TREE_MEMBERS)
        name = (text(one["topic"]), count(one["partition"]))
        sizes = [head.trees[name].size if name in head.trees else 0 for head in (first, second)]
        if name in steps or [count(one["first_size"]), count(one["second_size"])] != sizes:
            raise ValueError("a tree that appears twice, or of another size than its heads say")
        steps[name] = [hex_hash(step) for step in items(one["path"])]
    return Consistency(first, second, steps)


def _broken(problem: str, head: Head) -> Finding:
    return Finding("broken_chain", problem, head=head.number)

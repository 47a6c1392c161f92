"""That the trees of an earlier head are the beginnings of a later one's (RFC 9162, section 2.1.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placet.audit.findings import Finding
from placet.audit.heads import Head, TreeName, head_of
from placet.audit.merkle import is_consistent
from placet.audit.strict import count, hex_hash, items, members, text

MEMBERS = frozenset({"first", "second", "proofs"})
TREE_MEMBERS = frozenset({"topic", "partition", "first_size", "second_size", "path"})


@dataclass(frozen=True)
class Consistency:
    """What a proof brings to show that an earlier head came before its own; `first` is None where it brings none."""

    first: Head | None = None
    second: Head | None = None
    steps: Mapping[TreeName, Sequence[bytes]] = field(default_factory=dict)

    def heads(self) -> list[Head]:
        """The heads whose signatures must be good."""
        return [head for head in (self.first, self.second) if head is not None]

    def begins_with(self, head: Head) -> bool:
        """Whether the earlier head is this one."""
        return self.first is not None and self.first.line == head.line

    def wrong(self, head: Head) -> list[Finding]:
        """What keeps the first head from being an earlier one of this."""
        if self.first is None or self.second is None:
            return []
        if self.second.line != head.line:
            return [_broken("the consistency proof leads to another head than the proof's", self.first)]
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


def consistency_of(value: Any) -> Consistency:
    """The consistency proof in a JSON value, as `GET /v1/audit/consistency` gives it.

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
            raise ValueError("a tree that stands twice, or of another size than its heads say")
        steps[name] = [hex_hash(step) for step in items(one["path"])]
    return Consistency(first, second, steps)


def _broken(problem: str, head: Head) -> Finding:
    return Finding("broken_chain", problem, head=head.number)

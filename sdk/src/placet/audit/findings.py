"""The result of a verification: the place and kind of the first errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "edited",
    "deleted",
    "reordered",
    "added",
    "tail_cut",
    "forged_signature",
    "broken_chain",
    "not_the_signed_root",
    "unsigned",
    "hidden",
    "not_shown",
]


@dataclass(frozen=True)
class Finding:
    """A difference from what was signed.

    Attributes:
        kind: the kind of change.
        detail: one sentence.
        tree: `executions/3`; empty if the finding is about a head.
        index: the first wrong leaf; if `until` is given, the first leaf that may be wrong.
        until: one past the last leaf that may be the first wrong one, if no head allows a more exact answer.
        offset: the offset in the log of the record at `index`, if known.
        head: the number of the head that the finding is about.
    """

    kind: Kind
    detail: str
    tree: str = ""
    index: int | None = None
    until: int | None = None
    offset: int | None = None
    head: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        where = []
        if self.tree:
            where.append(self.tree)
        if self.index is not None and self.until is not None:
            where.append(f"leaves {self.index} to {self.until - 1}")
        elif self.index is not None:
            where.append(f"leaf {self.index}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        if self.head is not None:
            where.append(f"head {self.head}")
        return ": ".join(filter(None, (self.kind, ", ".join(where), self.detail)))


@dataclass
class Report:
    """The extent of a verification, and its findings.

    Attributes:
        findings: empty if everything is as it was signed.
        warnings: what was trusted without proof.
        signatures: true if signatures could be checked; without that nothing is verified.
        heads: the number of heads checked.
        tenant: the tenant of the trail according to the heads.
        leaves: the number of leaves that the newest head covers.
        records: the number of those leaves whose records were present.
    """

    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    signatures: bool = True
    tenant: str = ""
    heads: int = 0
    leaves: int = 0
    records: int = 0

    @property
    def proved(self) -> str:
        """The extent in words: leaves without records are proved by their hashes only."""
        of = "all" if self.records == self.leaves else f"{self.records:,}"
        if self.leaves == 1:
            with_records = "with its record" if self.records else "without its record"
        else:
            with_records = f"{of} with their records"
        leaves, heads = counted(self.leaves, "leaf", "leaves"), counted(self.heads, "head", "heads")
        return f"{leaves}, {with_records}; {heads} of {self.tenant}"

    @property
    def is_verified(self) -> bool:
        """Returns True if everything is as it was signed, and the signatures were checked."""
        return self.signatures and not self.findings

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "verified": self.is_verified,
            "signatures_checked": self.signatures,
            "tenant": self.tenant,
            "heads": self.heads,
            "leaves": self.leaves,
            "records": self.records,
            "findings": [finding.as_json() for finding in self.findings],
            "warnings": self.warnings,
        }


def counted(number: int, one: str, several: str) -> str:
    """A number of things in words, with the noun for one or for several."""
    return f"{number:,} {one if number == 1 else several}"

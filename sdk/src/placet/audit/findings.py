"""What a verification found: where the first wrong thing is, and of what kind."""

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
    """Something that is not as it was signed.

    Attributes:
        kind: what was done to it.
        detail: one sentence.
        tree: `executions/3`; empty where it is about a head.
        index: the first leaf that is wrong; the first that may be, where `until` is given.
        until: one past the last leaf that may be the first wrong one: no head tells nearer.
        offset: of the record at `index` in the log, where it is known.
        head: the number of the head that it is about.
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
    """What was looked at and what is wrong with it.

    Attributes:
        findings: empty where everything is as it was signed.
        warnings: what was taken on trust.
        signatures: whether they could be checked; without that nothing is verified.
        heads: how many heads were looked at.
        tenant: whose trail it is, as the heads say.
        leaves: how many leaves the newest of them covers.
        records: how many of those were there with their bytes.
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
        """What the findings are about, in words: leaves whose records are not here are proved by hash only."""
        of = "all" if self.records == self.leaves else f"{self.records:,}"
        return f"{self.leaves:,} leaves, {of} with their records; {self.heads:,} heads of {self.tenant}"

    @property
    def is_verified(self) -> bool:
        """Whether everything is as it was signed, and the signatures were checked."""
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

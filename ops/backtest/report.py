"""A backtest's result as it is told: the findings, the calls that an operator named, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ops.backtest.found import Found, Judged
from ops.backtest.history import Candidate
from ops.backtest.naming import address_of
from ops.backtest.partition import Window
from schemas.policy_problems import Problem
from schemas.trust_score import TrustFunction


class Report(NamedTuple):
    """What is told; `named` are the addresses (`project/execution/call`) of calls that may pass.

    `accepts_unjudged` is true if an operator accepts that some verdicts or records are not judged or read. `function`
    is the trust function that was tried; `warnings` are those of `placet policy check --against`.
    """

    candidate: Candidate
    window: Window
    found: Found
    named: frozenset[str]
    seconds: float
    accepts_unjudged: bool = False
    function: TrustFunction | None = None
    warnings: Sequence[Problem] = ()

    @property
    def scored(self) -> str:
        """A sentence on the trust function that was tried; empty if none was."""
        if self.function is None:
            return ""
        quantile, half_life, window = self.function
        found = self.found
        said = (
            f"trust by the {quantile:g} quantile, a half-life of {half_life:g} days and a window of {window} days; "
            f"of {found.rescored + found.rescored_otherwise:,} recorded scores, {found.rescored:,} come out as "
            "recorded by the function in force"
        )
        doubt = ": what is said of the others is to be doubted" if found.rescored_otherwise else ""
        return f"{said}{doubt}"

    @property
    def unnamed(self) -> list[Judged]:
        """Calls that people were against, that would now pass, and that nobody named: none, to publish."""
        return [row for row in self.found.overruled if address_of(row) not in self.named]

    @property
    def is_ok(self) -> bool:
        """True if verdicts were judged, some by the candidate and none against it, and all was or need not be."""
        is_enough = (self.found.is_complete and self.found.by_candidate) or self.accepts_unjudged
        return bool(self.found.judged) and bool(is_enough) and not self.unnamed

    @property
    def doubt(self) -> str:
        """A sentence on what was not read or judged; empty if that is nothing."""
        found = self.found
        if found.is_complete:
            return ""
        unjudged = len(found.not_judged) + found.unlisted
        return (
            f"{found.unreadable:,} records that count cannot be read, {found.set_aside:,} runs are set aside, and "
            f"{unjudged:,} records or verdicts were not judged: what people said of these calls may be missing"
        )

    @property
    def share(self) -> str:
        """A sentence on the verdicts that the candidate does not judge; empty if it judges all of them."""
        judged, own = self.found.judged, self.found.by_candidate
        if own == judged:
            return ""
        return f"the candidate judged {own:,} of {judged:,} verdicts: other policies judged the others, or none did"

    @property
    def idleness(self) -> str:
        """A sentence if the candidate judged no verdict of some; else empty."""
        if not self.found.judged or self.found.by_candidate:
            return ""
        return (
            "the candidate judged no verdict, so nothing is known of it: see its name, its scope, --project and the "
            "warnings, or give --accept-unjudged"
        )

    @property
    def emptiness(self) -> str:
        """A sentence if no verdict was judged; else empty."""
        if self.found.judged:
            return ""
        return (
            f"no verdict was judged for the tenant {self.candidate.tenant} and the project {self.found.project} "
            "in this time: nothing is known of this policy; see --tenant, --project, --since, --until, --data-dir"
        )

    @property
    def left_out(self) -> str:
        """A sentence on what is no history of the agents, and left out; empty if that is nothing."""
        planted, forks = self.found.planted, self.found.forks
        parts = [f"verdicts on planted calls: {planted:,}"] if planted else []
        parts += [f"runs that `placet fork` made: {forks:,}"] if forks else []
        return f"left out, as no history of the agents: {'; '.join(parts)}" if parts else ""

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.found.records / self.seconds if self.seconds else 0.0

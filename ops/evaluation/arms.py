"""The arms that are compared: a policy each, and whether the reviewer grants standing rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schemas.canonical import sha256_hex

POLICIES = Path(__file__).with_name("policies")


@dataclass(frozen=True)
class Arm:
    """A policy under evaluation.

    Attributes:
        name: short, also a part of its projects' names.
        title: for tables and charts.
        policy: the file; it is published as it is.
        remembers: true if the reviewer has each approval remembered as far as the policy lets it.
    """

    name: str
    title: str
    policy: Path
    remembers: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the policy's file, in hex."""
        return sha256_hex(self.policy.read_text(encoding="utf-8"))


ARMS = (
    Arm("ask", "every write asked", POLICIES / "ask.yaml"),
    Arm("static", "static policy", POLICIES / "static.yaml"),
    Arm("remember", "static + standing rules", POLICIES / "remember.yaml", remembers=True),
    Arm("adaptive", "adaptive", POLICIES / "adaptive.yaml"),
)
BY_NAME = {arm.name: arm for arm in ARMS}
BASELINE, ADAPTIVE = "ask", "adaptive"

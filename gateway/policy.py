"""The gateway's own policy: an optional YAML file that can only tighten.

    deny: ["shell_*"]       # such calls are refused before they are sent to the decider
    raise: ["http_*"]       # such calls carry the claim destructiveHint, which can only raise their risk

No other field is accepted, so that nobody can think that the file permits anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.problems import Problem
from host.errors import SettingsRefused
from schemas.linear_patterns import PatternRefused, glob_matcher
from schemas.refusals import Refusal
from schemas.strict_yaml import MalformedYaml, load_yaml

FIELDS = ("deny", "raise")
PATTERNS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class GatewayPolicy:
    """Patterns of tool names (`*`, `?`, `[...]`)."""

    deny: tuple[str, ...] = ()
    raised: tuple[str, ...] = ()

    def check(self, tool: str) -> None:
        """Refuse a call of a tool that is denied here.

        Raises:
            Problem: 403 not_authorised.
        """
        if any(glob_matcher(pattern)(tool) for pattern in self.deny):
            raise Problem(Refusal.NOT_AUTHORISED, f"this gateway denies every call of {tool}")

    def claims(self, tool: str, claims: Mapping[str, Any]) -> dict[str, Any]:
        """Return the claims of a call, raised if the policy says so."""
        if any(glob_matcher(pattern)(tool) for pattern in self.raised):
            return {**claims, "destructiveHint": True}
        return dict(claims)


def load_gateway_policy(path: Path | None) -> GatewayPolicy:
    """Return the policy in a file; without a file, a policy that tightens nothing.

    Raises:
        SettingsRefused: the file is unreadable, or contains anything other than lists of patterns.
    """
    if path is None:
        return GatewayPolicy()
    try:
        value = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, MalformedYaml) as error:
        raise SettingsRefused(f"the gateway policy {path} cannot be read: {error}") from error
    if not isinstance(value, dict) or not set(value) <= set(FIELDS):
        raise SettingsRefused(f"the gateway policy {path} may contain only deny and raise")
    return GatewayPolicy(_patterns(value, "deny", path), _patterns(value, "raise", path))


def _patterns(value: Mapping[str, Any], name: str, path: Path) -> tuple[str, ...]:
    patterns = value.get(name, [])
    is_list = isinstance(patterns, list) and len(patterns) <= PATTERNS_MAX
    if not is_list or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise SettingsRefused(f"{name} in the gateway policy {path} must be a list of tool patterns")
    try:
        for pattern in patterns:
            glob_matcher(pattern)
    except PatternRefused as error:
        raise SettingsRefused(f"{name} in the gateway policy {path}: {error}") from error
    return tuple(patterns)

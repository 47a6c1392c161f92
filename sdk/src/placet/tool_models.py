"""A published tool, as a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from placet.models import Object


@dataclass(frozen=True)
class Tool:
    """A published tool: its MCP definition."""

    name: str
    version: Any = field(default=None, hash=False)
    description: str = ""
    annotations: Object = field(default_factory=dict, hash=False)
    idempotent: bool = False
    raw: Object = field(default_factory=dict, repr=False, compare=False)

"""The clients' own history: what they asked, what they were told, and what they did because of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class History:
    """Lines in the order of simulated time (see `ops.checker.clients` for what they hold)."""

    now_ms: Callable[[], int]
    lines: list[dict[str, Any]] = field(default_factory=list)

    def add(self, client: str, op: str, **what: Any) -> None:
        self.lines.append({"at": self.now_ms(), "client": client, "op": op, **what})

    def counts(self) -> Counter[str]:
        return Counter(line["op"] for line in self.lines)

    def write(self, path: Path) -> None:
        """One JSON object a line."""
        path.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in self.lines))

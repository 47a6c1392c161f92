"""The server's warnings about a policy, as lines; those that are usual for a new policy are only counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Up to this number, each unknown tool has its own line.
UNKNOWN_TOLD_MAX = 3
UNKNOWN_TOOL = "no_known_tool"
_RULE = re.compile(r"rules\[(\d+)\]")


def lines(doubts: Sequence[Any], *, verbose: bool = False) -> list[str]:
    """A line for each warning; many patterns that match no published tool share one line.

    A policy is usually published before the tools. A likely typo has its own code, and its own line.

    Args:
        doubts: from the server, with `path`, `code` and `message`; texts if the server is an early one.
        verbose: one line for every warning.
    """
    unknown = [one for one in doubts if isinstance(one, Mapping) and one.get("code") == UNKNOWN_TOOL]
    if verbose or len(unknown) <= UNKNOWN_TOLD_MAX:
        return [_line(one) for one in doubts]
    rules = len({found[1] for one in unknown if (found := _RULE.match(str(one.get("path"))))})
    who = "1 rule names" if rules == 1 else f"{rules} rules name"
    told = [_line(one) for one in doubts if one not in unknown]
    return [
        *told,
        f"{who} tools that are not published yet ({len(unknown)} patterns match none); --verbose lists them",
    ]


def _line(doubt: Any) -> str:
    return f"{doubt['path']}: {doubt['message']}" if isinstance(doubt, Mapping) else str(doubt)

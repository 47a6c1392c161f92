"""The server's warnings about a policy, as lines; those that are usual at the start are only counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Up to so many unknown tools are named singly.
UNKNOWN_TOLD_MAX = 3
UNKNOWN_TOOL = "no_known_tool"
_RULE = re.compile(r"rules\[(\d+)\]")


def lines(doubts: Sequence[Any], *, verbose: bool = False) -> list[str]:
    """A line for each doubt; the patterns that match no published tool share one where they are many.

    A policy is commonly published before the tools. What looks like a typo has a code of its own, and a line.

    Args:
        doubts: as the server tells them, with `path`, `code` and `message`; of an early server texts.
        verbose: count nothing together.
    """
    unknown = [one for one in doubts if isinstance(one, Mapping) and one.get("code") == UNKNOWN_TOOL]
    if verbose or len(unknown) <= UNKNOWN_TOLD_MAX:
        return [_line(one) for one in doubts]
    rules = len({found[1] for one in unknown if (found := _RULE.match(str(one.get("path"))))})
    who = "1 rule names" if rules == 1 else f"{rules} rules name"
    told = [_line(one) for one in doubts if one not in unknown]
    return [
        *told,
        f"{who} tools that nobody has published yet ({len(unknown)} patterns match none); --verbose lists them",
    ]


def _line(doubt: Any) -> str:
    return f"{doubt['path']}: {doubt['message']}" if isinstance(doubt, Mapping) else str(doubt)

"""What the past says of a call's values: which are new to its agent and tool, and which came from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placet.errors import NotFound
from placet.models import Hold, ToolCall

if TYPE_CHECKING:
    from placet.sync import Placet

# What keeps trust from releasing a call, whatever its class.
_OF_TRUST = (
    ("opposed", "people were against calls with"),
    ("apart", "approved before, but not together in such a call"),
)
UNREAD = "too many, or not read alike by all programs"


def is_familiar(history: Any) -> bool:
    """False if a person must look at each such call by itself; the gateway refuses to decide it in bulk.

    Args:
        history: of a verdict or a group; None for what was judged by an earlier version, or is no call.
    """
    if not isinstance(history, Mapping):
        return True
    unknown = history.get("tainted") and not history.get("is_known", True)
    return bool(history.get("is_whole", True) and not history.get("parts") and not unknown)


def in_short(history: Any) -> str:
    """New and tainted values for a list; empty if there are none."""
    if not isinstance(history, Mapping):
        return ""
    told = [] if history.get("is_whole", True) else [f"values: {UNREAD}"]
    if history.get("novel"):
        told.append(f"new: {', '.join(history['novel'])}")
    if history.get("tainted"):
        told.append(f"out of an untrusted output: {', '.join(history['tainted'])}")
    return "; ".join(told)


def in_full(history: Any, tools: Mapping[str, str]) -> str:
    """New and tainted values for a page about one call; empty if there are none.

    Args:
        history: of its verdict.
        tools: the tool of each call that returned such text, by the call's id.
    """
    if not isinstance(history, Mapping):
        return ""
    told = []
    if not history.get("is_known", True):
        told.append("trust is missing, so it is not known which are new")
    if not history.get("is_whole", True):
        told.append(UNREAD)
    if history.get("novel"):
        told.append(f"new to this agent and tool: {', '.join(history['novel'])}")
    novel = history.get("novel") or ()
    for name, said in _OF_TRUST:
        # A new number beside a new value is compared, too: but nobody has approved it.
        paths = [path for path in history.get(name) or () if name != "apart" or path not in novel]
        if paths:
            told.append(f"{said}: {', '.join(paths)}")
    if history.get("tainted"):
        named = [f"{tools[one]} {one}" if one in tools else one for one in history.get("sources") or ()]
        sources = f" (of {', '.join(named)})" if named else ""
        told.append(f"out of an untrusted output of this run: {', '.join(history['tainted'])}{sources}")
    return "; ".join(told)


def tools_of_sources(placet: Placet, shown: Hold | ToolCall) -> dict[str, str]:
    """The tools of the calls whose output a call's tainted values were in."""
    verdict = shown.verdict
    history = None if verdict is None else verdict.history
    sources = history.get("sources") if isinstance(history, Mapping) else None
    found = {}
    for call_id in sources or ():
        try:
            found[call_id] = placet.call(shown.execution_id, call_id).tool
        except NotFound:
            continue
    return found

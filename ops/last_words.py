"""Why a role may have ended: the last message in its log that tells of trouble, by its first line.

A message begins in the first column (`vitals.logs` and `host.errors` indent the other lines of theirs), except for
what Python prints of an exception that nobody caught: its text comes after the traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

NOTHING_PRINTED = "nothing was printed"
NO_WARNING = "it printed no warning and no error"
_RECORD = re.compile(r"\d{4}-\d\d-\d\d \S+ [A-Z]+ |\{\"timestamp\":\"|Fatal Python error: ")
# A record that tells of no trouble.
_AT_EASE = re.compile(
    r"\d{4}-\d\d-\d\d \S+ (DEBUG|INFO) |\{\"timestamp\":\"[^\"]*\",\"level\":\"(debug|info)\","
)
# Where a thread was, in a dump of stacks (`faulthandler`), and what an end left behind: neither is a cause.
_NO_CAUSE = re.compile(
    r"(Current thread|Thread) 0x|<no Python frame>|\.\.\.$|Extension modules: |"
    r"(\S+ \S+ ERROR asyncio |\{.*\"logger\":\"asyncio\",\"event\":\")(Unclosed |Task was destroyed)"
)
_TRACEBACK = "Traceback (most recent call last):"
_GROUP = "  + Exception Group Traceback (most recent call last):"
_IN_GROUP = re.compile(r" +\| \S")


def last_words(printed: str) -> str:
    """The first line of the last message that tells of trouble; a sentence if there is none.

    Args:
        printed: what the role has printed since its start.
    """
    lines = [line for line in printed.split("\n") if line.strip()]
    telling = [line for line in _beginnings(lines) if not (_AT_EASE.match(line) or _NO_CAUSE.match(line))]
    if telling:
        return telling[-1].strip()
    return NO_WARNING if lines else NOTHING_PRINTED


def _beginnings(lines: Iterable[str]) -> Iterator[str]:
    """The first line of each message; of an exception that nobody caught, that of its text."""
    in_traceback = in_text = in_group = False
    for line in lines:
        if line[0].isspace():
            in_group = in_group or line.startswith(_GROUP)
            if in_group and _IN_GROUP.match(line):
                yield line
            continue
        in_group = False
        if line.startswith(_TRACEBACK):
            in_traceback, in_text = True, False
        elif _RECORD.match(line) or not in_text:
            yield line
            in_traceback, in_text = False, in_traceback

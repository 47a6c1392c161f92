"""Sizes and forms that every door and the writer agree on; sizes are in bytes unless said otherwise."""

import re
from functools import cache
from typing import NamedTuple

ARGUMENTS_MAX_BYTES = 256 * 1024
TEXT_MAX_CHARS = 16 * 1024
# What a run was started for is shown with each of its holds: a long one would make each small call as costly.
REQUEST_MAX_BYTES = 32 * 1024
JSON_MAX_DEPTH = 64
ID_MAX_CHARS = 128
# Whom a token names, and what a run's scope is called.
NAME_MAX_CHARS = 256

# The options of a question, and its fields.
ITEMS_MAX = 100
# What every JSON reader holds exactly.
COUNT_MAX = 2**53 - 1

# One command's events must fit one Kafka batch together; over it the command is refused as too_large.
DECISION_MAX_BYTES = 1_000_000
# A round of decisions is cut here, and only between two commands.
ROUND_MAX_BYTES = 512 * 1024

# What may be open in one execution: calls that have not ended, and requests that nobody has answered; one more is
# refused as quota. An end of the execution ends them all in one decision. With every id at its 128 characters, that
# of a held call takes two events of at most 1,700 bytes each, so
#     200 × 3,400 = 680,000, and beside them
#     the largest result, ARGUMENTS_MAX_BYTES = 262,144 (or an error, or a rejection's feedback twice, with
#     TEXT_MAX_CHARS at 4 bytes each = 65,536) and its own event's 2,000,
# together 944,144: under DECISION_MAX_BYTES. tests/domain/test_quota.py holds both figures.
OPEN_MAX = 200
# The calls that one execution may collect while it is paused, by their arguments, context, claims and reason.
PARKED_MAX_BYTES = 4 * 1024 * 1024
# What people may do to one held call as often as they like would grow without end, and with it what every further
# word on it costs: one hold is handed on so often, and one call edited so often. One more is refused as quota.
DELEGATIONS_MAX = 100
EDITS_MAX = 100
# So far ahead a deadline may be set, in seconds, and moved by an extension.
DEADLINE_MAX_S = 366 * 86_400
# Beyond this a decision leaves the rest of what is due, or was parked, to the next one.
PART_MAX_BYTES = 256 * 1024

# How long the attempt that was given sensitive values may ask for them again, in milliseconds.
SECRETS_LEASE_MS = 5 * 60 * 1000

# A tool's inputSchema as canonical JSON; publishing a larger one is refused.
INPUT_SCHEMA_MAX_BYTES = 64 * 1024
# The policies of one tenant that are in force, its projects' own among them: for each scope that calls come with, all
# of them are looked through.
POLICIES_MAX = 1_000
# How many definitions an adoption names; its offset covers the others too.
ADOPTED_NAMED_MAX = 1_000

# How far the broker's clock, a decider's and the log's own time may differ before nothing is decided any more.
CLOCK_LEAD_MAX_MS = 2_000


class Limit(NamedTuple):
    """How long a text of a word may be; stands in its annotation, and every door and the decider read it there."""

    most: int
    unit: str = "characters"

    def allows(self, text: str) -> bool:
        """Whether a text is no longer."""
        if len(text) * 4 <= self.most:
            return True
        return (len(text.encode()) if self.unit == "bytes" else len(text)) <= self.most


class Form(NamedTuple):
    """How a text of a word must be written; stands in its annotation, beside its limit.

    `pattern` is of the whole text and means the same in Python and in JSON Schema; `rule` continues a field's name.
    `bounds` says that a text over its limit is told of this rule, which has the limit in it.
    """

    pattern: str
    rule: str
    bounds: bool = False

    def allows(self, text: str) -> bool:
        """Whether a text is written so."""
        return _compiled(self.pattern).fullmatch(text) is not None


class Range(NamedTuple):
    """How small and how large a number of a word may be; stands in its annotation."""

    least: int
    most: int

    @property
    def rule(self) -> str:
        """What a number out of it is told."""
        return f"must be {self.least} to {self.most}"

    def allows(self, number: int) -> bool:
        """Whether a number is within."""
        return self.least <= number <= self.most


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

"""Sizes and forms on which every API and the writer agree; sizes are in bytes unless stated otherwise."""

import re
from functools import cache
from typing import NamedTuple

ARGUMENTS_MAX_BYTES = 256 * 1024
TEXT_MAX_CHARS = 16 * 1024
# The request of a run is shown with each of its holds: a long one would make each small call as costly.
REQUEST_MAX_BYTES = 32 * 1024
JSON_MAX_DEPTH = 64
ID_MAX_CHARS = 128
# Names in tokens, and the names of a run's scope.
NAME_MAX_CHARS = 256

# The options of a question, and its fields.
ITEMS_MAX = 100
# The largest integer that every JSON reader represents exactly.
COUNT_MAX = 2**53 - 1

# One command's events must fit into one Kafka batch together; beyond this the command is refused as too_large.
DECISION_MAX_BYTES = 1_000_000
# A round of decisions is cut here, and only between two commands.
ROUND_MAX_BYTES = 512 * 1024

# The number of open calls and unanswered requests in one execution; one more is refused as quota. The end of the
# execution ends them all in one decision. With every id at its 128 characters, a held call ends with two events of at
# most 1,700 bytes each, so
#     200 × 3,400 = 680,000, and beside them
#     the largest result, ARGUMENTS_MAX_BYTES = 262,144 (or an error, or a rejection's feedback twice, with
#     TEXT_MAX_CHARS at 4 bytes each = 65,536) and its own event's 2,000,
# together 944,144: under DECISION_MAX_BYTES. tests/domain/test_quota.py checks both figures.
OPEN_MAX = 200
# The size of the calls that one execution can collect while it is paused: arguments, context, claims and reason.
PARKED_MAX_BYTES = 4 * 1024 * 1024
# How often one hold can be delegated, and one call edited; one more is refused as quota. Without these limits the
# history of a held call, and with it the cost of every further decision on it, would grow without bound.
DELEGATIONS_MAX = 100
EDITS_MAX = 100
# How many people can report the impact of one call; one more is refused as quota: each is remembered with the call.
IMPACT_REPORTS_MAX = 50
# A conversation's messages that wait for an answer (one sender has at most as many as stay free, so half if alone),
# and all of them: the state keeps a little of each.
TURNS_OPEN_MAX = 40
TURNS_MAX = 10_000
# The subjects who can send messages in one conversation: a grant must be of another person than all of them, so none
# is ever forgotten.
SENDERS_MAX = 100
REPLIES_MAX = 1_000
# An attempt is taken to work on a turn for this long without a sign of life, in milliseconds; a turn whose attempts
# are lost so often in a row is given up.
TURN_LEASE_MS = 30_000
TURN_LAPSES_MAX = 5
# After this time without anything open, a conversation, and an execution that was opened for one question, is over.
CONVERSATION_IDLE_S = 30 * 86_400
QUESTION_IDLE_S = 7 * 86_400
# How far ahead a deadline can be set, or moved by an extension, in seconds.
DEADLINE_MAX_S = 366 * 86_400
# By how much one extension can move a deadline, and for how long one claim can show, in seconds.
EXTENSION_MAX_S = 7 * 86_400
CLAIM_MAX_S = 3_600
# The time of a question of the tool human_input: its callers fetch the answer whenever it is there.
TASK_TIMEOUT_S = 7 * 86_400
# Beyond this size a decision leaves the rest of the due expiries, or of the parked calls, to the next one.
PART_MAX_BYTES = 256 * 1024

# How long the attempt that received sensitive values can request them again, in milliseconds.
SECRETS_LEASE_MS = 5 * 60 * 1000

# A tool's inputSchema as canonical JSON; publishing a larger one is refused.
INPUT_SCHEMA_MAX_BYTES = 64 * 1024
# The policies in force of one tenant, including those of its projects: for each scope of calls, all of them are
# searched.
POLICIES_MAX = 1_000
# The number of definitions that an adoption names; its offset covers the others too.
ADOPTED_NAMED_MAX = 1_000

# If the broker's clock, a decider's clock and the log's own time differ by more, nothing is decided.
CLOCK_LEAD_MAX_MS = 2_000


class Limit(NamedTuple):
    """The maximal length of a message's text; part of the field's annotation, which the APIs and the decider read."""

    most: int
    unit: str = "characters"

    def allows(self, text: str) -> bool:
        """Returns True if a text is within the limit."""
        if len(text) * 4 <= self.most:
            return True
        return (len(text.encode()) if self.unit == "bytes" else len(text)) <= self.most


class Form(NamedTuple):
    """The form of a message's text; part of the field's annotation, beside its limit.

    `pattern` matches the whole text and means the same in Python and in JSON Schema. `rule` continues the field's
    name in an error message. `bounds` is true if the rule includes the limit, and so is the error of longer texts.
    """

    pattern: str
    rule: str
    bounds: bool = False

    def allows(self, text: str) -> bool:
        """Returns True if a text has this form."""
        return _compiled(self.pattern).fullmatch(text) is not None


class Range(NamedTuple):
    """The smallest and largest value of a message's number; part of the field's annotation."""

    least: int
    most: int

    @property
    def rule(self) -> str:
        """The error message for a number outside the range, without the field's name."""
        return f"must be {self.least} to {self.most}"

    def allows(self, number: int) -> bool:
        """Returns True if a number is within the range."""
        return self.least <= number <= self.most


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

"""The effects of a fold on other partitions, as data: a live writer passes them on once the events are acknowledged.

They are not lost with a writer, since they also follow from the fold: the next writer begins with what is left to do
(`CommandForwarder.start`, `Deadlines.start`).
"""

from typing import Literal, NamedTuple

from msgspec import Struct

from schemas.ids import definition_key
from schemas.standing_rule import RULE_KIND
from services.domain.memory.rule_uses import Use
from services.domain.memory.standing_rules import StandingRules


# Snapshots store it under the names of earlier versions.
class RuleChange(Struct, frozen=True, rename={"change_id": "errand_id"}):
    """A rule to make, or to suspend. Its id is also its command's, so that a repeat is the same command."""

    change_id: str
    kind: Literal["make", "suspend"]
    tenant: str
    project: str
    rule_id: str
    text: str

    @property
    def key(self) -> bytes:
        """The key of the rule among the definitions."""
        return definition_key(self.tenant, RULE_KIND, self.rule_id)

    def is_done(self, rules: StandingRules) -> bool:
        """True if the definitions show that it was done, or that it cannot be done any more."""
        rule = rules.find(self.tenant, self.rule_id)
        if rule is None:
            return False
        return self.kind == "make" or rule.heeds(self.change_id)


class Reserving(Struct, frozen=True):
    """Calls of an execution wait for a use of a standing rule."""

    key: bytes


class Answer(Struct, frozen=True):
    """An answer to carry back to the call that asked. `command_id` is the id of the answered question."""

    key: bytes
    reservation_id: str
    command_id: str
    use: Use


class Caused(NamedTuple):
    """An effect, and the trace context of the event that it follows from; empty if that is not traced."""

    effect: "Effect"
    trace: str


Effect = RuleChange | Reserving | Answer
Effects = tuple[Effect, ...]
NOTHING: Effects = ()

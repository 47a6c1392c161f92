"""What a fold wants done outside of it, as data: who folds live hands it on once the events are acknowledged.

Nothing of it is lost with a writer, since it follows from the fold as well: the next one begins with what is left to
do (`Carrier.start`, `Deadlines.start`).
"""

from typing import Literal

from msgspec import Struct

from schemas.ids import definition_key
from schemas.standing_rule import RULE_KIND
from services.domain.memory.rule_uses import Use
from services.domain.memory.standing_rules import StandingRules


class Errand(Struct, frozen=True):
    """A rule to make, or to suspend. Its id is that of its command, so that a repeat is the same command."""

    errand_id: str
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
        """Whether the definitions show that it was done, or cannot be any more."""
        rule = rules.find(self.tenant, self.rule_id)
        if rule is None:
            return False
        return self.kind == "make" or rule.heeds(self.errand_id)


class Reserving(Struct, frozen=True):
    """Calls of an execution wait for a use of a standing rule."""

    key: bytes


class Answer(Struct, frozen=True):
    """What is to be carried back to the call that asked. `command_id` is of the question that it answers."""

    key: bytes
    reservation_id: str
    command_id: str
    use: Use


Effect = Errand | Reserving | Answer
Effects = tuple[Effect, ...]
NOTHING: Effects = ()

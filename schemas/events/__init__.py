"""Every event: a fact that the decider recorded. Names are in the past tense."""

from schemas.events.calls import CALL_EVENTS
from schemas.events.conversations import CONVERSATION_EVENTS
from schemas.events.definitions import DEFINITION_EVENTS
from schemas.events.executions import EXECUTION_EVENTS
from schemas.events.holds import HOLD_EVENTS
from schemas.events.log import LOG_EVENTS
from schemas.events.rules import RULE_ASKING_EVENTS, RULE_EVENTS, RULE_USE_EVENTS
from schemas.message import Message

EVENTS: tuple[type[Message], ...] = (
    *EXECUTION_EVENTS,
    *CALL_EVENTS,
    *HOLD_EVENTS,
    *CONVERSATION_EVENTS,
    *DEFINITION_EVENTS,
    *RULE_EVENTS,
    *RULE_ASKING_EVENTS,
    *RULE_USE_EVENTS,
    *LOG_EVENTS,
)

"""What keeps trust from releasing a class of calls in a partition, before the trust role has counted it.

1. A contrary fact: trust counts it some hundred milliseconds after its decision. Without this, calls of the partition
   could be released in between by trust that the decision has already lowered.
2. A sampled call on which nobody has decided yet: otherwise an agent could propose it again until it is not sampled.
"""

from collections import OrderedDict
from collections.abc import Iterable

from schemas.events.calls import (
    GrantRevoked,
    ImpactReported,
    PolicyVerdictIssued,
    ToolCallCancelled,
    ToolCallDenied,
)
from schemas.events.holds import DecisionRecorded
from schemas.record import Event
from schemas.trust_facts import fact_of_decision, fact_of_revocation
from schemas.trust_score import CONTRARY
from services.domain.state import Call, Execution
from services.domain.trust.reading import Contrary

# Trust would have to be behind by more contrary decisions than this for `floor` to matter.
KEPT_MAX = 10_000
Name = tuple[str, str, str, str, str]  # tenant, project, agent, tool and class
CallKey = tuple[bytes, str]

_FOLLOWED = (
    PolicyVerdictIssued,
    DecisionRecorded,
    GrantRevoked,
    ToolCallCancelled,
    ToolCallDenied,
    ImpactReported,
)


class ContraryFacts:
    """The newest contrary fact of each class, and the sampled calls that wait for a decision.

    `floor` is the newest fact of those that are not kept.
    """

    def __init__(self) -> None:
        self.newest: OrderedDict[Name, Contrary] = OrderedDict()
        self.floor: Contrary | None = None
        self.waiting: dict[CallKey, tuple[Name, Contrary]] = {}
        self._waiting_in: dict[Name, dict[CallKey, Contrary]] = {}

    def apply(self, event: Event, state: Execution) -> None:
        """Fold an event of an execution, whose state is the one after it."""
        body = event.body
        if not isinstance(body, _FOLLOWED) or not body.call_id:
            return
        here = Contrary(event.partition, event.offset, is_open=isinstance(body, PolicyVerdictIssued))
        if isinstance(body, ImpactReported):
            if body.trust_class:
                self.note((state.tenant, state.project, body.agent, body.tool, body.trust_class), here)
            return
        call = state.calls.get(body.call_id)
        if call is None or not call.trust_class:
            return
        name = (state.tenant, state.project, call.agent, call.tool, call.trust_class)
        if isinstance(body, PolicyVerdictIssued):
            self.settle((event.key, body.call_id))
            if call.is_sampled:
                self.wait((event.key, body.call_id), name, here)
        elif self._is_contrary(body, event.key, call, state):
            self.note(name, here)

    def note(self, name: Name, contrary: Contrary) -> None:
        """Keep a fact, from an event or a snapshot."""
        self.newest[name] = contrary
        self.newest.move_to_end(name)
        if len(self.newest) > KEPT_MAX:
            _, self.floor = self.newest.popitem(last=False)

    def wait(self, key: CallKey, name: Name, contrary: Contrary) -> None:
        """Keep a sampled call, from an event or a snapshot."""
        self.waiting[key] = name, contrary
        self._waiting_in.setdefault(name, {})[key] = contrary

    def settle(self, key: CallKey) -> bool:
        """Drop a sampled call that waits no more; true if it was one."""
        found = self.waiting.pop(key, None)
        if found is None:
            return False
        waiting = self._waiting_in[found[0]]
        del waiting[key]
        if not waiting:
            del self._waiting_in[found[0]]
        return True

    def of(self, name: Name) -> Contrary | None:
        """What keeps trust from releasing a class, unless trust has counted it."""
        if waiting := self._waiting_in.get(name):
            return next(iter(waiting.values()))
        return self.newest.get(name, self.floor)

    def of_any(self, names: Iterable[Name]) -> Contrary | None:
        """What keeps trust from releasing a class, about any of the classes that close it; the newest of several."""
        found = [one for name in names if (one := self.of(name)) is not None]
        return max(found, key=lambda one: (one.is_open, one.offset), default=None)

    def _is_contrary(
        self,
        body: DecisionRecorded | GrantRevoked | ToolCallCancelled | ToolCallDenied,
        key: bytes,
        call: Call,
        state: Execution,
    ) -> bool:
        if isinstance(body, DecisionRecorded):
            if not body.resolves or _is_about_the_outcome(body, state):
                return False
            self.settle((key, body.call_id))
            edited = bool(call.proposed_arguments)
            fact = fact_of_decision(body.decision, is_edited=edited, is_sampled=call.is_sampled)
            return fact in CONTRARY
        was_waiting = self.settle((key, body.call_id))
        if isinstance(body, ToolCallCancelled):
            return was_waiting
        return isinstance(body, GrantRevoked) and fact_of_revocation(body.reason) is not None


def _is_about_the_outcome(body: DecisionRecorded, state: Execution) -> bool:
    """True for a decision on a call in doubt: it is about what happened, not about whether it should have."""
    hold = state.holds.get(body.hold_id)
    return hold is None or hold.cause == "outcome_unknown"

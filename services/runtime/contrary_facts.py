"""What keeps trust from releasing a class of calls in a partition, before the trust role has counted it.

1. A contrary fact: trust counts it some hundred milliseconds after its decision. Without this, calls of the partition
   could be released in between by trust that the decision has already lowered.
2. A sampled call on which nobody has decided yet: otherwise an agent could propose it again until it is not sampled.

Both count for all classes that they close (`schemas.trust_family`). The values of a contrary fact's call count as
ones that people are against, in calls of any class, until trust has weighed them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

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
from schemas.trust_family import closes, family_of
from schemas.trust_score import CONTRARY
from services.domain.state import Call, Execution
from services.domain.trust.reading import Contrary

# Trust would have to be behind by more contrary decisions, and by more of their values, for the floors to matter.
KEPT_MAX = 10_000
VALUES_KEPT_MAX = 10_000
Name = tuple[str, str, str, str, str]  # tenant, project, agent, tool and class, or the digest of a value
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
    """The newest contrary fact of each class and value, and the sampled calls that wait for a decision.

    `floor` is the newest fact of those that are not kept, `values_floor` that of values.
    """

    def __init__(self) -> None:
        self.newest: OrderedDict[Name, Contrary] = OrderedDict()
        self.floor: Contrary | None = None
        self.values: OrderedDict[Name, Contrary] = OrderedDict()
        self.values_floor: Contrary | None = None
        self.waiting: dict[CallKey, tuple[Name, Contrary]] = {}
        self._waiting_in: dict[Name, dict[CallKey, Contrary]] = {}
        # The classes with one of these, by the terms that they have in common.
        self._families: dict[Name, set[str]] = {}

    def apply(self, event: Event, state: Execution) -> None:
        """Fold an event of an execution, whose state is the one after it."""
        body = event.body
        if not isinstance(body, _FOLLOWED) or not body.call_id:
            return
        here = Contrary(event.partition, event.offset, is_open=isinstance(body, PolicyVerdictIssued))
        if isinstance(body, ImpactReported):
            place = (state.tenant, state.project, body.agent, body.tool)
            self._note_values(place, body.values, here)
            if body.trust_class:
                self.note((*place, body.trust_class), here)
            return
        call = state.calls.get(body.call_id)
        # What people say of a planted call says nothing about the agent.
        if call is None or call.probe is not None:
            return
        place = (state.tenant, state.project, call.agent, call.tool)
        name = (*place, call.trust_class)
        if isinstance(body, PolicyVerdictIssued):
            self.settle((event.key, body.call_id))
            if call.is_sampled:
                self.wait((event.key, body.call_id), name, here)
        elif self._is_contrary(body, event.key, call, state):
            # Of a call in no class, too: with more arguments any call can be made one.
            self._note_values(place, call.values, here)
            if call.trust_class:
                self.note(name, here)

    def note(self, name: Name, contrary: Contrary) -> None:
        """Keep a fact about a class, from an event or a snapshot."""
        self.newest[name] = contrary
        self.newest.move_to_end(name)
        self._families.setdefault(_family(name), set()).add(name[-1])
        if len(self.newest) > KEPT_MAX:
            dropped, self.floor = self.newest.popitem(last=False)
            self._tidy(dropped)

    def note_value(self, name: Name, contrary: Contrary) -> None:
        """Keep a fact about a value, from an event or a snapshot."""
        self.values[name] = contrary
        self.values.move_to_end(name)
        if len(self.values) > VALUES_KEPT_MAX:
            _, self.values_floor = self.values.popitem(last=False)

    def wait(self, key: CallKey, name: Name, contrary: Contrary) -> None:
        """Keep a sampled call, from an event or a snapshot."""
        self.waiting[key] = name, contrary
        self._waiting_in.setdefault(name, {})[key] = contrary
        self._families.setdefault(_family(name), set()).add(name[-1])

    def settle(self, key: CallKey) -> bool:
        """Drop a sampled call that waits no more; true if it was one."""
        found = self.waiting.pop(key, None)
        if found is None:
            return False
        waiting = self._waiting_in[found[0]]
        del waiting[key]
        if not waiting:
            del self._waiting_in[found[0]]
            self._tidy(found[0])
        return True

    def of(self, name: Name) -> Contrary | None:
        """What keeps trust from releasing a class, unless trust has counted it; the newest of several."""
        found = [] if self.floor is None else [self.floor]
        for other in self._families.get(_family(name), ()):
            if closes(other, name[-1]):
                found += self._alone((*name[:-1], other))
        return max(found, key=lambda one: (one.is_open, one.offset), default=None)

    def of_value(self, name: Name) -> Contrary | None:
        """The newest fact against calls with a value, unless trust has counted it."""
        return self.values.get(name, self.values_floor)

    def _alone(self, name: Name) -> Iterator[Contrary]:
        yield from self._waiting_in.get(name, {}).values()
        if name in self.newest:
            yield self.newest[name]

    def _note_values(
        self, place: tuple[str, str, str, str], digests: Iterable[str], contrary: Contrary
    ) -> None:
        for digest in digests:
            self.note_value((*place, digest), contrary)

    def _tidy(self, name: Name) -> None:
        """Forget a class of which nothing is kept any more."""
        if name not in self.newest and name not in self._waiting_in:
            family = self._families[_family(name)]
            family.discard(name[-1])
            if not family:
                del self._families[_family(name)]

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


def _family(name: Name) -> Name:
    return (*name[:-1], family_of(name[-1]).terms)


def _is_about_the_outcome(body: DecisionRecorded, state: Execution) -> bool:
    """True for a decision on a call in doubt: it is about what happened, not about whether it should have."""
    hold = state.holds.get(body.hold_id)
    return hold is None or hold.cause == "outcome_unknown"

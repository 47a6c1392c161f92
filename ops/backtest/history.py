"""The definitions as they stood at each offset of their log, and with a candidate policy in its place.

They are folded once, by the decider's own fold. Values share what they have in common, so that all of them together
take little more than the newest.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from ops.errors import UsageError
from schemas.events.definitions import PolicyPublished, PolicyRetired
from schemas.events.log import WriterClaimed
from schemas.ids import TENANT_WIDE, definition_key, project_of_definition
from schemas.policy_document import PolicyDocument
from schemas.record import RawRecord
from schemas.term import TermRule
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.policy.cel import evaluate_alone
from services.domain.policy.scopes import ScopeFacts
from services.domain.state import Execution
from services.runtime.definitions_partition import DefinitionsPartition
from services.runtime.ledger import Ledger

NOTHING = Definitions(policies=PolicySet(), evaluate=evaluate_alone)


class Candidate(NamedTuple):
    """A policy that is not published yet, and for whom it would be: `project` is `*` for the whole tenant.

    Without a project it is where the policy of its name was published; see `History.placed`.
    """

    document: PolicyDocument
    tenant: str
    project: str | None = None


class PlaceUnclearError(UsageError):
    """A policy's name is published for several projects, and none was named."""

    def __init__(self, name: str, projects: Sequence[str]) -> None:
        listed = ", ".join(projects)
        super().__init__(
            f"The policy {name} is published for several projects ({listed}): name one with --project."
        )


@dataclass(slots=True)
class History:
    """Every state that the definitions went through, each by the offset of the record that made it.

    Attributes:
        rule: the term rule of the definitions' partition.
        counted: records that count and are no claims.
        refused: records that do not count.
    """

    rule: TermRule
    counted: int = 0
    refused: int = 0
    through: int = -1
    _offsets: list[int] = field(default_factory=lambda: [NOTHING.through_offset])
    _states: list[Definitions] = field(default_factory=lambda: [NOTHING])
    _ledger: Ledger = field(init=False)
    _folded: DefinitionsPartition = field(init=False)
    # Of each policy in force, by the key of its records, its tenant and what was published.
    _policies: dict[bytes, tuple[str, PolicyPublished]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folded = DefinitionsPartition(NOTHING)
        self._ledger = Ledger(self._folded, self.rule)

    def read(self, raws: Sequence[RawRecord]) -> None:
        """Fold the next records of the partition.

        Raises:
            LogFromNewerVersion: a record counts and cannot be read: nothing that follows it is known.
        """
        for raw in raws:
            event = self._ledger.read(raw)
            self.refused += event is None
            self.counted += event is not None and not isinstance(event.body, WriterClaimed)
            self.through = raw.offset
            if event is not None and isinstance(event.body, PolicyPublished):
                self._policies[event.key] = (event.meta.tenant, event.body)
            elif event is not None and isinstance(event.body, PolicyRetired):
                self._policies.pop(event.key, None)
            current = self._folded.current
            if current.through_offset != self._offsets[-1]:
                self._offsets.append(current.through_offset)
                self._states.append(current)

    def at(self, through: int) -> Definitions | None:
        """The definitions up to an offset; None if the log that was read ends before it."""
        if through > self.through:
            return None
        return self._states[bisect_right(self._offsets, through) - 1]

    @property
    def newest(self) -> Definitions:
        """The definitions at the end of what was read."""
        return self._states[-1]

    def published_policies(self) -> Iterable[tuple[str, PolicyPublished]]:
        """The policies in force at the end of what was read, each with its tenant."""
        return self._policies.values()

    def placed(self, candidate: Candidate) -> Candidate:
        """A candidate with its project: where its name was published, and if nowhere, the whole tenant.

        Raises:
            PlaceUnclearError: its name was published for several projects.
        """
        if candidate.project is not None:
            return candidate
        tenant, name = candidate.tenant, candidate.document.policy
        published = self._states[-1].published
        keys = [key for key in published if key.endswith(f"/policy/{name}".encode())]
        # One that was retired, such as a fork's, is no place of a policy any more; unless there is no other.
        keys = [key for key in keys if not published[key].retired] or keys
        projects = {project_of_definition(key) for key in keys}
        found = sorted(one for one in projects if definition_key(tenant, "policy", name, one) in keys)
        if len(found) > 1:
            raise PlaceUnclearError(name, found)
        return candidate._replace(project=found[0] if found else TENANT_WIDE)

    def next_version(self, candidate: Candidate) -> int:
        """The version under which a candidate would be published."""
        name, project = candidate.document.policy, candidate.project or TENANT_WIDE
        key = definition_key(candidate.tenant, "policy", name, project)
        newest = self._states[-1].published.get(key)
        return 1 if newest is None else newest.version + 1


@dataclass(slots=True)
class InForceHere:
    """The definitions that one partition judges by, as published (`before`) and with the candidate (`after`).

    Both are None if the partition adopted definitions that the log does not have; `missing` says which. `is_same` is
    true if the candidate says what the policy in its place says.
    """

    history: History
    candidate: Candidate
    before: Definitions | None = NOTHING
    after: Definitions | None = None
    missing: str = ""
    is_same: bool = False
    _version: int = 0
    _through: int = NOTHING.through_offset

    def __post_init__(self) -> None:
        self._version = self.history.next_version(self.candidate)
        self._put(NOTHING)

    @property
    def through(self) -> int:
        """The offset of the newest definition in force here."""
        return self._through

    def judges(self, state: Execution, agent: str) -> bool:
        """True if a call of an agent in a run is judged by the candidate, and by no other policy."""
        if self.after is None or state.tenant != self.candidate.tenant:
            return False
        policies = self.after.policies
        scope = ScopeFacts(state.tenant, state.project, state.workspace, state.user, agent)
        place = (state.tenant, self.candidate.project or TENANT_WIDE, self.candidate.document.policy)
        return policies.select(scope) is policies.policies[place]

    def adopt(self, through: int) -> None:
        """Judge by the definitions up to an offset from now on."""
        found, self._through = self.history.at(through), through
        if found is None:
            self.before = self.after = None
            self.missing = f"it was judged by definitions up to offset {through}, which the log does not have"
        else:
            self._put(found)

    def _put(self, found: Definitions) -> None:
        document, tenant, project = self.candidate
        policies = found.policies.with_policy(
            tenant, document.policy, self._version, document, project or TENANT_WIDE
        )
        self.before, self.after = found, replace(found, policies=policies)
        place = (tenant, project or TENANT_WIDE, document.policy)
        present = found.policies.policies.get(place)
        versions = (
            one and dataclasses.replace(one, version=0) for one in (present, policies.policies[place])
        )
        self.is_same = next(versions) == next(versions)

"""The selection of a policy: the most specific scope, compared as agent > user > workspace > project > tenant."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from schemas.ids import TENANT_WIDE
from schemas.policy_document import Scope
from services.domain.policy.patterns import matcher, specificity

DIMENSIONS = ("agent", "user", "workspace", "project", "tenant")


class ScopeFacts(NamedTuple):
    """The origin of a call. An empty user or workspace is a missing one: only `*` matches it."""

    tenant: str
    project: str
    workspace: str
    user: str
    agent: str


class Scoped(Protocol):
    """A published policy: its publisher's tenant, its project, its name and version, and its scope."""

    @property
    def tenant(self) -> str:
        """The publisher's tenant."""

    @property
    def project(self) -> str:
        """The project that owns it; `*` for the tenant."""

    @property
    def name(self) -> str:
        """The policy's name."""

    @property
    def version(self) -> int:
        """Counted from 1."""

    @property
    def scope(self) -> Scope:
        """The calls to which it applies."""


P = TypeVar("P", bound=Scoped)


def applies(tenant: str, scope: Scope, facts: ScopeFacts) -> bool:
    """True if a tenant's policy with this scope applies to these facts; it never applies to another tenant's calls.

    The scope of a project's own policy names that project (`CompiledPolicy.scope`), so it never fits another's calls.
    """
    return tenant == facts.tenant and all(
        _fits(getattr(scope, dimension), getattr(facts, dimension)) for dimension in DIMENSIONS
    )


def _fits(pattern: str, name: str) -> bool:
    return pattern == "*" or (name != "" and matcher(pattern)(name))


def select_policy(policies: Iterable[P], facts: ScopeFacts) -> P | None:
    """The policy with the most specific scope.

    Each dimension is ordered as exact before pattern before `*`, then by its longer literal prefix; the first
    dimension that differs decides. Equal scopes: the tenant's before a project's own, the higher version, then the
    alphabetically first name.
    """
    candidates = [policy for policy in policies if applies(policy.tenant, policy.scope, facts)]
    return min(candidates, key=order_of, default=None)


def order_of(policy: Scoped) -> tuple[list[int], bool, int, str]:
    """The sort key of policies that fit one call: the first judges it."""
    specific = [-part for dimension in DIMENSIONS for part in specificity(getattr(policy.scope, dimension))]
    return specific, policy.project != TENANT_WIDE, -policy.version, policy.name

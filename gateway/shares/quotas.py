"""The limits on proposals of an agent, and of a whole tenant: they limit at the gateway what people must review.

A call or request over the quota is refused before it becomes a command: nothing of it is in the log. A repeat of a
known one does not count, unless it contains sensitive values, which are sealed first.
"""

from __future__ import annotations

import math
from time import monotonic

from gateway.problems import Problem
from gateway.shares.rates import Buckets
from schemas.refusals import Refusal

# The burst, in seconds of the sustained rate.
BURST_S = 10.0


class ProposalQuotas:
    """The proposal rates of every agent and tenant."""

    def __init__(self, agent_per_minute: int, tenant_per_minute: int) -> None:
        """Begin without proposals.

        Args:
            agent_per_minute: sustained proposals of one agent of a project.
            tenant_per_minute: the same for all agents of a tenant together.
        """
        self._agent_per_minute, self._tenant_per_minute = agent_per_minute, tenant_per_minute
        self._agents = Buckets(agent_per_minute / 60, BURST_S)
        self._tenants = Buckets(tenant_per_minute / 60, BURST_S)

    def take(self, tenant: str, project: str, agent: str) -> None:
        """Count one proposal.

        Raises:
            Problem: 429 quota, the agent or its tenant proposes too much.
        """
        now = monotonic()
        if wait_s := self._agents.wait_s((tenant, project, agent), now):
            raise _over(
                f"the agent {agent} proposes more than {self._agent_per_minute} calls and requests a minute",
                wait_s,
            )
        if wait_s := self._tenants.wait_s(tenant, now):
            raise _over(
                f"this tenant's agents propose more than {self._tenant_per_minute} calls and requests a minute",
                wait_s,
            )


def _over(detail: str, wait_s: float) -> Problem:
    return Problem(
        Refusal.QUOTA, f"{detail}: propose again after retry_after seconds", retry_after=math.ceil(wait_s)
    )

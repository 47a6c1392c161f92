"""The parts of a running gateway that its interfaces use: REST, the sockets, and the operator's endpoints."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.audit_reads import AuditReads
from gateway.components import Components
from gateway.identity.authentication import Authenticator
from gateway.identity.grants import Grants
from gateway.live.heartbeats import LatestHeartbeats
from gateway.live.trust import TrustParts
from gateway.metrics import Metrics
from gateway.operations.plan import Gate
from gateway.pushes.hub import Hub
from gateway.server.connections import Connections
from gateway.settings import GatewaySettings
from gateway.shares.budget import Budget
from gateway.shares.open_limit import OpenLimit
from gateway.shares.rates import Buckets
from gateway.shares.work import Work
from gateway.shutdown import Shutdown
from gateway.views import GatewayViews
from vitals.process_status import ProcessStatus


@dataclass(slots=True, kw_only=True)
class Served:
    """The parts that a gateway's interfaces need. `gate` is available once the gateway is started."""

    settings: GatewaySettings
    grants: Grants
    authenticator: Authenticator
    hub: Hub
    views: GatewayViews
    requests: Buckets
    socket_limit: OpenLimit
    waiting_limit: OpenLimit
    past_limit: OpenLimit
    components: Components
    audit: AuditReads
    client_connections: Connections
    status: ProcessStatus
    metrics: Metrics
    heartbeats: LatestHeartbeats
    work: Work
    budget: Budget
    trust: TrustParts = field(default_factory=TrustParts)
    shutdown: Shutdown = field(default_factory=Shutdown)
    caught_up: bool = False
    port: int = 0
    _gate: Gate | None = None

    @property
    def started(self) -> bool:
        """True if the live state is available."""
        return self._gate is not None

    @property
    def gate(self) -> Gate:
        """The services that operations need.

        Raises:
            RuntimeError: the gateway was not started.
        """
        if self._gate is None:
            raise RuntimeError("the gateway was not started")
        return self._gate

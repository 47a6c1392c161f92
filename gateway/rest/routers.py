"""The routers of the REST API, in the order in which routes are matched and documented."""

from __future__ import annotations

from gateway.rest import (
    calls,
    definitions,
    documents,
    executions,
    holds,
    human_input,
    impact,
    pages,
    policies,
    proofs,
    records,
    registry,
    requests,
    secrets,
    standing_rules,
    stream,
    system,
    views,
    well_known,
)

ROUTERS = (
    executions.router,
    calls.router,
    views.router,
    holds.router,
    requests.router,
    human_input.router,
    secrets.router,
    definitions.router,
    policies.router,
    standing_rules.router,
    impact.router,
    records.router,
    proofs.router,
    stream.router,
    system.router,
    registry.router,
    documents.router,
    pages.router,
    well_known.router,
)

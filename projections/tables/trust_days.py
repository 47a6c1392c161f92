"""Trust by days, as `placet export --star` computes it: no table of the views, since SQL has no Beta quantile."""

from typing import Annotated, TypedDict

from projections.tables.columns import Moment, Offer
from projections.tables.common import Agent, Project, Tenant, Tool


class TrustDayRow(TypedDict):
    """One row for each class of an agent's calls and each day: the trust at the end of the day (docs/trust.md)."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    trust_class: Annotated[str, "The class of calls, as verdicts record it."]
    day: Annotated[str, "The day in UTC, YYYY-MM-DD."]
    at_ms: Annotated[Moment, "The last millisecond of the day, for which trust is computed."]
    lower_bound: Annotated[float, "The score of trust: the lower credible bound."]
    raising: Annotated[float, "What raises it, weighed by age."]
    lowering: Annotated[float, "What lowers it, weighed by age."]
    facts: Annotated[int, "The facts that it is computed from."]


TRUST_DAYS = Offer("trust_days", TrustDayRow)

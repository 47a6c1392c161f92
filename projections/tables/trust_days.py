"""Trust by days, as `placet export --star` computes it: no table of the views, since SQL has no Beta quantile."""

from typing import Annotated, TypedDict

from projections.tables.columns import Day, Moment, Offer
from projections.tables.common import Agent, Project, Tenant, Tool
from schemas.trust_score import KEPT_MAX, WINDOW_DAYS


class TrustDayRow(TypedDict):
    """One row for each class of an agent's calls and each day: the trust at the end of the day (docs/trust.md).

    It is in the files of `placet export --star` alone (docs/analysis.md).
    """

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    trust_class: Annotated[str, "The class of calls, as verdicts record it."]
    day: Annotated[Day, "The day in UTC; in JSON lines the text YYYY-MM-DD."]
    at_ms: Annotated[Moment, "The last millisecond of the day, for which trust is computed."]
    lower_bound: Annotated[float, "The score of trust: the lower credible bound."]
    raising: Annotated[float, "What raises it, weighed by age."]
    lowering: Annotated[float, "What lowers it, weighed by age."]
    facts: Annotated[
        int,
        "How many facts trust had then: of the class, and contrary ones of the tool's other classes that count for "
        f"it; of the last {WINDOW_DAYS} days, the newest {KEPT_MAX} of a sort in a partition; also those that add "
        "nothing, such as words of withdrawn accounts; no failure before the class's first other fact in its "
        "partition.",
    ]


TRUST_DAYS = Offer("trust_days", TrustDayRow)

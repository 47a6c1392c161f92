"""What became of a proposal that made no call: its refusal, which is an event of its run."""

from typing import NamedTuple

from projections.folds.rows import json_value
from projections.queries.moment import Moment
from projections.tables.events import EVENTS
from schemas.commands import ProposeToolCall
from schemas.events.executions import CommandRefused

# Of the newest refusals in the run: an agent can have any number of proposals refused.
LOOKED_AT = 200


class RefusedProposal(NamedTuple):
    """The code and sentence of a refusal, and when it was given by the log's time."""

    code: str
    detail: str
    at_ms: int


def refused_proposal(
    moment: Moment, tenant: str, project: str, execution_id: str, call_id: str
) -> RefusedProposal | None:
    """The last refusal of a proposal with this call id; None if it is not among the run's newest `LOOKED_AT`."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "type" = ? '
        'ORDER BY "log_offset" DESC LIMIT ?'
    )
    place = (tenant, project, execution_id)
    for row in moment.select(EVENTS, tail, (*place, CommandRefused.__name__, LOOKED_AT)):
        body = json_value(row["body"])
        if (body["command"], body["subject_id"]) == (ProposeToolCall.__name__, call_id):
            return RefusedProposal(body["code"], body["detail"], row["at_ms"])
    return None

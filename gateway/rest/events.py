"""/v1/events/{partition}/{offset}: the event at a place of the log, as verdicts and facts of trust name places."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.authentication import check_reads
from gateway.problems import not_found
from gateway.rest.documented import operation
from gateway.rest.history import read_place
from gateway.rest.parameters import AFTER, NUMBER_MAX, Number
from gateway.rest.reading_parameters import number_in
from gateway.rest.request_context import RequestContext, answer, context_of
from projections.queries.history import event_json

router = APIRouter(prefix="/v1/events", tags=["events"])
Context = Annotated[RequestContext, Depends(context_of)]
PARTITION = Number("partition", "A partition of the log.", least=0, most=2**31 - 1)
OFFSET = Number("offset", "An offset in the partition.", least=0, most=NUMBER_MAX)


# As texts: they are read after the caller is authenticated, as all parameters are.
PartitionInPath = Annotated[
    str, Path(description=PARTITION.description, json_schema_extra=dict(PARTITION.schema))
]
OffsetInPath = Annotated[str, Path(description=OFFSET.description, json_schema_extra=dict(OFFSET.schema))]


@router.get(
    "/{partition}/{offset}",
    operation_id="getEvent",
    **operation({200: r.Event}, 404, parameters=(AFTER,)),
)
async def get_event(context: Context, partition: PartitionInPath, offset: OffsetInPath) -> Response:
    """Get the event at a place of the log, which `2@16` names with its partition and its offset.

    A place that has no event of the project is 404 `not_found`, whatever is there; for an agent's token so is one
    that has no event of its own agent.
    """
    actor = context.actor
    if actor.agent is None:
        check_reads(actor)
    place = number_in(partition, PARTITION), number_in(offset, OFFSET)
    await context.settle_after()
    row = await read_place(context, *place)
    if row is None:
        raise not_found("event of this project at {}@{}".format(*place))
    return answer(context.gate.json(event_json(row)))

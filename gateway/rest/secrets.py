"""Sensitive values: delivered once, and erased; and the data keys of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.authentication import check_role
from gateway.live.reader import Subject
from gateway.operations import calls
from gateway.operations.data_keys import list_keys, plan_destruction
from gateway.operations.delivery import plan_erase, plan_take
from gateway.operations.requests import find_request
from gateway.rest.documented import change, operation
from gateway.rest.parameters import EXECUTION
from gateway.rest.request_context import RequestContext, answer, context_of, listed

router = APIRouter(prefix="/v1", tags=["secrets"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "/requests/{request_id}/secrets",
    operation_id="takeSecrets",
    **change(r.DeliveredSecrets, b.TakeSecrets, parameters=(EXECUTION,)),
)
async def take(context: Context, request_id: str) -> Response:
    """Deliver the answer to an env_var request; the same attempt can repeat the request for five minutes."""
    given = await context.given()
    subject = await find_request(context.gate, context.actor, request_id, context.query(EXECUTION.name))
    return await context.perform(lambda: plan_take(context.gate, context.claims, subject, given))


@router.post(
    "/requests/{request_id}/secrets/erase",
    operation_id="eraseRequestSecrets",
    **change(r.Erased, b.EraseSecrets, parameters=(EXECUTION,)),
)
async def erase_of_request(context: Context, request_id: str) -> Response:
    """Erase the answer to an env_var request; its commitments stay in the log."""
    check_role(context.actor, "operator")
    subject = await find_request(context.gate, context.actor, request_id, context.query(EXECUTION.name))
    return await _erase(context, subject)


@router.post(
    "/executions/{execution_id}/tool-calls/{call_id}/secrets/erase",
    operation_id="eraseCallSecrets",
    **change(r.Erased, b.EraseSecrets),
)
async def erase_of_call(context: Context, execution_id: str, call_id: str) -> Response:
    """Erase the sensitive arguments of a call; their commitments stay in the log."""
    return await _erase(context, calls.subject_of(context.actor, execution_id, call_id))


@router.get(
    "/data-keys",
    operation_id="listDataKeys",
    **operation({200: r.Page[r.DataKey]}),
)
async def list_data_keys(context: Context) -> Response:
    """List the data keys of the project, oldest first; new values are sealed under the last one."""
    return answer(listed(context.gate, await list_keys(context.gate, context.claims)))


@router.post(
    "/data-keys/{name}/destroy",
    operation_id="destroyDataKey",
    **change(r.DataKey, b.DestroyDataKey),
)
async def destroy_data_key(context: Context, name: str) -> Response:
    """Destroy a data key: everything that was sealed under it becomes unreadable, in every copy of the vault."""
    given = await context.given()
    return await context.perform(
        lambda: plan_destruction(context.gate, context.claims, name, given, context.key)
    )


async def _erase(context: RequestContext, subject: Subject) -> Response:
    given = await context.given()
    return await context.perform(
        lambda: plan_erase(context.gate, context.claims, subject, given, context.key)
    )

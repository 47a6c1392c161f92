"""/.well-known: what anybody may read, to verify by himself what this installation has signed."""

from __future__ import annotations

import logging

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from gateway.identity.keys import KeysUnreadable
from gateway.problems import Problem
from gateway.rest.documented import open_operation, refusals
from gateway.service.served import Served
from schemas.refusals import Refusal

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/.well-known", tags=["documents"])
# Short: whoever keeps them longer cannot verify what a new key signed.
CACHE = {"Cache-Control": "public, max-age=60"}


@router.get(
    "/jwks.json",
    operation_id="getGrantKeys",
    response_model=r.JsonWebKeySet,
    **open_operation(refusals(503)),
)
async def jwks(request: Request) -> Response:
    """The public keys that sign grants: a tool server verifies with them, without asking again."""
    gateway: Served = request.app.state.gateway
    try:
        return JSONResponse(gateway.grants.jwks(), headers=CACHE)
    except KeysUnreadable as error:
        # Which file it is concerns the operator, not everybody.
        logger.error("the keys of grants cannot be shown: %s", error)
        raise Problem(
            Refusal.UNAVAILABLE, "the keys cannot be read: ask the operator", retry_after=60
        ) from error

"""/.well-known: public keys, so that anyone can verify the signatures of this installation."""

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
# Short: with keys cached for longer, signatures of a new key could not be verified.
CACHE = {"Cache-Control": "public, max-age=60"}


@router.get(
    "/jwks.json",
    operation_id="getGrantKeys",
    response_model=r.JsonWebKeySet,
    **open_operation(refusals(503)),
)
async def jwks(request: Request) -> Response:
    """Get the public keys that sign grants: a tool server verifies grants with them, without a further request."""
    gateway: Served = request.app.state.gateway
    try:
        return JSONResponse(gateway.grants.jwks(), headers=CACHE)
    except KeysUnreadable as error:
        # The name of the file is for the operator only.
        logger.error("the keys of grants cannot be shown: %s", error)
        raise Problem(
            Refusal.UNAVAILABLE, "the keys cannot be read: ask the operator", retry_after=60
        ) from error

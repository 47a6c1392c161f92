"""/openapi.json and /asyncapi.json: the published interface, generated from the same models."""

from __future__ import annotations

from functools import cache

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.docs_gen.asyncapi import asyncapi_document

router = APIRouter(tags=["documents"])
JSON = "application/json"


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return Response(request.app.state.openapi_text, media_type=JSON)


@router.get("/asyncapi.json", include_in_schema=False)
async def asyncapi() -> Response:
    """The AsyncAPI document."""
    return Response(_asyncapi(), media_type=JSON)


@cache
def _asyncapi() -> bytes:
    # Anybody may ask for it, as often as they like; so it is made once.
    return orjson.dumps(asyncapi_document())

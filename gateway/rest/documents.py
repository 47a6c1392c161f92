"""/openapi.json and /asyncapi.json: the published interface, generated from the same models."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.docs_gen.asyncapi import asyncapi_document

router = APIRouter(tags=["documents"])


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.state.openapi)


@router.get("/asyncapi.json", include_in_schema=False)
async def asyncapi() -> Response:
    """The AsyncAPI document."""
    return JSONResponse(asyncapi_document())

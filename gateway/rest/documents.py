"""/openapi.json and /asyncapi.json: the published interface, as the application state holds it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

router = APIRouter(tags=["documents"])
JSON = "application/json"


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return Response(request.app.state.openapi_text, media_type=JSON)


@router.get("/asyncapi.json", include_in_schema=False)
async def asyncapi(request: Request) -> Response:
    """The AsyncAPI document."""
    return Response(request.app.state.asyncapi_text, media_type=JSON)

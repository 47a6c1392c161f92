"""The application: routes, error answers, and the headers of every answer."""

from __future__ import annotations

import logging
import time

import orjson
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.docs_gen.asyncapi import asyncapi_document
from gateway.docs_gen.openapi import DESCRIPTION, LICENSE, VERSION, openapi_document
from gateway.metrics import Metrics
from gateway.problems import Problem, bare, not_found, response
from gateway.rest import registry
from gateway.rest.documented import ANY_HEAD
from gateway.rest.failed_authentications import FAILURES_BURST_S, FAILURES_PER_S, FailedAuthenticationLimit
from gateway.rest.head_method import HeadAsGet
from gateway.rest.internal_errors import InternalErrors
from gateway.rest.parameters import IDEMPOTENCY_KEY, LAST_EVENT_ID, PROJECT
from gateway.rest.routers import ROUTERS
from gateway.rest.unread_responses import UnreadResponseLimit
from gateway.server.request_heads import RequestHeadFilter
from gateway.service.gateway import Gateway
from gateway.shares.rates import Buckets
from gateway.shutdown import ShutdownResponses
from gateway.sockets import ws
from gateway.sockets.bridge import HumanBridge
from schemas.trace_context import TRACEPARENT
from vitals import tracing

logger = logging.getLogger(__name__)

TITLE = "Placet"
# Permissions in a browser for pages of the origins given with --origin.
CORS_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
CORS_HEADERS = (
    "Authorization",
    "Content-Type",
    IDEMPOTENCY_KEY.name,
    LAST_EVENT_ID.name,
    PROJECT.name,
    TRACEPARENT,
    # A browser's OpenTelemetry sends them too, and without leave for them the whole request would be lost. They are
    # not read.
    "tracestate",
    "baggage",
)
CORS_EXPOSED = ("Retry-After", "WWW-Authenticate")
CORS_MAX_AGE_S = 600
# Not registered: nginx's, and many others' since.
CLIENT_GONE = 499
# FastAPI's own spans, metrics and logs tell URLs with their queries and the texts of exceptions, and are on in a
# process that has providers of OpenTelemetry. Each is named, so that an unknown one does not begin unnoticed.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # No answer here is a page: if a browser treats one as a page, it must fetch and run nothing.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


def routed_app() -> FastAPI:
    """Return an application with the routes and no services, from which the documents are made."""
    app = FastAPI(
        title=TITLE,
        version=VERSION,
        description=DESCRIPTION,
        license_info=LICENSE,
        # Relative to the document's own address: a gateway cannot know the names by which it is reached.
        servers=[{"url": "/"}],
        responses=ANY_HEAD,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # The address of a redirect would be made from the host that the client claims.
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    for router in ROUTERS:
        app.include_router(router)
    return app


def create_app(gateway: Gateway) -> FastAPI:
    """Return the application of a gateway. The caller starts and stops the gateway."""
    app = routed_app()
    app.state.gateway = gateway
    app.router.routes.append(WebSocketRoute("/v1/ws", ws.endpoint))
    app.router.routes.append(WebSocketRoute("/human-bridge", HumanBridge()))
    app.router.routes.append(WebSocketRoute("/{path:path}", ws.nowhere))
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_middleware(RequestHeadFilter)
    app.add_middleware(FailedAuthenticationLimit, failures=Buckets(FAILURES_PER_S, FAILURES_BURST_S))
    app.add_middleware(
        UnreadResponseLimit, budget=gateway.budget, stall_s=gateway.settings.limits.bounds.stall_s
    )
    app.add_middleware(InternalErrors)
    app.add_middleware(ShutdownResponses, shutdown=gateway.shutdown, metrics=gateway.metrics)
    if gateway.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=gateway.settings.origins,
            allow_methods=CORS_METHODS,
            allow_headers=CORS_HEADERS,
            expose_headers=CORS_EXPOSED,
            # The token is sent in a header by its holder; browsers add no cookie here.
            allow_credentials=False,
            max_age=CORS_MAX_AGE_S,
        )
    app.add_middleware(HeadAsGet)
    app.add_middleware(Observed, metrics=gateway.metrics)
    if tracing.spans is not None:
        from gateway.rest.request_spans import RequestSpans  # it imports OpenTelemetry

        app.add_middleware(RequestSpans, spans=tracing.spans)
    app.state.openapi = openapi_document(app)
    # Anyone may request them, as often as they like; so they are serialized once.
    app.state.openapi_text = orjson.dumps(app.state.openapi)
    app.state.asyncapi_text = orjson.dumps(
        asyncapi_document(gateway.settings.topics, gateway.settings.partitions)
    )
    return app


class Observed:
    """Counts and times HTTP requests, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()

        async def observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope["method"], message["status"], time.perf_counter() - started)
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        await self.app(scope, receive, observed)

    def _count(self, method: str, status: int, seconds: float) -> None:
        self.metrics.requests.labels(method, str(status)).inc()
        self.metrics.seconds.labels(method).observe(seconds)


async def _problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise error
    if tracing.spans is not None:
        tracing.spans.note({"placet.refusal_code": error.code})
    return response(error)


RESOURCE = "resource: see /openapi.json, and for WebSockets, such as /human-bridge, /asyncapi.json"


async def _http_problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request.scope)))
    if (registrys := registry.http_error(request.scope["path"], error.status_code, headers)) is not None:
        return registrys
    if error.status_code == 404:
        return response(not_found(RESOURCE))
    return bare(error.status_code, str(error.detail), headers)


def _methods(scope: Scope) -> set[str]:
    """Return the methods of a resource (RFC 9110, section 10.2.1). Each method has a route of its own.

    Of several resources that an address can name it is the one with the fewest parameters: `/v1/holds/decisions` is
    no hold.
    """
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, Route | APIRoute)]
    matching = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    fewest = min((route.path.count("{") for route in matching), default=0)
    found = {
        method for route in matching if route.path.count("{") == fewest for method in route.methods or ()
    }
    return found | {"HEAD"} if "GET" in found else found


async def _gone(request: Request, error: Exception) -> Response:
    # The client left in the middle of its body, or of what it waited for: this answer has no reader, and neither
    # side made a mistake. Metrics and spans tell it by the status that proxies use for it in their logs.
    return Response(status_code=CLIENT_GONE)

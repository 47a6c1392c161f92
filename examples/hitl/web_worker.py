"""An approval in a web worker: 202 while people have not decided, and the same request again goes on from there.

    PLACET_URL=… PLACET_TOKEN=… uvicorn --app-dir examples/hitl web_worker:app --port 8080
    curl -X POST http://127.0.0.1:8080/releases/7    202 {"waits_for": …, "question": …}, then 200 {"deployed_to": …}

No request waits, and no process keeps anything: any worker answers the next request, also after a crash. A request
that comes after the end is answered with the recorded result.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from placet import (
    AsyncPlacet,
    Denied,
    ExecutionClosed,
    HITLHandler,
    HITLPending,
    OutcomeUnknown,
    StillHeld,
    Unanswered,
    gated,
)


@gated(tool="deploy", timeout_s=0)
async def deploy(release: str, to: str) -> str:
    """Deploy a release: runs once, however often the request comes."""
    print(f"deploying {release} to {to}", flush=True)
    return to


async def release(request: Request) -> JSONResponse:
    """Take a release as far as people have decided."""
    name = request.path_params["name"]
    if not re.fullmatch(r"[\w.-]{1,100}", name, re.ASCII):
        return JSONResponse({"detail": "a release is named by letters, digits and . _ -"}, 404)
    # The id is the release's: the same request continues the same execution.
    execution_id = f"release-{name}"
    placet: AsyncPlacet = request.app.state.placet
    try:
        async with placet.execution(id=execution_id, request=f"Deploy release {name}") as run:
            where = await HITLHandler(run, wait_s=0).request_decision(
                "Where to?", ["staging", "production"], timeout_seconds=86_400
            )
            run.result = {"deployed_to": await deploy(name, where)}
            return JSONResponse(run.result)
    except HITLPending as pending:
        asked = pending.request
        body = {"waits_for": asked.hold_id, "question": asked.question, "options": asked.options}
        return JSONResponse(body, 202)
    except StillHeld as held:
        return JSONResponse({"waits_for": held.call.hold_id}, 202)
    except OutcomeUnknown as unknown:
        # Another request runs it at this moment; or the process of one was lost, and a person must settle the call.
        return JSONResponse({"detail": str(unknown)}, 409)
    except (Denied, Unanswered) as refused:
        return JSONResponse({"detail": str(refused)}, 409)
    except ExecutionClosed:
        ended = await placet.executions.get(execution_id)
        if ended.state == "completed":
            return JSONResponse(ended.result)
        return JSONResponse({"detail": ended.reason or ended.state}, 409)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """One client for all requests."""
    async with AsyncPlacet() as app.state.placet:
        yield


app = Starlette(routes=[Route("/releases/{name}", release, methods=["POST"])], lifespan=lifespan)

"""An MCP server with the tools `human_input` and `get_human_input`: a question to a person, and its answer later.

Over stdio it asks with the token of its process. Over HTTP each request needs a token of its own, which is passed on:
so the server gives nobody more rights than they have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version as installed_version
from socket import socket
from typing import Annotated, Any, Literal, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError
from typing_extensions import TypedDict

from placet import asks
from placet.client import AsyncPlacet
from placet.errors import PlacetError, Refused, Unauthenticated, Unavailable, Unreachable
from placet.ids import InvalidId
from placet.log_lines import LOG_LEVEL, log_to_stderr
from placet.mcp_tokens import CallersTokens

INSTRUCTIONS = (
    "human_input asks a person and returns a task id at once. Fetch the answer with get_human_input. "
    "Do nothing that depends on the answer before it is there."
)
T = TypeVar("T")
# Clients give up after 60 s unless they are told otherwise, and the answer needs time for its way.
WAIT_MAX_S, ANSWER_MAX_S = 50.0, 55.0
# The gateway's limit of a question (docs/hitl/api-reference.md).
PROMPT_MAX_CHARS = 16_384
# What each argument is, for a caller that gave something else.
ARGUMENTS: Mapping[str, str] = {
    "prompt": f"a text of 1 to {PROMPT_MAX_CHARS:,} characters",
    "task_id": "the text that human_input returned as task_id",
    "wait_seconds": f"seconds from 0 to {WAIT_MAX_S:g}",
}
# The gateway is tried for so long before a client is answered, which waits for it.
START_S = 5.0
# Of clients over HTTP: while more are open, each request gets 503, whoever makes it.
CONNECTIONS_MAX = 1_000
NOBODY = "none"
_log = logging.getLogger(__name__)
_token: ContextVar[str] = ContextVar("placet_mcp_token")


class Started(TypedDict):
    """A question was asked."""

    status: Literal["waiting_for_human"]
    task_id: str


class Answer(TypedDict):
    """The state of a question; `response` is the answer, or an expired one's default, `feedback` why it is none."""

    status: Literal["answered", "waiting_for_human", "rejected", "expired", "cancelled"]
    response: Any
    feedback: str


class _Server(MCPServer[Any]):
    """Refuses arguments that a tool does not have, which the SDK would ignore, and says what the others must be."""

    # The client by which it asks, to try the gateway before it serves.
    gateway: AsyncPlacet

    async def run_stdio_async(self) -> None:
        """Serve over stdio.

        Raises:
            Unauthenticated: the gateway does not accept the token of this process.
        """
        await check_gateway(self.gateway)
        await super().run_stdio_async()

    async def run_streamable_http_async(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        on_ready: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> None:
        """Serve HTTP, with the log lines of this process: the SDK lets uvicorn write its own."""
        import uvicorn

        spare = _token.set(NOBODY)
        try:
            await check_gateway(self.gateway)
        except Unauthenticated:
            # It answers: the tokens come with the requests.
            _log.debug("the gateway is there")
        finally:
            _token.reset(spare)
        app = self.streamable_http_app(host=host, **options)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            log_level=LOG_LEVEL.lower(),
            limit_concurrency=CONNECTIONS_MAX + 1,
            # Otherwise a request that is sent before the answer to another one begins with that one's token.
            reset_contextvars=True,
        )

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket] | None = None) -> None:
                await super().startup(sockets)
                if self.started:
                    on_ready()

        await Server(config).serve()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: an argument is unknown, missing or invalid, or the tool refuses.
        """
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        unknown = arguments.keys() - known.get(name, arguments).keys()
        if unknown:
            raise ToolError(f"invalid: {min(unknown)}: {name} has no such argument; remove it")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            wrong = error.__cause__
            if isinstance(error, UnexpectedToolError) or not isinstance(wrong, ValidationError):
                raise
            argument = str(wrong.errors()[0]["loc"][0])
            raise ToolError(_refused(argument, is_missing=argument not in arguments)) from None


async def check_gateway(client: AsyncPlacet) -> None:
    """Read something from the gateway, so that a wrong token or address is told at the start; not for long.

    A gateway that is not there is only told of: it can come later.

    Raises:
        Unauthenticated: it does not accept the token.
    """
    try:
        async with asyncio.timeout(START_S):
            await client.channel.ask(asks.list_executions(None, None, None, 1))
    except (TimeoutError, Unreachable, Unavailable) as error:
        why = str(error) or f"no answer within {START_S:g} s"
        _log.warning("no gateway at %s yet, questions are tried all the same: %s", client.url, why)
    except Unauthenticated:
        raise
    except Refused as refused:
        # Such as a role that does not list executions: each question is told whether it may be asked.
        _log.debug("the gateway answers: %s", refused)


def _refused(argument: str, *, is_missing: bool) -> str:
    what = ARGUMENTS[argument]
    return f"invalid: {argument}: {'it is missing; give' if is_missing else 'it must be'} {what}"


def _strict(tool: Tool) -> Tool:
    """The tool, with a schema that permits no other arguments."""
    return tool.model_copy(update={"parameters": {**tool.parameters, "additionalProperties": False}})


def server_of(client: AsyncPlacet, *, is_http: bool = False) -> _Server:
    """The server; the client must be open while it serves.

    Args:
        client: over HTTP one with `token=token_of_request` and `transport="rest"`.
        is_http: each request must have a token.
    """
    tokens = CallersTokens() if is_http else None

    async def human_input(
        prompt: Annotated[
            str,
            Field(
                min_length=1,
                max_length=PROMPT_MAX_CHARS,
                description="The question, as a person is shown it.",
            ),
        ],
        context: Context[Any, Any],
    ) -> Started:
        """Ask a person a question. Returns a task id at once; fetch the answer with get_human_input."""
        async with _as_caller(context, tokens):
            answer = await client.channel.ask(asks.run_human_input(prompt))
        task_id: str = answer["result"]["structValue"]["fields"]["task_id"]["stringValue"]
        return {"status": "waiting_for_human", "task_id": task_id}

    async def get_human_input(
        task_id: Annotated[str, Field(description="What human_input returned.")],
        context: Context[Any, Any],
        wait_seconds: Annotated[
            float,
            Field(ge=0, le=WAIT_MAX_S, description=f"How long to wait for it, at most {WAIT_MAX_S:g}."),
        ] = 0.0,
    ) -> Answer:
        """Fetch the answer to a question that human_input asked: waiting_for_human, or how it ended."""
        async with _as_caller(context, tokens):
            answer = await _in_time(client.channel.ask(asks.get_human_input(task_id, wait_seconds)))
        return {
            "status": answer.get("status", "answered"),
            "response": answer.get("response"),
            "feedback": answer.get("feedback") or "",
        }

    # Before the SDK does: what it logs of a request, whose sender nobody knows, comes to a terminal.
    log_to_stderr()
    asks_person = ToolAnnotations(title="Ask a person", read_only_hint=False, open_world_hint=True)
    fetches = ToolAnnotations(title="Fetch a person's answer", read_only_hint=True)
    server = _Server(
        "placet",
        instructions=INSTRUCTIONS,
        version=installed_version("placet"),
        tools=[
            _strict(Tool.from_function(human_input, annotations=asks_person)),
            _strict(Tool.from_function(get_human_input, annotations=fetches)),
        ],
        log_level=LOG_LEVEL,
    )
    server.gateway = client
    return server


async def _in_time(asking: Awaitable[T]) -> T:
    """An answer before the MCP client gives up: a wait that was cut off is waited for anew.

    Raises:
        Unreachable: there was none.
    """
    try:
        async with asyncio.timeout(ANSWER_MAX_S):
            return await asking
    except TimeoutError as error:
        raise Unreachable(
            f"the gateway has not answered within {ANSWER_MAX_S:g} s: call get_human_input again"
        ) from error


def token_of_request() -> str:
    """The token of the HTTP request that is being served."""
    return _token.get()


@asynccontextmanager
async def _as_caller(context: Context[Any, Any], tokens: CallersTokens | None) -> AsyncIterator[None]:
    """Within this context the client has the caller's token, and its errors are those of the tool."""
    try:
        if tokens is None:
            yield
            return
        token = _bearer_token(context)
        with tokens.passing(token):
            _token.set(token)
            yield
    except (PlacetError, InvalidId) as error:
        raise ToolError(str(error)) from error


def _bearer_token(context: Context[Any, Any]) -> str:
    headers = context.headers or {}
    # A proxy could use one of two, and the gateway the other.
    if sum(name.lower() == "authorization" for name, _ in headers.items()) > 1:
        raise ToolError("malformed: the header Authorization is given twice: give it once")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise ToolError("unauthenticated: send a token of Placet in the header Authorization: Bearer …")
    return token

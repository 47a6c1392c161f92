"""`placet mcp`: the tool `human_input` for MCP clients."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Annotated, Any

import typer

from placet.cli import safe
from placet.cli.extras import NotInstalled
from placet.cli.session import Settings
from placet.cli.telling import tell
from placet.cli.token_roles import AGENT, own_roles
from placet.turn_errors import leaves

LOOPBACK = "127.0.0.1"
HttpPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65_535,
        help="Serve streamable HTTP at http://HOST:PORT/mcp; each call of a tool brings its own token. "
        "[default: stdio, with the token of this process]",
    ),
]
HttpHost = Annotated[str, typer.Option(help="The address on which HTTP is served.")]


def serve(context: typer.Context, http_port: HttpPort = None, http_host: HttpHost = LOOPBACK) -> None:
    """Serve the tool human_input to an MCP client, over stdio or HTTP."""
    try:
        from placet import mcp_server
    except ImportError as error:
        raise NotInstalled("MCP", "mcp", error) from error
    settings = context.find_object(Settings) or Settings()
    if http_port is not None:
        _check_free(http_host, http_port)
    else:
        _warn_of_roles(own_roles(context))
    try:
        asyncio.run(_serve(mcp_server, settings, http_host, http_port))
    except Exception as error:
        if http_port is not None or not all(isinstance(leaf, BrokenPipeError) for leaf in leaves(error)):
            raise
        # The client has ended while it waited for an answer.
        raise BrokenPipeError from None


def _warn_of_roles(roles: frozenset[str] | None) -> None:
    """Tell on standard error of a token that cannot ask a person as an agent; the output belongs to the client."""
    if roles is None or AGENT in roles:
        return
    named = safe.escaped(", ".join(sorted(roles)))
    print(
        f"warning: the token (--token, PLACET_TOKEN or .placet/) has the roles {named} and not the role {AGENT}, in "
        f"whose name human_input asks: give an agent's token (placet token issue --subject NAME --role {AGENT} "
        f"--agent NAME).",
        file=sys.stderr,
    )


def _check_free(host: str, port: int) -> None:
    """Refuse an address on which the server could not listen.

    Raises:
        typer.BadParameter: it is in use, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        detail = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise typer.BadParameter(detail, param_hint="--http-port") from error


async def _serve(mcp_server: Any, settings: Settings, host: str, port: int | None) -> None:
    from placet.client import AsyncPlacet

    if port is None:
        async with AsyncPlacet(settings.url, token=settings.token, project=settings.project) as client:
            await mcp_server.server_of(client).run_stdio_async()
        return
    token = mcp_server.token_of_request
    async with AsyncPlacet(settings.url, token=token, project=settings.project, transport="rest") as client:
        server = mcp_server.server_of(client, is_http=True)
        shown = f"[{host}]" if ":" in host else host
        await server.run_streamable_http_async(
            host=host,
            port=port,
            stateless_http=True,
            on_ready=lambda: tell(f"MCP is served at http://{shown}:{port}/mcp; Ctrl-C stops it"),
        )

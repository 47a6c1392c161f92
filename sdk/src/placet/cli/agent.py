"""`placet agent run` and `openai`: workers that answer the messages to agents."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from placet.cli.extras import NotInstalled
from placet.cli.plugins import new_group
from placet.cli.session import Settings, console, read_text
from placet.log_lines import log_to_stderr

if TYPE_CHECKING:
    from placet.client import AsyncPlacet
    from placet.sync import Placet

KEY_VARIABLE = "OPENAI_API_KEY"
# What OpenAI's client reads if it is given no address.
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
# An endpoint of one's own needs no key, but its client does.
NO_KEY = "none"

app = new_group("agent", help="Workers that answer the messages to agents.", no_args_is_help=True)
Concurrency = Annotated[int, typer.Option(min=1, max=1_000, help="How many turns run at once.")]
Wait = Annotated[
    float,
    typer.Option(
        min=0,
        help="Seconds for which a turn waits for a person, in one of the places of --concurrency, before it is given "
        "back until there is an answer.",
    ),
]
# A person who is there answers within this time; a turn that waits longer would keep its place from others, and each
# renewal of its lease is an event that stays in the log.
WAIT_S = 60.0


@app.callback()
def agent() -> None:
    """Workers that answer the messages to agents."""


@app.command()
def run(
    context: typer.Context,
    modules: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE…", help="Such as billing.agents; the current directory is searched too."
        ),
    ],
    concurrency: Concurrency = 16,
    wait: Wait = WAIT_S,
) -> None:
    """Answer the messages to the agents whose functions Python modules register with @placet.agent."""
    from placet.agents import REGISTERED

    for module in modules:
        _imported(module)
    if not REGISTERED:
        raise typer.BadParameter(
            'no function there is decorated with @placet.agent("name")', param_hint="MODULE"
        )
    # After the modules: if they write the log themselves, it is left to them.
    log_to_stderr()
    with _client(context) as placet, _stopped_by_sigterm():
        _told(", ".join(sorted(REGISTERED)))
        placet.serve(concurrency=concurrency, wait_s=wait)


@app.command("openai")
def on_openai(
    context: typer.Context,
    name: Annotated[str, typer.Option("--agent", help="The agent's name.")],
    model: Annotated[str, typer.Option(help="The model's name at the endpoint.")],
    base_url: Annotated[
        str | None, typer.Option(help="The endpoint, such as http://127.0.0.1:11434/v1. [default: OpenAI's]")
    ] = None,
    key_variable: Annotated[
        str | None,
        typer.Option(
            "--key-variable",
            help=f"The environment variable with the endpoint's key. [default: {KEY_VARIABLE}, if it is set]",
        ),
    ] = None,
    system: Annotated[Path | None, typer.Option(help="A file with the instructions for the model.")] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(help="A Python module whose gated functions the model can call; may be repeated."),
    ] = None,
    concurrency: Concurrency = 16,
    wait: Wait = WAIT_S,
) -> None:
    """Answer the messages to an agent by a model at an OpenAI-compatible endpoint."""
    try:
        from openai import AsyncOpenAI

        from placet.openai_agent import OpenAIAgent
    except ImportError as error:
        raise NotInstalled("this agent", "openai", error) from error
    if base_url is not None:
        _check_address(base_url)
    key = _key(key_variable, is_own=base_url is not None or bool(os.environ.get(ADDRESS_VARIABLE)))
    functions = [function for module in tools or () for function in _gated(module)]
    instructions = "" if system is None else read_text(system, "--system")
    log_to_stderr()

    async def serve() -> None:
        async with AsyncOpenAI(base_url=base_url, api_key=key) as endpoint, _async_client(context) as placet:
            _told(name)
            made = OpenAIAgent(model, client=endpoint, system=instructions, tools=functions)
            await placet.serve({name: made.answer}, concurrency=concurrency, wait_s=wait)

    with _stopped_by_sigterm():
        asyncio.run(serve())


def _check_address(url: str) -> None:
    """Refuse an endpoint's address that no request could be sent to, before the first message fails by it.

    Raises:
        typer.BadParameter: it has no scheme, or no host.
    """
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise typer.BadParameter(
            f"{url} is no address of an endpoint: give it as http://HOST:PORT/v1 or https://HOST/v1",
            param_hint="--base-url",
        )


def _key(variable: str | None, *, is_own: bool) -> str:
    """The endpoint's key; a placeholder for an endpoint of one's own if the usual variable is not set.

    Raises:
        typer.BadParameter: the variable that was named is not set, or OpenAI's endpoint is used without a key.
    """
    key = os.environ.get(variable or KEY_VARIABLE)
    if variable is not None and not key:
        raise typer.BadParameter(
            f"{variable} is not set: leave the option out if the endpoint needs no key",
            param_hint="--key-variable",
        )
    if not key and not is_own:
        raise typer.BadParameter(
            f"OpenAI's endpoint needs a key: set {KEY_VARIABLE}, or give the address of another endpoint",
            param_hint="--base-url",
        )
    return key or NO_KEY


def _told(names: str) -> None:
    console(stderr=True).print(
        f"waits for messages to {names}; Ctrl-C stops, and gives back what is under way"
    )


def _client(context: typer.Context) -> Placet:
    from placet.sync import Placet

    settings = context.find_object(Settings) or Settings()
    return Placet(settings.url, token=settings.token, project=settings.project)


def _async_client(context: typer.Context) -> AsyncPlacet:
    from placet.client import AsyncPlacet

    settings = context.find_object(Settings) or Settings()
    return AsyncPlacet(settings.url, token=settings.token, project=settings.project)


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Within this context SIGTERM interrupts like Ctrl-C, so that turns are given back."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _name_in(path: str) -> str:
    """The name of the module that a file's path, or an application's in the form of uvicorn, means."""
    file = re.sub(r":[A-Za-z_][\w.]*$", "", path).removesuffix(".py")
    found = Path(file.replace("\\", "/"))
    if found.is_absolute() or ".." in found.parts:
        return f"{found.name}, in the directory of the file"
    return ".".join(found.parts) or "it, such as billing.agents"


def _imported(module: str, param_hint: str = "MODULE") -> dict[str, Any]:
    """The names in a module.

    Raises:
        typer.BadParameter: it is a path, or cannot be imported.
    """
    if any(mark in module for mark in "/\\:") or module.endswith(".py"):
        raise typer.BadParameter(
            f"{module} is a path: give the module's name: {_name_in(module)}", param_hint=param_hint
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return vars(import_module(module))
    except Exception as error:
        why = f"{type(error).__name__}: {error}{_place_of(error)}"
        raise typer.BadParameter(f"{module} cannot be imported: {why}", param_hint=param_hint) from error


def _place_of(error: Exception) -> str:
    """Where a module raised an error; empty if nothing of the module ran, as in one that is not there."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    # The first two are this module's and that of importlib.
    within = frames[2:]
    if not within or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(within[-1].filename).name}, line {within[-1].lineno})"


def _gated(module: str) -> Sequence[Callable[..., Any]]:
    from placet.registering import DECLARED

    found = {id(one): one for one in _imported(module, "--tools").values() if hasattr(one, DECLARED)}
    if not found:
        raise typer.BadParameter(f"no function in {module} is gated", param_hint="--tools")
    return list(found.values())

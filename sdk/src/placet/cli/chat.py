"""`placet chat`: a conversation with an agent at a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli import safe
from placet.cli.session import JsonFlag, connect, console, is_interactive, print_json
from placet.errors import PlacetError, Refused
from placet.ids import new_id

if TYPE_CHECKING:
    from placet.chat_models import ChatEvent
    from placet.sync import Placet


class TurnFailed(PlacetError):
    """The agent did not answer the message."""


def chat(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Argument(help="The message. [default: asked for at the terminal, one after another]"),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="The agent of a new conversation.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Go on with this conversation.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send an agent messages and follow its answers; its questions are asked here."""
    if message is None and not is_interactive():
        raise typer.BadParameter("there is no terminal to ask at: give the message", param_hint="MESSAGE")
    if conversation is None and agent is None:
        raise typer.BadParameter("name the agent, or a conversation", param_hint="--agent")
    conversation_id = conversation or new_id()
    with connect(context) as placet:
        if conversation is None and not as_json:
            console(stderr=True).print(f"conversation {conversation_id}")
        while True:
            text = message if message is not None else typer.prompt("you", err=True)
            _turn(placet, text, conversation_id, agent, as_json)
            if message is not None:
                return


def _turn(placet: Placet, text: str, conversation_id: str, agent: str | None, as_json: bool) -> None:
    with closing(placet.conversations.chat(text, conversation_id=conversation_id, agent=agent)) as events:
        for event in events:
            if as_json:
                print_json({"event": event.type, "id": event.cursor, "data": event.body})
            else:
                _show(event)
            if event.type == "hitl_requested" and not as_json and is_interactive():
                _ask(placet, event.body, conversation_id)
            if event.type == "error":
                raise TurnFailed(str(event.body.get("detail") or event.body.get("code")))


def _show(event: ChatEvent) -> None:
    body = event.body
    match event.type:
        case "message":
            console().print(safe.text(str(body.get("text")), lines=True))
        case "tool_call" if body.get("status") in ("held", "succeeded", "failed", "denied"):
            console(stderr=True).print(safe.text(f"[{body.get('tool')}: {body.get('status')}]"))
        case "hitl_requested":
            console(stderr=True).print(safe.text(f"[asks: {body.get('question') or body.get('tool')}]"))
            console(stderr=True).print(f"[placet show {body.get('hold_id')}]")


def _ask(placet: Placet, hold: Mapping[str, Any], conversation_id: str) -> None:
    """Ask the person at this terminal, if it is a question that can be answered here; else others must decide."""
    if not hold.get("request_id") or hold.get("kind") == "env_var":
        return
    options = [one.get("id") if isinstance(one, Mapping) else one for one in hold.get("options") or ()]
    if options:
        console(stderr=True).print(safe.text("options: " + ", ".join(map(json.dumps, options))))
    said = typer.prompt("answer", err=True)
    try:
        placet.conversations.respond(
            str(hold["request_id"]), _meant(said, options, hold), conversation_id=conversation_id
        )
    except Refused as refused:
        console(stderr=True).print(safe.text(f"[not accepted: {refused}]"))


def _meant(said: str, options: list[Any], hold: Mapping[str, Any]) -> Any:
    """An answer as a value: an option that is no text, yes or no to a permission, or the text itself."""
    if hold.get("kind") == "permission":
        return said.strip().lower() in ("y", "yes", "true")
    return next(
        (one for one in options if not isinstance(one, str) and json.dumps(one) == said.strip()), said
    )

"""`placet chat`: a conversation with an agent at a terminal."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli import safe
from placet.cli.asking import ask_here, tell
from placet.cli.session import JsonFlag, connect, console, is_interactive, print_json
from placet.errors import NotFound, PlacetError
from placet.ids import new_id, segment
from placet.models import Hold
from placet.parsing import parse

if TYPE_CHECKING:
    from placet.chat_models import ChatEvent
    from placet.sync import Placet

# A worker that is there takes a message on in a fraction of this.
UNCLAIMED_AFTER_S = 5.0
# For the request that is under way at the end.
LOOK_ENDS_WITHIN_S = 1.0


class TurnFailed(PlacetError):
    """The agent did not answer the message."""


def chat(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Argument(help="The message. [default: asked for at the terminal, one after another]"),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="The agent of a new conversation.")] = None,
    conversation: Annotated[
        str | None,
        typer.Option(help="Go on with this conversation; with --agent it is begun if it does not exist."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send an agent messages and follow its answers; its questions are asked here."""
    if message is None and not is_interactive():
        raise typer.BadParameter("there is no terminal to ask at: give the message", param_hint="MESSAGE")
    if conversation is None and agent is None:
        raise typer.BadParameter("name the agent, or a conversation", param_hint="--agent")
    with connect(context) as placet:
        if conversation is not None and agent is None:
            _check_exists(placet, conversation)
        talk = _Talk(placet, conversation or new_id(), agent, as_json)
        if conversation is None and not as_json:
            console(stderr=True).print(f"conversation {talk.conversation_id}")
        if conversation is not None and is_interactive() and not as_json:
            talk.go_on()
        while True:
            talk.turn(message if message is not None else typer.prompt("you", err=True))
            if message is not None:
                return


def _check_exists(placet: Placet, conversation_id: str) -> None:
    """Refuse to go on with a conversation that does not exist, which the gateway would open for an agent's token.

    Raises:
        NotFound: it does not exist.
    """
    try:
        placet.executions.get(conversation_id)
    except NotFound as error:
        detail = f"no conversation {conversation_id}; to begin one: placet chat --agent NAME"
        raise NotFound(error.code, error.status, detail) from error


@dataclass
class _Talk:
    """One conversation at this terminal."""

    placet: Placet
    conversation_id: str
    agent: str | None
    as_json: bool
    # The questions that were asked here: each is asked until it is answered, or cannot be.
    _asked: set[str] = field(default_factory=set)

    def turn(self, text: str) -> None:
        """Send a message, and follow what the agent does to the end of its answer.

        Raises:
            TurnFailed: it did not answer.
        """
        message_id = new_id()
        events = self.placet.conversations.chat(
            text, conversation_id=self.conversation_id, agent=self.agent, message_id=message_id
        )
        with self._telling_if_unclaimed(message_id):
            self._follow(events)

    def go_on(self) -> None:
        """Follow the turns that are under way: a new message waits for them, and they may wait for an answer."""
        try:
            turns = self.placet.conversations.under_way(self.conversation_id)
        except NotFound:
            # The first message opens it.
            return
        for turn_id in turns:
            try:
                self._follow(self.placet.conversations.follow(self.conversation_id, message_id=turn_id))
            except TurnFailed as failed:
                tell(str(failed))

    def _follow(self, stream: Generator[ChatEvent, None, None]) -> None:
        with closing(stream) as events:
            for event in events:
                self._take(event)

    def _take(self, event: ChatEvent) -> None:
        if self.as_json:
            print_json({"event": event.type, "id": event.cursor, "data": event.body})
        else:
            _show(event)
        if event.type == "hitl_requested" and not self.as_json and is_interactive():
            self._ask(parse(Hold, event.body))
        # After `unavailable` the stream goes on.
        if event.type == "error" and event.body.get("code") != "unavailable":
            raise TurnFailed(str(event.body.get("detail") or event.body.get("code")))

    def _ask(self, hold: Hold) -> None:
        """Ask the question of a hold. A call is decided elsewhere, where all that it would do is shown."""
        if not hold.raw.get("request_id") or hold.hold_id in self._asked:
            return
        self._asked.add(hold.hold_id)
        # A turn is shown from its beginning: it may have been answered before.
        if self.placet.holds.get(hold.hold_id).status == "open":
            ask_here(self.placet, hold)

    @contextmanager
    def _telling_if_unclaimed(self, message_id: str) -> Iterator[None]:
        """Within this context a line says, once, that no worker has taken the message on for some seconds."""
        timer = threading.Timer(UNCLAIMED_AFTER_S, self._tell_if_unclaimed, (message_id,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join(LOOK_ENDS_WITHIN_S)

    def _tell_if_unclaimed(self, message_id: str) -> None:
        # The stream tells of an outage, and the client may be closed meanwhile.
        with suppress(PlacetError, RuntimeError, CancelledError):
            turn = self.placet.fetch(
                f"/executions/{segment(self.conversation_id)}/turns/{segment(message_id)}"
            )
            if turn["status"] == "waiting" and not turn["claims"]:
                tell(f"no worker of {turn['agent']} has taken the message on yet (placet agent run MODULE)")


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

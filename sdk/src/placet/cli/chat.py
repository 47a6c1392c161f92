"""`placet chat`: a conversation with an agent at a terminal."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from placet.cli.asking import ask_here
from placet.cli.chat_events import show_event
from placet.cli.choices import agent_names, execution_ids
from placet.cli.describing import answers as offers
from placet.cli.earlier_turns import Earlier
from placet.cli.feed import Feed
from placet.cli.prompting import InputEnded, ask
from placet.cli.session import connect, console, is_interactive, print_json
from placet.cli.telling import list_one, tell
from placet.cli.unclaimed import telling_if_unclaimed
from placet.errors import ExecutionClosed, NotAuthorised, NotFound, PlacetError, Unauthenticated
from placet.ids import new_id
from placet.models import Hold
from placet.parsing import parse

if TYPE_CHECKING:
    from collections.abc import Generator

    from placet.chat_models import ChatEvent
    from placet.sync import Placet

# After these no other message is accepted either.
_LAST = (ExecutionClosed, NotAuthorised, NotFound, Unauthenticated)


class TurnFailed(PlacetError):
    """The agent did not answer the message."""


def chat(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Argument(
            help="The message. [default: asked for at the terminal, one after another, until Ctrl-D]"
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="The agent of a new conversation.", autocompletion=agent_names)
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="Go on with this conversation; with --agent it is begun if it does not exist.",
            autocompletion=execution_ids,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON; questions are not asked.")
    ] = False,
) -> None:
    """Send an agent messages and follow its answers; at a terminal its questions are asked here.

    Ctrl-D at `you:` leaves, and at a question it leaves that open; Ctrl-C leaves at any time.
    """
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
            talk.go_on(before=message)
        if message is not None:
            talk.turn(message)
        else:
            talk.converse()


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
    _answered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._earlier = Earlier(self.placet, self.conversation_id)

    def converse(self) -> None:
        """Ask for one message after another, until the input ends.

        Raises:
            PlacetError: no other message would be accepted either.
        """
        tell("Ctrl-D here leaves; Ctrl-C at any time")
        while True:
            try:
                text = ask("you")
            except InputEnded:
                return
            try:
                self.turn(text, shows_others=not self.as_json)
            except _LAST:
                raise
            except PlacetError as error:
                tell(f"{error}")

    def turn(self, text: str, *, shows_others: bool = False) -> None:
        """Send a message, and follow what the agent does to the end of its answer.

        Args:
            text: the message.
            shows_others: before the answer, show what others have said since, and follow the turns before it.

        Raises:
            TurnFailed: it did not answer.
        """
        message_id = new_id()
        sent = self.placet.conversations.chat(
            text, conversation_id=self.conversation_id, agent=self.agent, message_id=message_id
        )
        with closing(Feed(sent)) as events:
            if shows_others:
                for turn_id in self._earlier.told(before=message_id):
                    self._follow(turn_id)
            with telling_if_unclaimed(self.placet, self.conversation_id, message_id):
                self._take_all(message_id, events)

    def go_on(self, before: str | None) -> None:
        """Follow the turns that are under way: a new message waits for them, and they may wait for an answer.

        Args:
            before: the message that is sent afterwards; None if there is none yet.
        """
        try:
            for turn_id in self._earlier.begun():
                self._follow(turn_id)
        except KeyboardInterrupt:
            if before is not None:
                tell("the message was not sent: an earlier one waits")
            raise

    def _follow(self, turn_id: str) -> None:
        """Follow the turn of an earlier message, from its beginning."""
        stream: Generator[ChatEvent, None, None] = self.placet.conversations.follow(
            self.conversation_id, message_id=turn_id
        )
        try:
            with closing(Feed(stream)) as events:
                self._take_all(turn_id, events)
        except TurnFailed as failed:
            tell(f"{failed}")

    def _take_all(self, turn_id: str, events: Feed) -> None:
        for event in events:
            # After `unavailable` the stream goes on.
            is_error = event.type == "error" and event.body.get("code") != "unavailable"
            if is_error or event.type == "complete":
                self._earlier.over(turn_id)
            self._take(event, events)
            if is_error:
                raise TurnFailed(str(event.body.get("detail") or event.body.get("code")))

    def _take(self, event: ChatEvent, events: Feed) -> None:
        if self.as_json:
            print_json({"event": event.type, "id": event.cursor, "data": event.body})
            return
        hold_id = str(event.body.get("hold_id"))
        if event.type != "hitl_resolved" or hold_id not in self._answered:
            show_event(event)
        # A call is decided elsewhere, where all that it would do is shown.
        if event.type != "hitl_requested" or not event.body.get("request_id"):
            return
        if is_interactive():
            self._ask(parse(Hold, event.body), events)
        else:
            for line in offers(parse(Hold, event.body)):
                list_one(line)
            tell(f"there is no terminal to ask at; to answer it: placet answer {hold_id}")

    def _may_decide(self, hold: Hold) -> bool:
        # Whoever writes in a conversation cannot give its agent a permission. A question of another kind is refused
        # to few, who are told so.
        if hold.kind != "permission":
            return True
        found = self.placet.holds.list(decidable="me", prefix=hold.hold_id)
        return any(one.hold_id == hold.hold_id for one in found.items)

    def _ask(self, hold: Hold, events: Feed) -> None:
        """Ask the question of a hold."""
        if hold.hold_id in self._asked:
            return
        # A turn is shown from its beginning: it may have been answered before.
        current = self.placet.holds.get(hold.hold_id)
        is_for_another = current.status == "open" and not self._may_decide(current)
        self._asked.add(hold.hold_id)
        if current.status != "open":
            return
        if is_for_another:
            tell(f"another person decides this: placet answer {hold.hold_id}")
            return
        closing_it = events.closing(hold.hold_id)
        if ask_here(self.placet, current, closing_it, to_leave="Ctrl-C leaves the chat") is not None:
            self._answered.add(hold.hold_id)

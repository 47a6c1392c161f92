"""The interface of a target to its sender: it accepts a message or reports that it did not."""

from typing import Protocol

from services.processors.notifications.render import RenderedMessage


class Undelivered(Exception):
    """A try failed. `str()` gives the reason, without secrets.

    Attributes:
        is_final: Trying again would not help.
        retry_after_s: When the other side asks for the next try; None if it did not say.
        was_tried: False if the other side was not contacted; that does not count as a try.
    """

    def __init__(
        self,
        why: str,
        *,
        is_final: bool = False,
        retry_after_s: float | None = None,
        was_tried: bool = True,
    ) -> None:
        super().__init__(why)
        self.is_final = is_final
        self.retry_after_s = retry_after_s
        self.was_tried = was_tried


class Channel(Protocol):
    """A way to send messages to one target."""

    @property
    def kind(self) -> str:
        """Its kind, in one word."""

    async def send(self, outgoing: RenderedMessage) -> None:
        """Try once.

        Raises:
            Undelivered: it was not accepted, or that is unknown.
        """

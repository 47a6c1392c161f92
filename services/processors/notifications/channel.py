"""What a target of messages is to its sender: it takes one, or says that it did not."""

from typing import Protocol

from services.processors.notifications.render import RenderedMessage


class Undelivered(Exception):
    """A try failed. `str()` says why, and nothing that is a secret.

    Attributes:
        is_final: Trying again would not help.
        retry_after_s: When the other side wants to be asked again; None where it did not say.
        was_tried: Nobody was asked where it is false; that counts as no try.
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
    """A way to somebody."""

    @property
    def kind(self) -> str:
        """Its sort, in a word."""

    async def send(self, outgoing: RenderedMessage) -> None:
        """Try once.

        Raises:
            Undelivered: it was not taken, or nobody knows.
        """

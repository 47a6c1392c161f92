"""Which commands were answered, and with which body each: the dedupe memory of an aggregate.

The first body that a command id came with is answered once. The same body again is a repeat and leaves no event.
Another body under the same id is refused, and each such body once.
"""

from typing import Literal

from msgspec import Struct

from schemas.events.executions import is_reuse_refusal
from schemas.record import Event, EventMeta

# What a command is by its id and its body.
Seen = Literal["new", "repeated", "reused"]


class Answered(Struct):
    """Command ids, oldest first.

    Attributes:
        digests: the digest of the first body of each command id.
        reused: the other bodies that were refused, each as its command id and its digest.
    """

    digests: dict[str, str] = {}
    reused: dict[tuple[str, str], None] = {}

    def seen(self, command_id: str, digest: str) -> Seen:
        """What a command is: new, a repeat of an answered one, or another body under a known id."""
        first = self.digests.get(command_id)
        if first is None:
            return "new"
        # An event of a very old log names no digest: nothing can be compared there.
        if first in ("", digest) or (command_id, digest) in self.reused:
            return "repeated"
        return "reused"

    def note(self, event: Event) -> None:
        """Remember the command that an event answers."""
        if is_reuse_refusal(event.body):
            self.reused[event.meta.command_id, event.meta.command_digest] = None
        else:
            self.note_unread(event.meta)

    def note_unread(self, meta: EventMeta) -> None:
        """Remember the command that a record answers whose body cannot be read."""
        self.digests.setdefault(meta.command_id, meta.command_digest)

    def trim(self, size_max: int) -> None:
        """Forget the oldest commands beyond a number."""
        while len(self.digests) > size_max:
            del self.digests[next(iter(self.digests))]
        while len(self.reused) > size_max:
            del self.reused[next(iter(self.reused))]

"""The commands that were answered, each with the digests of its bodies: the dedupe memory of an aggregate.

The first body of a command id is answered once. The same body again is a repeat and leaves no event. Each other body
under the same id is refused once. All this holds for each key: the same id on another key is another command.
"""

from typing import Literal

from msgspec import Struct

from schemas.events.executions import is_reuse_refusal
from schemas.record import Event, EventMeta

# The status of a command, by its id and its body.
Seen = Literal["new", "repeated", "reused"]
# Tenant and subject of the sender; the subject is empty if the answer does not name one.
Asker = tuple[str, str]
# Key, command id and digest of the body.
Name = tuple[bytes, str, str]


class Answered(Struct):
    """Command ids of one key, oldest first.

    Attributes:
        digests: the digest of the first body of each command id.
        reused: the other bodies that were refused, each as its command id and its digest.
    """

    digests: dict[str, str] = {}
    reused: dict[tuple[str, str], None] = {}

    def seen(self, command_id: str, digest: str) -> Seen:
        """The status of a command: new, a repeat of an answered one, or another body under a known id."""
        first = self.digests.get(command_id)
        if first is None:
            return "new"
        # Events of very old logs have no digest: then bodies cannot be compared.
        if first in ("", digest) or (command_id, digest) in self.reused:
            return "repeated"
        return "reused"

    def note(self, event: Event) -> None:
        """Store the command that an event answers."""
        if is_reuse_refusal(event.body):
            self.reused[event.meta.command_id, event.meta.command_digest] = None
        else:
            self.note_unread(event.meta)

    def note_unread(self, meta: EventMeta) -> None:
        """Store the command that a record with an unreadable body answers."""
        self.digests.setdefault(meta.command_id, meta.command_digest)

    def trim(self, size_max: int) -> None:
        """Drop the oldest commands beyond a number."""
        while len(self.digests) > size_max:
            del self.digests[next(iter(self.digests))]
        while len(self.reused) > size_max:
            del self.reused[next(iter(self.reused))]

    def forget(self, command_id: str, digest: str) -> None:
        """Drop one body, whether it was the first under its id or another."""
        self.reused.pop((command_id, digest), None)
        if self.digests.get(command_id) == digest:
            del self.digests[command_id]


class NewestAnswered(Struct):
    """Commands of many keys; for each sender the newest are kept, so a busy sender only displaces its own commands.

    Attributes:
        by_key: the commands of each key.
        askers: the same commands by sender, oldest first.
    """

    by_key: dict[bytes, Answered] = {}
    askers: dict[Asker, dict[Name, None]] = {}

    def seen(self, key: bytes, command_id: str, digest: str) -> Seen:
        """As `Answered.seen`, for the commands of a key."""
        answered = self.by_key.get(key)
        return "new" if answered is None else answered.seen(command_id, digest)

    def note(self, event: Event, most: int) -> None:
        """Store the command that an event answers; at most `most` are kept for each sender."""
        self._of(event.key).note(event)
        self._count(event.key, event.meta, getattr(event.body, "by", ""), most)

    def note_unread(self, key: bytes, meta: EventMeta, most: int) -> None:
        """Store the command that a record with an unreadable body answers."""
        self._of(key).note_unread(meta)
        self._count(key, meta, "", most)

    def take(self, key: bytes) -> Answered:
        """Remove and return the commands of a key, which are stored elsewhere from now on."""
        # Their names stay in `askers` until newer ones replace them; then there is nothing left to drop.
        return self.by_key.pop(key, None) or Answered()

    def _of(self, key: bytes) -> Answered:
        return self.by_key.setdefault(key, Answered())

    def _count(self, key: bytes, meta: EventMeta, subject: str, most: int) -> None:
        names = self.askers.setdefault((meta.tenant, subject), {})
        name = key, meta.command_id, meta.command_digest
        names.pop(name, None)
        names[name] = None
        while len(names) > most:
            oldest = next(iter(names))
            del names[oldest]
            self._forget(*oldest)

    def _forget(self, key: bytes, command_id: str, digest: str) -> None:
        answered = self.by_key.get(key)
        if answered is None:
            return
        answered.forget(command_id, digest)
        if not answered.digests and not answered.reused:
            del self.by_key[key]

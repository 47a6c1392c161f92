"""What an agent's past and its run say of a call's values, as a verdict records it (docs/trust.md, "New values")."""

import msgspec

from schemas.canonical import canonical
from schemas.record import UnreadableRecord


class CallHistory(msgspec.Struct, frozen=True):
    """The past of a call's values.

    `parts` are what they add to the risk that trust must outweigh: `novel`, `tainted`. `novel` are the paths of
    arguments with a value that people have not approved for this agent and tool, `tainted` of those whose value came
    out of an untrusted tool's output earlier in the run; `sources` are the newest calls with such an output. `values`
    are digests of the identifying values (path and value), `numbers` each path with its least and its greatest
    number. `is_whole` is false if the call has values that are not looked at: then every value counts as novel and
    as tainted. `is_known` is false while trust is missing: then nobody knows what is new, and nothing is in `parts`.
    `opposed` are the paths of those new values that people were more often against than for. `apart` are the paths of
    the known values and numbers, if people have approved each of them, but not all in one call of the same terms: and
    of a call with new values of all numbers, unless calls with new values there were approved.
    """

    parts: tuple[str, ...] = ()
    novel: tuple[str, ...] = ()
    tainted: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    numbers: tuple[tuple[str, float, float], ...] = ()
    is_whole: bool = True
    is_known: bool = True
    opposed: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    @property
    def apart_only(self) -> tuple[str, ...]:
        """The paths of what is `apart` and not new as well: people have approved it, in other calls."""
        return tuple(path for path in self.apart if path not in self.novel)

    @property
    def is_familiar(self) -> bool:
        """False if a person must look at each such call by itself: for a new or tainted value, or one not looked at.

        While trust is missing nobody knows which values are new; those that are tainted may be.
        """
        return self.is_whole and not self.parts and (self.is_known or not self.tainted)


NO_HISTORY = CallHistory()


def history_to_text(history: CallHistory) -> str | None:
    """A history as canonical JSON; None if nothing is in it."""
    return None if history == NO_HISTORY else canonical(msgspec.to_builtins(history))


def history_from_text(text: str | None) -> CallHistory:
    """A history from its JSON.

    Raises:
        UnreadableRecord: it is not one.
    """
    if text is None:
        return NO_HISTORY
    try:
        return msgspec.json.decode(text, type=CallHistory)
    except msgspec.MsgspecError as error:
        raise UnreadableRecord("malformed", f"not the history of a call: {error}") from error

"""A rebuilt view beside the live one, and what tells one generation of a view from another."""

from collections.abc import Callable
from dataclasses import dataclass

from projections.store.port import ViewStore

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Generation:
    """A new view beside the live one.

    `check` raises `ViewHeld` where the swap would lose what others have made. `swap` puts it in the place of the view
    with the given identity, or raises `ViewReplaced` or, unless it is forced, `ViewHeld`; close the store before.
    `discard` removes it.
    """

    store: ViewStore
    check: Callable[[], None]
    swap: Callable[[Identity, bool], None]
    discard: Callable[[], None]


def made(make: Callable[[], ViewStore], discard: Callable[[], None]) -> ViewStore:
    """The store of a new generation; what there is of it is discarded where it cannot be made."""
    try:
        return make()
    except BaseException:
        discard()
        raise

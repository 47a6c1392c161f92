"""A rebuilt view beside the live one, and the identity of a generation of a view."""

from collections.abc import Callable
from dataclasses import dataclass

from projections.store.port import ViewStore

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Generation:
    """A new view beside the live one.

    `check` raises `ViewHeld` if the swap would lose objects that others have made. `swap` replaces the view with the
    given identity, or raises `ViewReplaced` or, unless it is forced, `ViewHeld`; close the store before. `discard`
    removes the new view.
    """

    store: ViewStore
    check: Callable[[], None]
    swap: Callable[[Identity, bool], None]
    discard: Callable[[], None]


def made(make: Callable[[], ViewStore], discard: Callable[[], None]) -> ViewStore:
    """The store of a new generation; if it cannot be made, its parts are discarded."""
    try:
        return make()
    except BaseException:
        discard()
        raise

"""Why a reader is told to subscribe anew."""

from __future__ import annotations

from enum import StrEnum


class Resync(StrEnum):
    """The reason in `resync_required`.

    After `TOO_SLOW` everything that the reader did not get is still available after the last message that it has.
    """

    TOO_SLOW = "too_slow"
    GONE = "gone"

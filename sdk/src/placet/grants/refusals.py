"""Why a grant is not good for a call."""

from __future__ import annotations

from typing import Literal

from placet.errors import PlacetError

Code = Literal[
    "missing",
    "malformed",
    "malformed_arguments",
    "wrong_type",
    "unknown_key",
    "bad_signature",
    "wrong_tool",
    "not_yet_valid",
    "expired",
    "digest_mismatch",
    "already_consumed",
    "not_released",
    "not_authorised",
    "keys_unavailable",
    "unavailable",
]


class GrantRefused(PlacetError):
    """The call must not run. The text never quotes the grant.

    Attributes:
        code: why, as one word.
        detail: why, as a sentence for a person.
    """

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: Code = code
        self.detail = detail


class GrantKeysUnavailable(GrantRefused):
    """Whether the grant is good cannot be told now: the keys cannot be fetched."""

    acts = "retry"

    def __init__(self, detail: str) -> None:
        super().__init__("keys_unavailable", detail)

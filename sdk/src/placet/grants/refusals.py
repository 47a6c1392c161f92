"""The reasons for which a grant is not valid for a call."""

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
        code: the reason as one word.
        detail: the reason as a sentence for people.
    """

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code: Code = code
        self.detail = detail


class GrantKeysUnavailable(GrantRefused):
    """The grant cannot be verified now, because the keys cannot be fetched."""

    acts = "retry"

    def __init__(self, detail: str) -> None:
        super().__init__("keys_unavailable", detail)

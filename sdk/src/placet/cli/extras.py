"""Commands whose packages are installed with an extra of the distribution."""

from __future__ import annotations

from placet.errors import PlacetError


class NotInstalled(PlacetError):
    """The packages of an extra are missing."""

    def __init__(self, what: str, extra: str, error: ImportError) -> None:
        super().__init__(
            f"{what} needs more packages ({error}): install placet[{extra}] (docs/sdk.md, Installing it)"
        )

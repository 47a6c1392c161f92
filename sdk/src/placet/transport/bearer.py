"""How a request says who asks: its token, and with a token of a whole tenant the project that is meant."""

from __future__ import annotations

import os

from placet.config import checked_header

PROJECT_VARIABLE = "PLACET_PROJECT"


def named_project() -> str:
    """The project to work in, from `PLACET_PROJECT`; empty: the token's own, or the tenant's default.

    Raises:
        SettingRefused: no header can hold it.
    """
    return checked_header(PROJECT_VARIABLE, os.environ.get(PROJECT_VARIABLE, "").strip())


def bearer_headers(token: str) -> dict[str, str]:
    """The headers of a request that is made with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    project = named_project()
    return {**headers, "Placet-Project": project} if project else headers


def authenticate_message(token: str) -> dict[str, str]:
    """The first message on a socket."""
    message = {"type": "authenticate", "token": token}
    project = named_project()
    return {**message, "project": project} if project else message

"""The identity of a request: its token, and with a token of a whole tenant the project to use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from placet.config import checked_header
from placet.transport.port import TokenSource

PROJECT_VARIABLE = "PLACET_PROJECT"


@dataclass(frozen=True)
class Caller:
    """A source of tokens, and the project to work in.

    Attributes:
        token: returns the token of each request.
        project: the project; if empty, that of `PLACET_PROJECT`.
    """

    token: TokenSource = field(repr=False)
    project: str = ""

    def __call__(self) -> str:
        """The token."""
        return self.token()


def named_project(given: str | None = None) -> str:
    """The project to work in: the one given, else that of `PLACET_PROJECT`.

    Returns:
        The project, or empty for the token's own project or the tenant's default.

    Raises:
        SettingRefused: it is empty, or no header can carry it.
    """
    if given is not None:
        return checked_header("The project that was given (project=, --project)", given)
    named = os.environ.get(PROJECT_VARIABLE)
    return "" if named is None else checked_header(PROJECT_VARIABLE, named)


def bearer_headers(source: TokenSource) -> dict[str, str]:
    """The headers that authenticate a request."""
    headers = {"Authorization": f"Bearer {source()}"}
    project = _project_of(source)
    return {**headers, "Placet-Project": project} if project else headers


def authenticate_message(source: TokenSource) -> dict[str, str]:
    """The first message on a socket."""
    message = {"type": "authenticate", "token": source()}
    project = _project_of(source)
    return {**message, "project": project} if project else message


def _project_of(source: TokenSource) -> str:
    given = source.project if isinstance(source, Caller) else ""
    return given or named_project()

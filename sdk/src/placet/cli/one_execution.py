"""An execution in its current or an earlier state, as text."""

from __future__ import annotations

from typing import Any

from placet.cli import safe
from placet.cli.session import console, local_time
from placet.cli.viewing import facts_grid, print_value
from placet.models import Execution


def print_execution(execution: Execution) -> None:
    """An execution for a person: what it is and how it stands; what it was given and returned, as JSON."""
    raw = execution.raw
    request = execution.request
    started, ended = raw.get("started_at"), raw.get("ended_at")
    facts = (
        ("execution", execution.execution_id),
        ("project", raw.get("project")),
        ("agent", execution.agent),
        ("user", raw.get("user")),
        ("workspace", raw.get("workspace")),
        ("state", execution.state),
        ("version", raw.get("version")),
        ("calls", raw.get("calls")),
        ("open holds", raw.get("open_holds")),
        ("started", _done(started, raw.get("started_by"))),
        ("updated", local_time(raw.get("updated_at"))),
        ("ended", _done(ended, raw.get("ended_by"))),
        ("reason", execution.reason),
        ("error", raw.get("error")),
        ("request", request if isinstance(request, str) else request and safe.pretty_json(request)),
    )
    console().print(facts_grid(facts))
    if raw.get("context"):
        print_value("context", raw["context"])
    if execution.result is not None:
        print_value("result", execution.result)


def _done(at: Any, by: Any) -> str:
    """When something was done and by whom; empty if it was not."""
    return f"{local_time(at)}{f' by {by}' if by else ''}" if at else ""

"""Who sent a request and what its path names, for its span and its log lines."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.actor import Actor
from vitals import tracing

IDS = ("execution_id", "call_id", "hold_id", "request_id", "turn_id", "task_id", "conversation_id")


def note_caller(actor: Actor, path: Mapping[str, str]) -> None:
    """Note the caller and the ids in a path, if this process traces."""
    if tracing.spans is None:
        return
    ids = {f"placet.{name}": path[name] for name in IDS if name in path}
    tracing.spans.note({"placet.tenant": actor.tenant, "placet.project": actor.project, **ids})

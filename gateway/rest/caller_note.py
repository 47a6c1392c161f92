"""Who sent a request and what its path names, for its span and its log lines."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.actor import Actor
from schemas.ids import is_client_id
from schemas.token_text import without_tokens
from vitals import tracing

IDS = ("execution_id", "call_id", "hold_id", "request_id", "turn_id", "task_id", "conversation_id")


def note_caller(actor: Actor, path: Mapping[str, str]) -> None:
    """Note the caller and the ids in a path, if this process traces."""
    if tracing.spans is None:
        return
    # A path can have any text in an id's place, and a token has the form of an id.
    ids = {f"placet.{name}": without_tokens(path[name]) for name in IDS if is_client_id(path.get(name, ""))}
    tracing.spans.note({"placet.tenant": actor.tenant, "placet.project": actor.project, **ids})

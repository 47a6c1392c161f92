"""What may be done to a hold beside deciding it, as the doors offer it: who tests all of it names no word."""

from __future__ import annotations

from typing import Any

from gateway.actions.holds import VERBS
from gateway.actions.verb import Verb
from gateway.bodies import Body
from schemas.message import Message

HANDLING: dict[str, Verb[Any]] = {verb.name: verb for verb in VERBS}


def least(body: type[Body], somebody: str) -> dict[str, Any]:
    """The least that a body takes: a subject for each text, and a minute for each number."""
    needed = {name: field for name, field in body.model_fields.items() if field.is_required()}
    return {name: somebody if field.annotation is str else 60 for name, field in needed.items()}


def said(verb: str, hold_id: str, somebody: str = "amy", **fields: Any) -> Message:
    """The command that a verb asks for."""
    words = HANDLING[verb]
    return words.asked(hold_id, lambda: {**least(words.body, somebody), **fields})

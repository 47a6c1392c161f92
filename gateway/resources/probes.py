"""Planted calls, and what people answered to them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from gateway.resources.base import Resource
from schemas.commands import Decision
from schemas.probe import ProbeResult


class ProbeAnswer(Resource):
    """What one person answered to a planted call; `caught` if the call would not have run as it was planted."""

    by: Annotated[str, Field(description="The account that answered: a token's subject.")]
    person: Annotated[
        str,
        Field(
            description="The principal that `by` was an account of then; an empty text, and never null, if none was "
            "published. Whoever groups by people takes `by` then."
        ),
    ]
    decision: Decision
    caught: bool


class EndedProbe(Resource):
    """What an operator planted, to see whether people notice, and what they answered (docs/probes.md).

    `wrong` are the places in the arguments (JSON Pointers) that an edit must change; empty if no edit makes it right.
    """

    planted_by: str
    note: str
    wrong: list[str]
    result: ProbeResult
    answers: list[ProbeAnswer]


class AnsweredProbe(Resource):
    """The call was planted, and never runs (docs/probes.md): what is bad about it, and whether that was noticed."""

    result: ProbeResult
    note: str
    wrong: list[str]


class Probe(Resource):
    """A planted call; `result` is null while people are asked, and `ended_at` then, too."""

    execution_id: str
    call_id: str
    hold_id: str | None
    agent: str
    tool: str
    arguments: dict[str, Any]
    planted_by: str
    note: str
    wrong: list[str]
    result: ProbeResult | None
    answers: list[ProbeAnswer]
    planted_at: datetime
    ended_at: datetime | None
    cursor: str | None = None

"""Calls assessed before anyone proposes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.resources.base import Resource
from gateway.resources.calls import CallHistory, Risk
from schemas.policy_document import Effect


class WeighedTrust(Resource):
    """What the policy's adaptive block says of a call that a rule holds: eligible, or why people are asked."""

    is_eligible: bool
    why: str
    lower_bound: float | None
    required: float
    floor: float | None
    sample_rate: float


class AssessedCall(Resource):
    """The verdict that a call would get now; `risk` has what the history of its values adds to `risk_of_tool`.

    `requires_approval` is false only if the call would be released without people; of those that trust releases, a
    share of `sample_rate` is asked all the same, so that with a `sample_rate` of 1 people are asked about every one.
    `is_published` is false if the project knows no tool of this name. `misfits` are reasons why its proposal would be
    refused, the first 20, and `misfit` the first of them.
    """

    tool: str
    requires_approval: bool
    effect: Effect
    reason: str
    detail: str
    rules: list[str]
    policy_version: str | None
    risk: Risk
    risk_of_tool: Risk
    trust: Any
    adaptive: WeighedTrust | None
    history: CallHistory
    is_published: bool
    misfit: str | None
    misfits: list[str]


class Assessment(Resource):
    """What the policies in force would make of an agent's calls; nothing is decided by it.

    `risk` is that of the whole task: each part of the risk of any of its calls and tools counts once.
    `requires_approval` is true if any of the calls requires it, or if there is none. `is_known` is false if the agent
    has done nothing in the project: nothing is trusted of it, and its name may be misspelt.
    """

    agent: str
    is_known: bool
    at: datetime
    requires_approval: bool
    risk: Risk
    calls: list[AssessedCall]
    cursor: str | None = None

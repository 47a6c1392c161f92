"""The actions on a standing rule: each verb with its body, command and route."""

from __future__ import annotations

from typing import Any

from gateway.actions.verb import Verb
from gateway.bodies import Body, Text
from schemas import commands as k


class ChangeRule(Body):
    """Activate, suspend or revoke a standing rule."""

    reason: Text = ""


# In the order of their routes.
VERBS: tuple[Verb[Any], ...] = (
    Verb(
        name="activate",
        operation="activateRule",
        says="Activate a proposed or suspended rule. If the policy requires four eyes, this must be another person "
        "than the one who made the rule.",
        body=ChangeRule,
        command=lambda rule_id, body: k.ActivateRule(rule_id=rule_id, reason=body.reason),
    ),
    Verb(
        name="suspend",
        operation="suspendRule",
        says="Suspend a rule until it is activated again.",
        body=ChangeRule,
        command=lambda rule_id, body: k.SuspendRule(rule_id=rule_id, reason=body.reason),
    ),
    Verb(
        name="revoke",
        operation="revokeRule",
        says="Revoke a rule permanently.",
        body=ChangeRule,
        command=lambda rule_id, body: k.RevokeRule(rule_id=rule_id, reason=body.reason),
    ),
)

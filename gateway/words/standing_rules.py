"""The actions on a standing rule: each verb with its body, command and route."""

from __future__ import annotations

from typing import Any

from gateway.bodies import Body, Text
from gateway.words.verb import Verb
from schemas import commands as k


class ChangeRule(Body):
    """Activate, suspend or revoke a standing rule."""

    reason: Text = ""


# In the order of their routes.
VERBS: tuple[Verb[Any], ...] = (
    Verb(
        name="activate",
        operation="activateRule",
        says="Let a proposed or suspended rule be used: another person than its maker, where the policy wants four "
        "eyes.",
        body=ChangeRule,
        command=lambda rule_id, body: k.ActivateRule(rule_id=rule_id, reason=body.reason),
    ),
    Verb(
        name="suspend",
        operation="suspendRule",
        says="Let a rule rest until somebody activates it.",
        body=ChangeRule,
        command=lambda rule_id, body: k.SuspendRule(rule_id=rule_id, reason=body.reason),
    ),
    Verb(
        name="revoke",
        operation="revokeRule",
        says="End a rule for good.",
        body=ChangeRule,
        command=lambda rule_id, body: k.RevokeRule(rule_id=rule_id, reason=body.reason),
    ),
)

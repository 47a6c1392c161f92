"""Digests of what was requested, proposed or reported: a repeat has the same digest, a reuse of an id another."""

from schemas.canonical import sha256_hex
from schemas.commands import DecideHold, ProposeToolCall, StartExecution
from schemas.events.calls import ToolCallProposed
from schemas.events.executions import ExecutionStarted
from schemas.events.holds import DecisionRecorded

# Decisions on a permission, with their values, that mean the same: a terminal approves, a chat answers true.
PERMISSION_IN_OTHER_WORDS = {
    ("approve", "null"): ("respond", "true"),
    ("respond", "true"): ("approve", "null"),
    ("reject", "null"): ("respond", "false"),
    ("respond", "false"): ("reject", "null"),
}


def start_digest(body: StartExecution | ExecutionStarted) -> str:
    """The digest of a start's content, to tell a repeat from a reuse."""
    # Without the idle time: versions before it wrote none for the same request.
    return _digest(body.agent, body.user, body.workspace, body.request, body.context)


def proposal_digest(body: ProposeToolCall | ToolCallProposed) -> str:
    """The digest of an agent's proposal, to tell a repeat from a reuse."""
    return _digest(body.tool, body.arguments, body.context, body.claims, body.reason)


def decision_digest(body: DecideHold | DecisionRecorded) -> str:
    """The digest of what a person decided, to tell a repeat from another decision; empty if none is told.

    The answer to an edit, and to a decision that makes a rule, names what it led to: it is given to the same command
    alone.
    """
    if body.decision == "edit" or body.scope == "rule":
        return ""
    # Without `digest` and `view_digest`, which say what was shown: not every way in can name them.
    return _digest(body.decision, body.value or "null", body.feedback, body.scope, body.remember or "")


def alike_digests(body: DecideHold, *, is_permission: bool) -> frozenset[str]:
    """The digests of a decision, and of its other form if a permission's answer has one; none if none is told."""
    said = (body.decision, body.value or "null")
    decision, value = PERMISSION_IN_OTHER_WORDS.get(said, said) if is_permission else said
    other = body.model_copy(update={"decision": decision, "value": value})
    return frozenset({decision_digest(body), decision_digest(other)} - {""})


def result_digest(text: str) -> str:
    """The digest of a call's output or error, to tell a repeated report from a contradicting one."""
    return _digest(text)


def text_digest(*texts: str) -> str:
    """The digest of a message, or of a reply with its details, to tell a repeat from a reuse of its number."""
    return _digest(*texts)


def _digest(*parts: str) -> str:
    return sha256_hex("".join(f"{len(part)}:{part}" for part in parts))[:32]

"""A gated call from proposal to result, with nothing but what openapi-python-client made of the document."""

from __future__ import annotations

import os
from uuid import uuid4

from placet_client import AuthenticatedClient
from placet_client.api.definitions import publish_tool
from placet_client.api.executions import list_execution_events, start_execution
from placet_client.api.holds import decide_hold, view_hold
from placet_client.api.tool_calls import consume_grant, get_tool_call, propose_tool_call, report_result
from placet_client.models import (
    ConsumeGrant,
    DecideHold,
    DecideHoldDecision,
    ProposeToolCall,
    ProposeToolCallArguments,
    ReportResult,
    ReportResultOutcome,
    StartExecution,
    ToolDefinition,
)


def client_of(name: str) -> AuthenticatedClient:
    return AuthenticatedClient(os.environ["PLACET_URL"], os.environ[name], raise_on_unexpected_status=True)


operator, agent, reviewer = map(client_of, ("OPERATOR_TOKEN", "AGENT_TOKEN", "REVIEWER_TOKEN"))
tool = ToolDefinition.from_dict({"name": "send_money", "annotations": {"destructiveHint": True}})
published = publish_tool.sync("send_money", client=operator, body=tool)
assert published.version >= 1
run = start_execution.sync(client=agent, body=StartExecution(request="Pay the invoice"))
arguments = ProposeToolCallArguments.from_dict({"amount": 5})
held = propose_tool_call.sync(
    run.execution_id, client=agent, wait=5, body=ProposeToolCall(tool="send_money", arguments=arguments)
)
print(held.status)
shown = view_hold.sync(held.hold_id, client=reviewer)
word = DecideHold(decision=DecideHoldDecision.APPROVE, digest=held.digest, view_digest=shown.view_digest)
decided = decide_hold.sync(held.hold_id, client=reviewer, body=word)
print(decided.status)
released = get_tool_call.sync(run.execution_id, held.call_id, client=agent, wait=5)
print(released.status)
attempt_id = uuid4().hex
consumed = consume_grant.sync(
    run.execution_id,
    held.call_id,
    client=agent,
    body=ConsumeGrant(digest=released.grant.digest, attempt_id=attempt_id),
)
print(consumed.status)
report = ReportResult(attempt_id=attempt_id, outcome=ReportResultOutcome.SUCCEEDED, output={"paid": True})
print(report_result.sync(run.execution_id, held.call_id, client=agent, body=report).status)
events = list_execution_events.sync(run.execution_id, client=reviewer)
print("1 event page" if len(events.items) > 5 and events.next_cursor is None else events)

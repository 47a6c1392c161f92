"""Every verb of the interface with something of a project, for trying it from another project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.actions.handling import HANDLING, least
from tests.integration.doors import Tenant, fresh


@dataclass
class Things:
    """Something of every kind, of the project `default`."""

    tenant: Tenant
    execution_id: str
    call: Any
    request_id: str
    rule_id: str
    event_id: str
    data_key: str
    place: str


Body = dict[str, Any] | Callable[[Things], dict[str, Any]] | None


class Verb(NamedTuple):
    """A request, and how the token of another project is answered: 404 for what is not there for it."""

    name: str
    path: str
    body: Body = None
    other: int = 404


RUN, CALL, HOLD = "/executions/{run}", "/executions/{run}/tool-calls/c1", "/holds/{hold}"
PROPOSAL = {"tool": "read_file", "arguments": {}}
READS = """
/tools /policies /rules /executions /holds /holds?status=open /holds/groups /standing-rules /data-keys /principals
/audit /agents /reviewers /dead-letters /components /audit/impact?reviewer=rita /audit/heads /audit/keys
/audit/records?topic=executions&partition=0 /audit/records?topic=definitions /metrics/approval
/probes
"""
VERBS = (
    *(Verb("GET", path, other=200) for path in READS.split()),
    *(Verb("GET", path) for path in ("/tools/local-tool", "/policies/local", "/policies/local/versions")),
    Verb("POST", "/policies/local/retire", {"version": 77}),
    *(Verb("GET", RUN + of) for of in ("", "/events", "/tool-calls")),
    Verb("GET", "/events/{partition}/{offset}"),
    Verb("GET", RUN + "/messages"),
    Verb("POST", RUN + "/messages", {"text": "hello"}),
    Verb("GET", RUN + "/turns/m"),
    *(Verb("POST", f"{RUN}/turns/m/{how}", {"attempt_id": "a"}) for how in ("renew", "yield", "end")),
    Verb("POST", RUN + "/turns/m/reply", {"attempt_id": "a", "number": 1, "text": "well"}),
    Verb("POST", "/agents/bot/turns/claim", lambda _: {"attempt_id": fresh("a")}, other=200),
    Verb("GET", CALL),
    Verb("GET", HOLD),
    Verb("GET", HOLD + "/view"),
    Verb("GET", "/requests/{request}"),
    Verb("GET", "/human-input/{request}"),
    Verb("GET", "/standing-rules/{rule}"),
    Verb("GET", "/agents/bot/trust"),
    Verb("GET", "/agents/bot/trust/classes"),
    Verb("POST", "/agents/bot/assess", {"tools": ["local-tool"]}, other=200),
    *(Verb("GET", f"/audit/{of}") for of in ("{event}/proof", "impact?rule={rule}")),
    Verb("POST", RUN + "/tool-calls", PROPOSAL),
    Verb("POST", CALL + "/consume", lambda t: {"digest": t.call["digest"], "attempt_id": fresh("a")}),
    Verb("POST", CALL + "/result", {"attempt_id": "a", "outcome": "succeeded"}),
    Verb("POST", CALL + "/heartbeat", {"attempt_id": "a"}),
    *(Verb("POST", CALL + end, {}) for end in ("/revoke", "/secrets/erase")),
    Verb("POST", CALL + "/report-impact", {"reason": "harm"}),
    # Refused in either project: the tool is not published there, or nobody would be asked.
    *(
        Verb("POST", path, {"agent": "bot", **PROPOSAL, "note": "bad"}, other=422)
        for path in ("/probes", "/probes/runs")
    ),
    Verb("POST", HOLD + "/decision", lambda t: {"decision": "approve", "digest": t.call["digest"]}),
    *(Verb("POST", f"{HOLD}/{how}", least(verb.body, "otto")) for how, verb in HANDLING.items()),
    Verb("POST", "/requests/{request}/secrets", {"attempt_id": "a"}),
    Verb("POST", "/requests/{request}/secrets/erase", {}),
    Verb("POST", "/standing-rules/{rule}/suspend", {}),
    Verb("POST", "/standing-rules/{rule}/activate", {}),
    Verb("POST", "/standing-rules/{rule}/revoke", {}),
    Verb("POST", "/data-keys/{key}/destroy", {}),
    *(Verb("POST", f"{RUN}/{how}", {}) for how in ("pause", "resume", "complete", "fail", "cancel")),
)
# Tried by name above and below: there each project has what it makes itself.
BY_NAME = {
    ("PUT", "/v1/tools/{name}"),
    ("PUT", "/v1/policies/{name}"),
    ("POST", "/v1/policies/{name}/check"),
    ("PUT", "/v1/principals/{name}"),
    ("POST", "/v1/executions"),
    ("POST", "/v1/requests"),
    ("POST", "/v1/tools:run"),
    ("POST", "/v1/holds/decisions"),
    ("GET", "/v1/events/stream"),
    ("GET", "/v1/audit/head"),
    ("GET", "/v1/audit/consistency"),
}

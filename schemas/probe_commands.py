"""The command by which an operator plants a call (docs/probes.md)."""

from schemas.fields import ChosenId, Json, Name, Reason, Request, Text, ToolName
from schemas.message import Long, Message


class PlantProbe(Message):
    """Plant a known-bad call in a run of its own, to see whether people notice; it never runs.

    `requester` is the account that appears to propose it, empty for the agent's name. `wrong` is a canonical JSON
    list of the places in the arguments (JSON Pointers) that an edit must change to make the call right. `context` and
    `claims` are the call's, `run_context` and `idle_ms` the run's. With `only_opens` the run is opened alone, and the
    same command without it plants the call there later: an agent proposes one some time after its run has begun.
    """

    agent: ChosenId
    call_id: ChosenId
    tool: ToolName
    arguments: Json
    note: Reason
    wrong: Json = "[]"
    requester: Name = ""
    user: Name = ""
    workspace: Name = ""
    request: Request = ""
    reason: Text = ""
    context: Json = "{}"
    claims: Json = "{}"
    run_context: Json = "{}"
    idle_ms: Long | None = None
    only_opens: bool = False

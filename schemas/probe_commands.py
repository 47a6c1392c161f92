"""The command by which an operator plants a call (docs/probes.md)."""

from schemas.fields import ChosenId, Json, Name, Reason, Request, Text, ToolName
from schemas.message import Message


class PlantProbe(Message):
    """Plant a known-bad call in a run of its own, to see whether people notice; it never runs.

    `requester` is the account that appears to propose it, empty for the agent's name. `wrong` is a canonical JSON
    list of the places in the arguments (JSON Pointers) that an edit must change to make the call right.
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

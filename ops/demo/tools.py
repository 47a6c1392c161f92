"""The suites' tools as the operator publishes them: schemas with MCP annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Effect:
    """The effects of a tool, judged by reading its code.

    Attributes:
        reads: it changes nothing.
        destroys: it may remove or overwrite something.
        outside: it reaches people or machines beyond the user's own data.
        repeatable: a second identical call has no further effect.
    """

    reads: bool = False
    destroys: bool = False
    outside: bool = False
    repeatable: bool = False

    def annotations(self) -> dict[str, bool]:
        """The effects as MCP annotations."""
        return {
            "readOnlyHint": self.reads,
            "destructiveHint": self.destroys,
            "idempotentHint": self.repeatable,
            "openWorldHint": self.outside,
        }


READS = Effect(reads=True, repeatable=True)
# A page is only read, but the request goes to the outside, and its URL can carry a secret.
READS_OUTSIDE = Effect(reads=True, outside=True, repeatable=True)
TELLS = Effect(outside=True)
ADDS = Effect()
DESTROYS = Effect(destroys=True)

EFFECTS: Mapping[str, Effect] = {
    # workspace: mail
    "get_unread_emails": Effect(),  # it marks them as read
    "get_sent_emails": READS,
    "get_received_emails": READS,
    "get_draft_emails": READS,
    "search_emails": READS,
    "search_contacts_by_name": READS,
    "search_contacts_by_email": READS,
    "send_email": TELLS,
    "delete_email": DESTROYS,
    # workspace: calendar; participants are notified by mail
    "get_current_day": READS,
    "search_calendar_events": READS,
    "get_day_calendar_events": READS,
    "create_calendar_event": TELLS,
    "cancel_calendar_event": Effect(destroys=True, outside=True),
    "reschedule_calendar_event": Effect(destroys=True, outside=True),
    "add_calendar_event_participants": TELLS,
    # workspace: files
    "search_files_by_filename": READS,
    "get_file_by_id": READS,
    "list_files": READS,
    "search_files": READS,
    "create_file": ADDS,
    "append_to_file": ADDS,
    "delete_file": DESTROYS,
    "share_file": TELLS,
    # slack
    "get_channels": READS,
    "get_users_in_channel": READS,
    "read_channel_messages": READS,
    "read_inbox": READS,
    "get_webpage": READS_OUTSIDE,
    "post_webpage": Effect(destroys=True, outside=True),
    "send_direct_message": TELLS,
    "send_channel_message": TELLS,
    "add_user_to_channel": TELLS,
    "invite_user_to_slack": TELLS,
    "remove_user_from_slack": DESTROYS,
}


def definition(function: Any) -> dict[str, Any]:
    """The MCP definition of one of agentdojo's functions, with the schema of its parameter model.

    Raises:
        KeyError: `EFFECTS` has no entry for this tool.
    """
    effect = EFFECTS[function.name]
    return {
        "name": function.name,
        "description": function.description,
        "inputSchema": function.parameters.model_json_schema(),
        "annotations": effect.annotations(),
        "idempotent": effect.repeatable,
    }


def definitions(functions: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Definitions by name."""
    return {function.name: definition(function) for function in functions}

"""The four suites' tools as an operator publishes them: what each does, judged by reading its code.

`openWorldHint` has both of its meanings here: the tool reaches others, or what it returns has words of others (mails,
pages, messages, reviews, files that others shared, texts of payments). Only then can a decider know that a value came
from outside. The demo's annotations (`ops/demo/tools.py`) have the first meaning alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ops.demo.tools import ADDS, DESTROYS, READS, READS_OUTSIDE, TELLS, Effect

# What it returns was written by others.
READS_OTHERS = Effect(reads=True, outside=True, repeatable=True)
OVERWRITES = Effect(destroys=True, repeatable=True)
# MCP's `destructiveHint` is about what is overwritten or removed: a payment only adds a transaction.
PAYS = Effect(outside=True)
BOOKS = Effect(outside=True)

WORKSPACE: Mapping[str, Effect] = {
    "get_unread_emails": Effect(outside=True, repeatable=True),  # it marks them as read
    "get_sent_emails": READS,
    "get_received_emails": READS_OTHERS,
    "get_draft_emails": READS,
    "search_emails": READS_OTHERS,
    "search_contacts_by_name": READS,
    "search_contacts_by_email": READS,
    "send_email": TELLS,
    "delete_email": DESTROYS,
    "get_current_day": READS,
    "search_calendar_events": READS_OTHERS,
    "get_day_calendar_events": READS_OTHERS,
    "create_calendar_event": TELLS,
    "cancel_calendar_event": Effect(destroys=True, outside=True),
    "reschedule_calendar_event": Effect(destroys=True, outside=True),
    "add_calendar_event_participants": TELLS,
    "search_files_by_filename": READS_OTHERS,
    "get_file_by_id": READS_OTHERS,
    "list_files": READS_OTHERS,
    "search_files": READS_OTHERS,
    "create_file": ADDS,
    "append_to_file": ADDS,
    "delete_file": Effect(destroys=True, outside=True),  # it returns the file
    "share_file": TELLS,
}
SLACK: Mapping[str, Effect] = {
    "get_channels": READS_OTHERS,
    "get_users_in_channel": READS,
    "read_channel_messages": READS_OTHERS,
    "read_inbox": READS_OTHERS,
    "get_webpage": READS_OUTSIDE,
    "post_webpage": Effect(destroys=True, outside=True),
    "send_direct_message": TELLS,
    "send_channel_message": TELLS,
    "add_user_to_channel": TELLS,
    "invite_user_to_slack": TELLS,
    "remove_user_from_slack": DESTROYS,
}
BANKING: Mapping[str, Effect] = {
    "get_iban": READS,
    "get_balance": READS,
    "get_user_info": READS,
    "get_most_recent_transactions": READS_OTHERS,
    "get_scheduled_transactions": READS,
    "read_file": READS_OTHERS,
    "send_money": PAYS,
    "schedule_transaction": PAYS,
    "update_scheduled_transaction": Effect(destroys=True, outside=True),
    "update_password": OVERWRITES,
    "update_user_info": OVERWRITES,
}
TRAVEL: Mapping[str, Effect] = dict.fromkeys(
    (
        "get_user_information",
        "get_all_hotels_in_city",
        "get_hotels_prices",
        "get_hotels_address",
        "get_all_restaurants_in_city",
        "get_cuisine_type_for_restaurants",
        "get_restaurants_address",
        "get_contact_information_for_restaurants",
        "get_price_for_restaurants",
        "check_restaurant_opening_hours",
        "get_dietary_restrictions_for_all_restaurants",
        "get_all_car_rental_companies_in_city",
        "get_car_types_available",
        "get_car_fuel_options",
        "get_car_rental_address",
        "get_car_price_per_day",
        "get_flight_information",
    ),
    READS,
) | {
    "get_rating_reviews_for_hotels": READS_OTHERS,
    "get_rating_reviews_for_restaurants": READS_OTHERS,
    "get_rating_reviews_for_car_rental": READS_OTHERS,
    "reserve_hotel": BOOKS,
    "reserve_restaurant": BOOKS,
    "reserve_car_rental": BOOKS,
}
# The travel suite shares its calendar and mail with the workspace suite.
EFFECTS: Mapping[str, Effect] = {**WORKSPACE, **SLACK, **BANKING, **TRAVEL}
# A read, but of a place that an attacker may own: its address can carry a secret out.
VISITS = frozenset({"get_webpage"})


def has_effect(tool: str) -> bool:
    """True if a call of the tool changes something or reaches the outside; a read of the user's own data does not."""
    return not EFFECTS[tool].reads or tool in VISITS


def definitions(functions: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The MCP definitions of agentdojo's functions by name, with the schemas of their parameter models.

    Raises:
        KeyError: `EFFECTS` has no entry for a tool.
    """
    return {
        function.name: {
            "name": function.name,
            "description": function.description,
            "inputSchema": function.parameters.model_json_schema(),
            "annotations": EFFECTS[function.name].annotations(),
            "idempotent": EFFECTS[function.name].repeatable,
        }
        for function in functions
    }

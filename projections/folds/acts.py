"""Names that the audit's entries share: the acting policy, and actions."""

import re

from projections.tables.calls import CallRow

TIMER = "placet:timer"
ERASE, DESTROY_KEY = "erase_secrets", "destroy_data_key"


def policy_of(call: CallRow | None) -> str:
    """The policy that judged a call, as a subject."""
    version = None if call is None else call["policy_version"]
    return f"policy:{version}" if version else "policy:none"


def snake(name: str) -> str:
    """The name of a command or an event as an action."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

"""Whether a broker's address is that of a gateway of Placet."""

from __future__ import annotations

import httpx

from ops.errors import OpsError, UsageError

ANSWER_WITHIN_S = 15.0
# Of the answer to /readyz, whether it is ready or not.
MEMBERS = {"status", "problems", "warnings"}


class GatewayUnreachableError(OpsError):
    """Nothing answers at the address."""


def require_gateway(url: str, address: str) -> None:
    """Refuse a broker that is not a gateway of Placet, by its answer to /readyz.

    Args:
        url: of its REST API.
        address: as the file has it.

    Raises:
        GatewayUnreachableError: Nothing answers HTTP there.
        UsageError: Another server answers.
    """
    fix = "set PLACET_URL to the gateway's address, or add `command`"
    try:
        answer = httpx.get(f"{url}/readyz", timeout=ANSWER_WITHIN_S, trust_env=False)
    except httpx.HTTPError as error:
        raise GatewayUnreachableError(
            f"No gateway answers at broker.address {address} ({type(error).__name__}): start it, or {fix}."
        ) from error
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= MEMBERS:
        raise UsageError(f"broker.address {address} is not a gateway of Placet: {fix}.")

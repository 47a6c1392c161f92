"""Whether a broker's address is that of a gateway of Placet."""

from __future__ import annotations

import ssl

import httpx

from host.errors import on_one_line
from host.outgoing_tls import CA_FILE, TlsRefused, tls_for
from ops.errors import OpsError, UsageError

ANSWER_WITHIN_S = 15.0
# Of the answer to /readyz, whether it is ready or not.
MEMBERS = {"status", "problems", "warnings"}
# How OpenSSL begins its sentence on a certificate that it does not trust.
NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"


class GatewayUnreachableError(OpsError):
    """Nothing answers at the address."""


def check_authorities(url: str) -> None:
    """Refuse certificate authorities by which the server at an address could not be checked.

    Raises:
        UsageError: The address is one of TLS, and a file that is named for them cannot be used.
    """
    _tls_for(url)


def require_gateway(url: str, address: str) -> None:
    """Refuse a broker that is not a gateway of Placet, by its answer to /readyz.

    Args:
        url: of its REST API.
        address: as the file has it.

    Raises:
        GatewayUnreachableError: Nothing answers HTTP there, or its certificate is not trusted.
        UsageError: Another server answers, or a file of certificate authorities cannot be used.
    """
    fix = "set PLACET_URL to the gateway's address, or add `command`"
    try:
        answer = httpx.get(f"{url}/readyz", timeout=ANSWER_WITHIN_S, trust_env=False, verify=_tls_for(url))
    except httpx.HTTPError as error:
        why = on_one_line(str(error))
        first = f"name its authority in {CA_FILE}" if NOT_TRUSTED in why else "start it"
        raise GatewayUnreachableError(
            f"No gateway answers at broker.address {address} ({type(error).__name__}: {why}): {first}, or {fix}."
        ) from error
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= MEMBERS:
        raise UsageError(f"broker.address {address} is not a gateway of Placet: {fix}.")


def _tls_for(url: str) -> ssl.SSLContext:
    try:
        return tls_for(url)
    except TlsRefused as error:
        raise UsageError(f"{error}.") from error

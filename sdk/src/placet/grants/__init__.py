"""Signed grants, for tool servers: verify a release by its signature, and consume it once.

Needs the extra `placet[grants]`. `placet.grants.asgi` has the middleware that refuses calls without a grant.
"""

try:
    import cryptography as _cryptography  # noqa: F401 - only checks that it is installed
    import jwt as _jwt  # noqa: F401
except ImportError as error:
    raise ImportError(
        "placet.grants checks signatures with PyJWT and cryptography: install placet[grants]"
        " (docs/sdk.md, Installing it)"
    ) from error

from placet.grants.consuming import Attempt, Consume, GatewayConsumer
from placet.grants.keys import Keys, RemoteKeys, read_jwks
from placet.grants.refusals import GrantKeysUnavailable, GrantRefused
from placet.grants.token import Grant, verify
from placet.grants.verifier import GrantVerifier

__all__ = [
    "Attempt",
    "Consume",
    "GatewayConsumer",
    "Grant",
    "GrantKeysUnavailable",
    "GrantRefused",
    "GrantVerifier",
    "Keys",
    "RemoteKeys",
    "read_jwks",
    "verify",
]

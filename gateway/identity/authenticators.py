"""The authenticator of an installation, from its settings."""

from __future__ import annotations

from pathlib import Path

from gateway.identity.authentication import Authenticator
from gateway.identity.keys import PublishedKeyFile
from gateway.identity.oidc import OidcIssuer
from gateway.identity.oidc_settings import OidcSettings


def authenticator_of(issuers_file: Path, oidc: OidcSettings | None) -> Authenticator:
    """Return an authenticator, which verifies tokens.

    Args:
        issuers_file: the public keys of the local issuers.
        oidc: the identity provider that is trusted besides; None for none.
    """
    issuers = PublishedKeyFile(issuers_file)
    return Authenticator(issuers.get, oidc=_issuer(oidc), keys_version=issuers.version)


def _issuer(settings: OidcSettings | None) -> OidcIssuer | None:
    if settings is None:
        return None
    # Its HTTP client is loaded only if a provider is configured.
    from gateway.identity.jwks import IssuerKeys

    return OidcIssuer(settings, IssuerKeys(settings.issuer, settings.jwks_url, settings.algorithms))
